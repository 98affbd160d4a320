"""The audit's words by code, English and Chinese: labels of reports, explanations of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "return-without-evidence": ("Verdict without evidence", "判断没有证据"),
    "incomplete-evidence": ("Verdict on part of the evidence", "判断只有部分证据"),
    "unproven-verdict": ("Verdict not proven by its evidence", "证据不足以证明判断"),
    "evidence-contradicts-verdict": ("Evidence contradicts the verdict", "证据与判断相反"),
    "evidence-unresolved": ("Cited evidence does not exist", "引用的证据不存在"),
    "evidence-outside-interval": ("Evidence from another process", "证据属于另一流程"),
    "evidence-stale": ("Evidence from before a change", "证据早于变更，已过期"),
    "evidence-wrong-call": (
        "Evidence from a call that doesn't verify this",
        "证据来自与此无关的调用",
    ),
    "evidence-wrong-arguments": ("Evidence for other values", "证据针对其他对象"),
    "unproven-value": ("Checked for another value, or not at all", "未按实际参数值检查"),
    "unproven-evidence": ("No call verifies this", "没有调用能验证该项"),
    "evidence-superseded": (
        "Newer answer contradicts the proof or leaves it undecided",
        "已有更新的结果",
    ),
    "model-verdict": ("Guarded action relies on a model's judgement", "受保护操作仅凭模型判断"),
    "gate-shut": ("Gate not open for these values", "未通过这些参数值的前置验证"),
    "not-read-again": ("Not read again before the action", "操作前未重新查询"),
    "guard-disagrees": ("Guard and audit read the proof differently", "拦截器与审计结论不一致"),
    "unlicensed-call": ("Call outside the procedure", "流程之外的调用"),
    "premature-goal": (
        "Goal action called before its checks were done",
        "检查未完成就执行目标操作",
    ),
    "skipped-check": ("Required check skipped", "跳过了必需的检查"),
    "calls-after-goal": ("Call after the goal succeeded", "目标完成后仍有调用"),
    "refusal-without-cause": ("Refusal without a false predicate", "拒绝办理但没有依据"),
    "otherwise-not-started": ("Follow-up of a refusal not started", "拒绝后未启动后续流程"),
    "completion-without-goal": ("Completion without the goal", "目标未达成却宣告完成"),
    "tipped-off": ("Confidential reason disclosed to the customer", "向客户透露了不得透露的内容"),
    "claimed-completion": ("Completion claimed but never accepted", "宣称完成，但未被接受"),
    "goal-without-completion": ("Goal reached, process never completed", "目标已达成，流程未结束"),
    "wrong-branch": ("Branch contradicts the results", "分支与已有结果相反"),
    "unknown-outcome": ("Outcome unknown", "结果不明"),
    "guard-violated": ("Guarded action ran unproven", "受保护操作未获许可即执行"),
    "approval-missing": ("Guarded action ran without approval", "受保护操作未经审批即执行"),
    "approval-exceeded": ("Guarded action differs from its approval", "执行内容与审批不符"),
    "executed-against-condition": (
        "Action ran although a requirement was false",
        "要求不成立却执行了操作",
    ),
    "inconsistent-trace": ("Trace contradicts its programs", "记录与程序矛盾"),
    "other-program": ("Not the program of this handbook", "不是本手册的程序"),
    "tampering": ("Record was changed", "记录被改动"),
}
"""Every code the audit can give, with a report's words for it. Codes are stable."""


LABELS: Final[Mapping[str, tuple[str, str]]] = {
    # --- outcomes, proof levels, severities ---
    "completed": ("completed", "已完成"),
    "refused": ("refused", "已拒绝"),
    "waiting": ("waiting", "等待中"),
    "abandoned": ("abandoned", "未完成"),
    "not judged": ("not judged", "未判断"),
    "proven": ("proven", "已证明"),
    "attested": ("attested", "模型判断"),
    "stated": ("stated", "用户确认"),
    "claimed": ("claimed", "仅声称"),
    "error": ("error", "错误"),
    "warning": ("warning", "警告"),
    "note": ("note", "提示"),
    # --- why there is no verdict ---
    "no rights to the contents": ("no rights to the contents", "无权查看内容"),
    "no key to the contents": ("no key to the contents", "没有内容密钥"),
    "the contents were erased": ("the contents were erased", "内容已被删除"),
    "the session was pruned": ("the session was pruned", "会话已清理"),
    "the contents are not in the trace": ("the contents are not in the trace", "记录中没有内容"),
    "a secret is withheld": ("a secret is withheld", "保密内容未显示"),
    "not in the transcript": ("not in the transcript", "对话记录中没有"),
    "the programs that ran are missing": ("the programs that ran are missing", "缺少所运行的程序"),
    "no evaluator for verdicts is available": (
        "no evaluator for verdicts is available",
        "此处无法计算判断",
    ),
    "the session can't be read": ("the session can't be read", "无法读取会话"),
    # --- states of a call, kinds of entries ---
    "carried_out": ("carried out", "已执行"),
    "answered": ("answered", "已返回"),
    "failed": ("failed", "失败"),
    "unknown": ("outcome unknown", "结果不明"),
    "unanswered": ("no answer", "没有结果"),
    "blocked": ("blocked", "已拦截"),
    "overridden": ("carried out, overridden", "人工放行后执行"),
    "waits": ("waiting for approval", "等待审批"),
    "rejected": ("rejected", "已驳回"),
    "expired": ("expired", "已过期"),
    "user": ("customer", "客户"),
    "agent": ("agent", "客服"),
    "start": ("procedure started", "流程开始"),
    "amend": ("values amended", "参数更正"),
    "complete": ("procedure completed", "流程完成"),
    "fail": ("procedure refused", "流程拒绝"),
    "approve": ("approved", "批准"),
    "reject": ("rejected", "驳回"),
    "amend_decision": ("amended and approved", "修改后批准"),
    "expire": ("expired", "过期"),
    # --- kinds of events ---
    "event.start": ("started", "开始"),
    "event.amend": ("amended", "更正"),
    "event.call": ("check entered", "进入检查"),
    "event.return": ("check judged", "作出判断"),
    "event.judge_check": ("check judged", "作出判断"),
    "event.reuse": ("verdict reused", "沿用判断"),
    "event.bind_evidence": ("evidence carried over", "沿用证据"),
    "event.resumed": ("resumed", "恢复"),
    "event.rejected": ("step rejected", "步骤被驳回"),
    "event.select_branch": ("branch taken", "选择分支"),
    "event.emit_artifact": ("document created", "生成文件"),
    "event.complete": ("completed", "完成"),
    "event.fail": ("refused", "拒绝"),
    "event.domain_call": ("tool called", "调用工具"),
    "event.domain_result": ("tool answered", "工具返回"),
    "event.user_said": ("customer said", "客户说"),
    "event.assistant_said": ("agent said", "客服说"),
    "event.decision": ("decision", "审批"),
    "event.note": ("note", "备注"),
    # --- lines of a report ---
    "session": ("session {id}", "会话 {id}"),
    "audit": ("audit", "审计"),
    "first_line": ("{name}: {verdict}", "{name}：{verdict}"),
    "in_brackets": (" ({text})", "（{text}）"),
    "because": (": {text}", "：{text}"),
    "unauthenticated": ("unauthenticated", "身份未验证"),
    "the machine itself": ("the runtime itself", "系统自动"),
    "audit_of": ("Audit of {name}", "审计：{name}"),
    "findings_1": ("1 finding", "1 项发现"),
    "findings_n": ("{n} findings", "{n} 项发现"),
    "no_findings": ("no findings", "没有发现问题"),
    "no_findings_yet": ("no findings so far", "目前没有发现问题"),
    "unjudged": ("cannot be judged ({why})", "无法判断（{why}）"),
    "not_judged_n": ("{n} not judged", "{n} 项未判断"),
    "overrides_1": ("1 override", "1 次人工放行"),
    "overrides_n": ("{n} overrides", "{n} 次人工放行"),
    "chain_ok": ("chain verified", "哈希链完整"),
    "chain_broken": ("CHAIN BROKEN", "哈希链断裂"),
    "clean": ("clean", "合规"),
    "verdict_of": ("verdict by {whom}", "结论来自 {whom}"),
    "unjudged_line": ("cannot be judged: {why}", "无法判断：{why}"),
    "override_line": (
        "override: {by} allowed {action} without proof",
        "人工放行：{action} 未经证明，由 {by} 放行",
    ),
    "nobody_on_record": ("an unrecorded person", "未记录的人员"),
    "sop_says": ("the SOP says: {sentence}", "手册规定：{sentence}"),
    "at_place": ("at {place}", "位置：{place}"),
    "refused_line": ("refused: {goal} at #{seq}", "已拒绝：{goal}，事件 #{seq}"),
    "reason": ("reason: {text}", "理由：{text}"),
    "not_possible": ("could not be carried out: {why}", "无法执行：{why}"),
    "required": ("required: {sentence}", "要求：{sentence}"),
    "outcome_was": ("found: {sentence}", "实际：{sentence}"),
    "otherwise": ("otherwise", "与要求不符"),
    "customer_hears": ("the customer is told only: {text}", "只告知客户：{text}"),
    "remedy": ("the customer could: {text}", "客户可以：{text}"),
    "follows": ("next: {text}", "后续：{text}"),
    "no_cause": ("No requirement was shown to be false.", "没有显示不成立的要求。"),
    "checked": ("what was checked:", "已检查："),
    "proof_of": ("requirements of the call at #{seq}:", "事件 #{seq} 的调用须满足："),
    "decided_by": ("{decision} by {by}", "{by} {decision}"),
    "decided_as": ("{decision} by {by} as {role}", "{by}（{role}）{decision}"),
    "evidence_of": ("evidence: {events}", "证据：{events}"),
    "amended_from": ("requested: {values}", "原请求：{values}"),
    "unguarded": (
        "recorded, not blocked: {actions} (not guarded by the handbook)",
        "已记录，未拦截：{actions}（手册未保护这些操作）",
    ),
    "card_checks": (
        "checks: {n}{grades}; {evidence}; reused: {reused}; rejected operations: {rejected}",
        "检查 {n}{grades}，{evidence}，复用 {reused}，被驳回的步骤 {rejected}",
    ),
    "card_calls": ("tool calls: {n}; after the goal: {after}", "工具调用 {n}，目标完成后 {after}"),
    "card_findings": ("findings: {counts}", "发现：{counts}"),
    "no_evidence_needed": ("none of them needs evidence", "均无需证据"),
    "evidence_for": (
        "evidence for {covered} of the {needing} that need it",
        "需要证据的 {needing} 项中 {covered} 项有证据",
    ),
    "opened_to": ("{begin} to {end}", "{begin} 至 {end}"),
    "by_handbook": ("handbook {handbook}, program {programs}", "手册 {handbook}，程序 {programs}"),
    "requested_by": ("requested by {requester}", "请求人：{requester}"),
    "sealed": ("sealed {at}, all {n} events", "已封存 {at}，含全部 {n} 个事件"),
    "sealed_part": (
        "sealed {at} up to event #{seq}; the session continued after that",
        "已封存 {at}，至事件 #{seq}；其后仍有事件",
    ),
    "not_sealed": ("not sealed", "未封存"),
    # --- batches ---
    "batch": ("{sessions} sessions, {clean} clean", "{sessions} 个会话，{clean} 个合规"),
    "batch_overrides": ("overrides: {n}", "人工放行：{n}"),
    "batch_unjudged": ("cannot be judged: {n} ({why})", "无法判断：{n}（{why}）"),
    "batch_outcomes": ("outcomes: {counts}", "结果：{counts}"),
    "batch_coverage": ("evidence coverage: {share}", "证据覆盖率：{share}"),
    "batch_grades": ("verdicts: {counts}", "判断：{counts}"),
    "batch_after": ("calls after the goal: {n} of {calls}", "目标完成后的调用：{n} / {calls}"),
    "batch_broken": ("broken chains: {n}", "断裂的哈希链：{n}"),
    "batch_code": ("{name} in {n} sessions", "{name}，{n} 个会话"),
    "none": ("none", "无"),
    "not_needed": ("no verdict needs evidence", "没有需要证据的判断"),
    # --- the page ---
    "Outcome": ("Outcome", "结果"),
    "Checks": ("Checks", "检查"),
    "Evidence": ("Evidence", "证据"),
    "Calls": ("Tool calls", "工具调用"),
    "Chain": ("Hash chain", "哈希链"),
    "chain_true": ("verified", "完整"),
    "chain_false": ("broken", "断裂"),
    "Seal": ("Seal", "封存"),
    "Session": ("Session", "会话"),
    "Time": ("Time", "时间"),
    "Handbook": ("Handbook", "手册"),
    "Program": ("Program", "程序"),
    "Requester": ("Requested by", "请求人"),
    "Model": ("Model", "模型"),
    "View": ("View", "视图"),
    "none_needed": ("none needed", "无需"),
    "n_of_needed": ("{n} of {needed} needed", "需要 {needed} 项，有 {n} 项"),
    "met_of": ("{met} met, {unmet} not met", "{met} 项成立，{unmet} 项未成立"),
    "not_shown": ("{n} not shown", "{n} 项未证明"),
    "as_required": ("{outcome}, as required", "{outcome}，符合要求"),
    "against": ("{outcome}, against the requirement", "{outcome}，违反要求"),
    "Unjudged": ("Cannot be judged", "无法判断"),
    "Overrides": ("Overrides", "人工放行"),
    "Findings": ("Findings", "发现"),
    "nothing_to_report": ("Nothing to report.", "没有问题。"),
    "none_without_verdict": ("Without a verdict there are no findings.", "没有结论，故无发现。"),
    "Refusals": ("Refusals", "拒绝"),
    "was_refused": ("{goal} was refused", "{goal} 被拒绝"),
    "What was checked": ("What was checked", "检查情况"),
    "What happened": ("What happened", "经过"),
    "all_events": ("All {n} events", "全部 {n} 个事件"),
    "answer": ("answer", "返回"),
    "undecided": ("undecided", "无法确定"),
    "only_result_unjudged": (
        "{n} not judged; nothing found in the rest",
        "{n} 项未判断；其余没有问题",
    ),
    "overrides_else": ("{overrides}; nothing else found", "{overrides}；其余没有问题"),
    "waits_clean": ("still waiting; nothing found so far", "仍在等待；目前没有问题"),
}


EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = {
    # --- the trace ---
    "audit.event-number": ("event {index} has the number {seq}", "第 {index} 个事件的编号是 {seq}"),
    "audit.chain-short": (
        "the chain breaks at index {index}: events after the last one are missing",
        "哈希链在第 {index} 处断裂：末尾缺少事件",
    ),
    "audit.chain-altered": (
        "the chain breaks at index {index}: this event differs from the sealed one",
        "哈希链在第 {index} 处断裂：该事件与封存时不同",
    ),
    "audit.left-against": (
        "the step taken at `{place}` contradicts the results: {why}",
        "在 `{place}` 处执行的步骤与已有结果相反：{why}",
    ),
    "audit.branch-rejected": (
        "the model tried a branch that contradicts the results; it was rejected",
        "尝试选择与已有结果相反的分支，被驳回",
    ),
    # --- calls ---
    "audit.no-process": (
        "`{action}` was called while no process was running",
        "没有正在办理的流程时调用了 `{action}`",
    ),
    "audit.other-value": (
        "`{action}` was called with a different `{name}` from the procedure's",
        "调用 `{action}` 时，`{name}` 与流程中的值不同",
    ),
    "audit.not-asked-for": (
        "`{function}` does not ask for `{action}` at `{step}`",
        "`{function}` 在 `{step}` 处不要求调用 `{action}`",
    ),
    "audit.made-although-denied": (
        "the guard denied `{action}`, and the agent reported that it made the call",
        "拦截器拒绝了 `{action}`，智能体却报告已调用",
    ),
    "audit.after-goal": (
        "`{action}` was called although the goal had already succeeded",
        "目标已完成，仍调用了 `{action}`",
    ),
    "audit.not-running": (
        "`{action}` is the goal of `{goal}`, which is not running",
        "`{action}` 是 `{goal}` 的目标操作，而该流程未在办理",
    ),
    "audit.checks-refuse": (
        "`{action}` was called although its checks rule it out",
        "检查结果不允许，仍调用了 `{action}`",
    ),
    "audit.not-accepted-yet": (
        "`{action}` was called before the program accepted it",
        "程序尚未许可，就调用了 `{action}`",
    ),
    "audit.never-checked": (
        "`{predicate}` was never checked before `{action}`",
        "调用 `{action}` 之前从未检查 `{predicate}`",
    ),
    "audit.repeated-unknown": (
        "`{action}` was repeated although the outcome of #{seq} is unknown",
        "#{seq} 的结果不明，却再次调用了 `{action}`",
    ),
    "audit.beside-open": (
        "`{action}` was called while the outcome of `{other}` (#{seq}) was unknown, "
        "and may change the evidence for that call",
        "`{other}`（#{seq}）结果不明时调用了 `{action}`，后者可能改变其依据",
    ),
    "audit.took-effect": ("took effect", "已生效"),
    "audit.failed": ("failed", "失败"),
    "audit.answered-late": (
        "`{call}` was resolved by a person, and its tool then said that it {outcome}",
        "`{call}` 已由人工认定，之后工具返回：{outcome}",
    ),
    "audit.effect-unknown": (
        "it is unknown whether `{action}` took effect",
        "无法确定 `{action}` 是否已生效",
    ),
    "audit.until-resolved": ("{why} until it was resolved", "{why}，直至人工认定"),
    "audit.no-result": (
        "`{action}` was called and no result was recorded",
        "调用了 `{action}`，没有记录结果",
    ),
    "audit.held-back": (
        "`{action}` was tried before the program accepted it, and was blocked",
        "程序许可之前尝试调用 `{action}`，已拦截",
    ),
    # --- verdicts ---
    "audit.no-evidence": (
        "`{predicate}` was judged {verdict} although no call since the check began verifies it",
        "`{predicate}` 被判断为 {verdict}，但检查开始以来没有能验证该项的调用",
    ),
    "audit.verifiers-failed": (
        "`{predicate}` was judged true although the calls that verify it failed",
        "验证 `{predicate}` 的调用失败，却判断为 true",
    ),
    "audit.part-of-recipe": (
        "`{predicate}` was judged {verdict} before all calls of a recipe were made",
        "尚未完成全部验证调用，就把 `{predicate}` 判断为 {verdict}",
    ),
    "audit.verdict-untold": (
        "`{predicate}` was judged true although the answers do not decide it",
        "已有结果不足以判断 `{predicate}`，却判断为 true",
    ),
    "audit.evidence-says": (
        "`{predicate}` was judged {verdict}, but its evidence says {other}",
        "`{predicate}` 被判断为 {verdict}，证据表明是 {other}",
    ),
    "audit.verdict-rests": (
        "the verdict on `{predicate}` depends on it",
        "对 `{predicate}` 的判断以此为依据",
    ),
    "audit.the-verdict": ("the verdict on `{predicate}`", "对 `{predicate}` 的判断"),
    "audit.other-process": (
        "`{cited}` is a result of another process",
        "`{cited}` 是另一流程的结果",
    ),
    "audit.no-such-result": ("`{cited}` is not a result", "`{cited}` 不是结果"),
    "audit.result-wrong-call": (
        "#{seq} is a result of `{action}`, which verifies nothing here",
        "#{seq} 是 `{action}` 的结果，与此处验证无关",
    ),
    "audit.result-other-values": (
        "#{seq} is a result of `{action}` for different values",
        "#{seq} 是 `{action}` 针对其他参数值的结果",
    ),
    "audit.result-stale": (
        "#{seq} is from before a goal action changed the state (#{changed})",
        "#{seq} 早于目标操作对状态的更改（#{changed}）",
    ),
    # --- proof of a guarded call ---
    "audit.proof-rests": ("the proof of `{action}` depends on it", "`{action}` 的证明以此为依据"),
    "audit.approval-rests": (
        "it decides whether `{action}` needed an approval",
        "`{action}` 是否需要审批取决于此",
    ),
    "audit.ran-unproven": (
        "`{action}` ran unproven: {why}",
        "`{action}` 未经证明即执行：{why}",
    ),
    "audit.must-be": (
        "`{predicate}` must be {wanted}: {why}",
        "`{predicate}` 须为 {wanted}：{why}",
    ),
    "audit.what-was-done": ("what was done", "已执行的调用"),
    "audit.not-decided": ("it could not be decided", "无法判断"),
    "audit.holds": ("it is true", "成立"),
    "audit.holds-not": ("it is false", "不成立"),
    "audit.is-by": ("it is {actual} according to {evidence}", "依据 {evidence}，结果为 {actual}"),
    "audit.not-led": (
        "with the checks so far, the procedure doesn't reach `{action}`",
        "按已做的检查，程序不会到达 `{action}`",
    ),
    "audit.not-an-input": ("`{name}` isn't an input of the action", "`{name}` 不是其参数"),
    "audit.input-type": ("`{name}` has the wrong type for its input", "`{name}` 的类型不符"),
    "audit.not-fixed": (
        "`{name}` differs from the fixed value in the handbook",
        "`{name}` 不是手册规定的固定值",
    ),
    "audit.not-a-list": ("`{path}` is not a list in the answers", "结果中的 `{path}` 不是列表"),
    "audit.list-too-long": (
        "`{path}` has more than {most} elements",
        "`{path}` 的元素超过 {most} 个",
    ),
    "audit.nothing-at": ("the answers have nothing at `{path}`", "结果中没有 `{path}`"),
    "audit.not-askable": (
        "`{call}` cannot be called: `{name}` has the wrong type",
        "无法调用 `{call}`：`{name}` 的类型不符",
    ),
    "audit.awaited": ("`{call}` has no answer yet (#{seq})", "`{call}` 尚未返回（#{seq}）"),
    "audit.earlier-connection": (
        "`{call}` was answered (#{seq}) on an earlier connection",
        "`{call}` 的结果（#{seq}）来自先前的连接",
    ),
    "audit.served-already": (
        "the user's answer to `{call}` (#{seq}) was already used for `{action}` (#{change}), and "
        "each answer counts for one call",
        "`{call}`（#{seq}）已用于 `{action}`（#{change}），用户的一次答复只能用于一次调用",
    ),
    "audit.changed-since": (
        "`{action}` (#{change}) may have changed the answer to `{call}` (#{seq})",
        "`{call}` 的结果（#{seq}）早于 `{action}`（#{change}），后者可能已改变它",
    ),
    "audit.other-called": (
        "`{call}` was not called; `{other}` (#{seq}) was",
        "没有调用 `{call}`，而是调用了 `{other}`（#{seq}）",
    ),
    "audit.gate-elsewhere": (
        "`{action}` was called on an earlier connection",
        "`{action}` 是在先前的连接上调用的",
    ),
    # --- guarded actions and people ---
    "audit.not-where-accepted": (
        "`{action}` is irreversible and ran where the program does not accept it",
        "`{action}` 不可撤销，却在程序未许可处执行",
    ),
    "audit.no-procedure": (
        "`{action}` is guarded, and ran although no procedure of the handbook carries it out",
        "`{action}` 受保护，手册中没有执行它的流程，却已执行",
    ),
    "audit.rejected": ("rejected", "驳回"),
    "audit.expired": ("expired", "过期"),
    "audit.ran-after": (
        "`{action}` ran although its approval was {decision} (#{seq})",
        "审批已{decision}（#{seq}），`{action}` 仍执行",
    ),
    "audit.too-few-approvals": (
        "`{action}` ran with {n} of {needed} approvals from {roles}",
        "`{action}` 执行时只有 {n} / {needed} 项审批（{roles}）",
    ),
    "audit.other-arguments": (
        "`{action}` ran with different arguments from those approved (#{seq})",
        "`{action}` 执行时的参数与审批的不同（#{seq}）",
    ),
    "audit.held-but-shown": (
        "`{action}` was held as unproven, but the trace shows it as {grade}",
        "`{action}` 因未经证明被拦截，而记录显示其为 {grade}",
    ),
    "audit.carried-out-already": (
        "`{action}` had already been carried out (#{seq}), and nobody asked for it again",
        "`{action}` 已执行（#{seq}），且无人再次请求",
    ),
    "audit.ran-on-older": (
        "`{action}` relied on `{read}` (#{seq}), which was not read again just before it",
        "`{action}` 依据 `{read}`（#{seq}），执行前未重新查询",
    ),
    "audit.other-leaves": (
        "the recorded proof of `{action}` and the trace name different requirements",
        "`{action}` 的许可所列条件与记录不符",
    ),
    "audit.recorded-as": (
        "{what} is recorded as {recorded}, but the trace shows it as {shown}",
        "{what}记录为 {recorded}，而实际显示为 {shown}",
    ),
    # --- endings ---
    "audit.follow-up": (
        "`{goal}` was refused, and `{next}`, which comes next, was not started",
        "`{goal}` 被拒绝，后续的 `{next}` 未启动",
    ),
    "audit.claimed": (
        "completion of `{goal}` was claimed but never accepted",
        "宣称 `{goal}` 已完成，但未被接受",
    ),
    "audit.never-completed": (
        "the goal action of `{goal}` succeeded, but the process never completed",
        "`{goal}` 的目标操作已成功，流程却未结束",
    ),
    "audit.goal-not-done": (
        "`{goal}` was completed although its goal action never succeeded",
        "`{goal}` 的目标操作从未成功，却宣告完成",
    ),
    "audit.not-accepting": (
        "`{goal}` was completed at a step where the program doesn't allow it",
        "程序在此处不接受，`{goal}` 却宣告完成",
    ),
    "audit.refused-no-false": (
        "`{goal}` was refused while it could still be accepted: no check was false",
        "`{goal}` 仍可能获准却被拒绝：没有任何一项检查不成立",
    ),
    "audit.refused-other-false": (
        "`{goal}` was refused while it could still be accepted: the false checks don't rule it out",
        "`{goal}` 仍可能获准却被拒绝：不成立的检查并不排除它",
    ),
    "audit.ground-withheld": (
        "a withheld question to the user may be the reason for the refusal",
        "拒绝的依据可能是一项未显示的用户提问",
    ),
    "audit.user-did-not-give": (
        "the user was asked and did not give {names}",
        "已询问用户，用户未提供 {names}",
    ),
    "audit.not-offered": ("the tool `{action}` isn't offered", "未提供工具 `{action}`"),
    "audit.not-all-proven": (
        "some requirements of `{action}` are not met or not proven",
        "`{action}` 的要求未全部满足或未全部证明",
    ),
    "audit.held-unproven": (
        "`{action}` was held, because some of its requirements aren't proven",
        "`{action}` 被拦截，因为其要求未全部证明",
    ),
    "audit.verifier-failed": (
        "`{action}` failed (#{seq}), so `{predicate}` is undecided",
        "`{action}` 失败（#{seq}），因此无法判断 `{predicate}`",
    ),
    "audit.is-undecided": ("`{predicate}` is undecided: {why}", "无法判断 `{predicate}`：{why}"),
    # --- customers ---
    "audit.gives-away": (
        "the message may reveal the check of `{predicate}`",
        "该消息可能透露 `{predicate}` 的检查内容",
    ),
    "audit.told-sentence": (
        "the customer was told the sentence about `{predicate}`, but may hear only: {message}",
        "向客户说出了 `{predicate}` 的内容，而只可告知：{message}",
    ),
    "audit.told-answer": (
        "the customer was told the verifier's answer about `{predicate}`, but may hear only: "
        "{message}",
        "向客户透露了 `{predicate}` 的查询结果，而只可告知：{message}",
    ),
    # --- transcripts ---
    "audit.arguments-unreadable": (
        "the arguments of `{action}`, which aren't an object",
        "`{action}` 的参数不是对象",
    ),
    "audit.effect-unanswered": (
        "no answer shows whether `{action}` took effect",
        "没有结果表明 `{action}` 是否已生效",
    ),
    "audit.asked-at-once": (
        "`{action}` was called before the agent had read the answer to `{check}`",
        "智能体调用 `{action}` 时，尚未读到 `{check}` 的结果",
    ),
    "audit.done-before": (
        "whether the user asked for `{action}` with the same values again",
        "用户是否再次要求以相同的值执行 `{action}`",
    ),
    "audit.yes-of-another": (
        "someone other than the requester said yes",
        "表示同意的不是提出请求的人",
    ),
    "audit.yes-before-instruction": (
        "since its question, the agent got another instruction (a system or developer message)",
        "提问之后，智能体又收到其他指令（system 或 developer 消息）",
    ),
    "audit.neither-yes-nor-no": (
        "the user's last reply is neither a plain yes nor a plain no to one question",
        "用户最后的答复并非对某一问题的明确同意或拒绝",
    ),
    "audit.no-action": (
        "`{action}` is not an action of the handbook",
        "`{action}` 不是手册中的操作",
    ),
    "audit.no-object": (
        "`{action}` was called with arguments that are not an object",
        "调用 `{action}` 的参数不是对象",
    ),
    "audit.no-input": ("`{action}` takes no `{name}`", "`{action}` 没有参数 `{name}`"),
    "audit.input-missing": (
        "`{action}` was called without `{name}`",
        "调用 `{action}` 时缺少 `{name}`",
    ),
    "audit.called-before": (
        "`{action}` was called without an earlier check of {predicates}",
        "检查 {predicates} 之前就调用了 `{action}`",
    ),
    "audit.ran-although-false": (
        "`{action}` ran although {predicates} didn't have the required value by the newest answers",
        "按最新回答，{predicates} 不符合手册要求，`{action}` 仍执行",
    ),
    "audit.depends-on-time": ("`{predicate}` depends on the time", "`{predicate}` 取决于时间"),
    "audit.no-answer-shows": (
        "`{action}` ran although no answer shows `{predicate}`",
        "没有结果能证明 `{predicate}`，`{action}` 仍执行",
    ),
    "audit.last-words-no": (
        "the user's last reply before it was a no",
        "此前用户最后的答复是拒绝",
    ),
    "audit.yes-to-another-call": (
        "the user's last yes was followed by another guarded call",
        "用户最后一次同意之后，已进行过另一次受保护的调用",
    ),
    "audit.yes-before-change": (
        "something may have changed since the user's yes",
        "用户同意之后，情况可能已有变化",
    ),
    "audit.own-words": (
        "the agent asked the question in its own words, which may mean something else",
        "问题由智能体自行措辞，可能另有所指",
    ),
    "audit.of-predicate": ("`{predicate}`: {why}", "`{predicate}`：{why}"),
    "audit.needs": ("required: {n} from {roles}", "需要 {n} 项审批（{roles}）"),
    "audit.no-approval": (
        "`{action}` ran and no approval is on record: {needed}",
        "`{action}` 已执行，没有审批记录：{needed}",
    ),
    "audit.approval-of": ("an approval of `{action}` ({needed})", "`{action}` 的审批（{needed}）"),
    "audit.claimed-only": (
        "the agent claims that it completed {goals}, but no call did so",
        "智能体宣称已完成 {goals}，但没有相应的调用",
    ),
    "audit.refused-or-not": (
        "`{goal}` was not carried out; the record doesn't show whether and why it was refused",
        "`{goal}` 未执行；记录未表明是否被拒绝及其原因",
    ),
    "audit.nothing-rules-out": (
        "`{goal}` was not carried out, and no check that was made rules it out",
        "`{goal}` 未执行，而已做的检查并不排除它",
    ),
    "audit.call-withheld": (
        "a call or its answer is withheld completely",
        "某次调用或其结果全部未显示",
    ),
}
"""Why something is a finding, or was not judged, by code."""
