"""The runtime's sentences by code, in English and Chinese: refused steps, held calls, doubts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sopilot.values.schema import SCHEMA_SENTENCES

RUNTIME_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "separator": ("; ", "；"),
    # --- unknown names ---
    "did-you-mean": ("did you mean `{name}`?", "是否想用 `{name}`？"),
    "known-names": ("known names: {names}", "已知名称：{names}"),
    # --- handbooks ---
    "no-lower-bound": (
        "`{predicate}` sets no lower limit for `{name}` of `{goal}`: a negative value passes",
        "`{goal}` 只限制了 `{name}` 的上限（见 `{predicate}`）：负数也能通过",
    ),
    "add-lower-bound": (
        "write `schema: {{minimum: 0}}` at the input, or add `{name} > 0` to the verdict",
        "在该输入中写 `schema: {{minimum: 0}}`，或在 verdict 中加上 `{name} > 0`",
    ),
    "gate-without-verdict": (
        "`{gate}` is open after any data that `{action}` answers: a look-up may answer about "
        "somebody else",
        "`{action}` 只要回答数据，`{gate}` 就会通过：查询可能回答的是别人",
    ),
    "add-gate-verdict": (
        "write a `verdict` over the answer, such as `verdict: result.customer == customer`",
        "为其回答写 `verdict`，例如 `verdict: result.customer == customer`",
    ),
    # --- steps that do not fit ---
    "unknown-goal": ("there is no program named {goal}; {hint}", "没有名为 {goal} 的请求；{hint}"),
    "unknown-parameter": ("`{goal}` takes no {name}; {hint}", "`{goal}` 没有参数 {name}；{hint}"),
    "already-active": ("`{goal}` is already running", "`{goal}` 已在办理中"),
    "processes-exceeded": ("{limit} processes have already been started", "已开始 {limit} 个流程"),
    "suspended-exceeded": ("{limit} processes are already suspended", "已有 {limit} 个流程暂停"),
    "not-accepting": (
        "the program can't complete at {place}: the goal hasn't been reached yet",
        "程序不能在 {place} 处结束：目标尚未达成",
    ),
    "call-pending": ("call {call} has no result yet", "调用 {call} 还没有结果"),
    "no-such-call": ("no call {call} is waiting for a result", "没有等待结果的调用 {call}"),
    "steps-exceeded": (
        "this process took {limit} steps; only `fail` is allowed now",
        "本流程已执行 {limit} 步，只能用 `fail`",
    ),
    "wrong-function": (
        "the step calls `{wanted}`, not {function}",
        "当前步骤进入函数 `{wanted}`，而不是 {function}",
    ),
    "depth-exceeded": ("the stack is already {limit} frames deep", "已嵌套 {limit} 层"),
    "unknown-argument": ("there is no value named {name} here", "此处没有名为 {name} 的值"),
    "contradiction": ("{name} is {have} here, not {value}", "{name} 在此为 {have}，而不是 {value}"),
    "return-from-process": (
        "a process ends with `complete` or `fail`, not `return`",
        "流程以 `complete` 或 `fail` 结束，而不是 `return`",
    ),
    "missing-verdict": (
        "say whether it is true: set `holds` to true or false",
        "请说明是否成立：`holds` 为 true 或 false",
    ),
    "verdict-contradicts": (
        "the results make `holds` {holds}",
        "已有结果使 `holds` 为 {holds}",
    ),
    "unknown-option": ("the options are {names}", "可选项为 {names}"),
    "only-option": ("the only option is `{name}`", "唯一的选项是 `{name}`"),
    "two-options": ("the options are `then` and `otherwise`", "可选项为 `then` 和 `otherwise`"),
    "branch-contradicts": (
        "the results select the branch `{option}`",
        "已有结果应选 `{option}`",
    ),
    "wrong-artifact": ("this step emits the artifact `{name}`", "当前步骤交付 `{name}`"),
    "bad-artifact": (
        "`{name}` does not fit its schema: {problem}",
        "`{name}` 不符合其格式：{problem}",
    ),
    "nothing-amended": ("`{goal}` already has these values", "`{goal}` 已是这些值"),
    "already-carried-out": (
        "the goal of `{goal}` was carried out with its earlier values; complete it, and "
        "start it again with the new ones",
        "`{goal}` 已按原有的值办理；请先 complete，再用其他值 start",
    ),
    "no-process": ("no process is running; start one first", "没有正在办理的流程；请先用 start"),
    "wrong-step": (
        "`{operation}` does not fit at {place}, which is a {kind} step",
        "`{operation}` 不适用于 {place}",
    ),
    "unknown-decision": ("a decision is one of {names}", "决定须为以下之一：{names}"),
    "no-such-result": ("#{seq} isn't a result of this process", "#{seq} 不是本流程的结果"),
    "stale-result": ("#{seq} failed or is stale", "#{seq} 已失败或已过期"),
    "other-call": (
        "#{seq} isn't the result of the call that this step asks for",
        "#{seq} 不是当前步骤所需的结果",
    ),
    **SCHEMA_SENTENCES,
    # --- calls of the step tool that cannot be read ---
    "not-json": ("the arguments are not JSON", "参数不是 JSON"),
    "not-json-because": ("the arguments are not JSON ({error})", "参数不是 JSON（{error}）"),
    "not-an-object": ("the arguments must be a JSON object", "参数必须是 JSON 对象"),
    "no-operation": (
        "the arguments must be an object with `operation`",
        "参数必须是带有 `operation` 的对象",
    ),
    "unknown-operation": (
        "`operation` must be one of {names}",
        "`operation` 必须是以下之一：{names}",
    ),
    "in-operation": ("{operation}: {problem}", "{operation}：{problem}"),
    "not-a-string": ("`{name}` must be a string", "`{name}` 必须是字符串"),
    "arguments-not-an-object": ("`arguments` must be an object", "`arguments` 必须是对象"),
    "holds-not-a-truth": ("`holds` must be true or false", "`holds` 必须是 true 或 false"),
    "holds-and-undecided": (
        "give `holds` or `undecided`, not both",
        "`holds` 和 `undecided` 只给一个",
    ),
    "evidence-not-a-list": (
        "`evidence` must be a list of strings such as `#12`",
        "`evidence` 必须是字符串列表，如 `#12`",
    ),
    "evidence-not-cited": (
        "`evidence` must cite results by number, such as `#12`, not {text}",
        "`evidence` 须以 `#12` 的形式引用结果，而不是 {text}",
    ),
    "not-numbers": (
        "`{name}` must be the numbers of `judge`, such as `1 2`",
        "`{name}` 须为判断的编号，如 `1 2`",
    ),
    "says-nothing": (
        "say what to do: `start`, `true`, `false`, `complete` or `fail`",
        "请说明要做什么：`start`、`true`、`false`、`complete` 或 `fail`",
    ),
    "not-in-this-tool": ("`{name}` isn't an operation of this tool", "此工具没有 `{name}` 操作"),
    "no-undecided": (
        "`undecided` isn't a verdict here: `holds` is true or false",
        "此处没有 `undecided`：`holds` 为 true 或 false",
    ),
    "other-rule": (
        "this verdict is on `{rule}`, but the program is at `{function}`",
        "这一判断针对 `{rule}`，但程序位于 `{function}`",
    ),
    "result-of-another": (
        "{cited} isn't a result of this `{goal}`: make the call again here, and cite that",
        "{cited} 不是本次 `{goal}` 的结果：请在此重新调用并引用新的结果",
    ),
    "no-result": (
        "there is no result {cited} here; cite results by number, such as `#12`",
        "此处没有结果 {cited}；请以 `#12` 的形式引用结果",
    ),
    "step-before": ("the previous step was rejected", "前一步未被接受"),
    "empty-message": ("an empty message", "空消息"),
    # --- calls of tools that cannot be made ---
    "unknown-tool": ("there is no tool `{name}`; {hint}", "没有工具 `{name}`；{hint}"),
    "no-such-argument": (
        "`{tool}` has no argument `{name}`; {hint}",
        "`{tool}` 没有参数 `{name}`；{hint}",
    ),
    "argument-problem": (
        "{problem}; `{tool}` takes `{takes}`",
        "{problem}；`{tool}` 的参数为 `{takes}`",
    ),
    "also-needs": ("`{tool}` also needs {names}", "`{tool}` 还需要 {names}"),
    # --- guarded calls that must wait ---
    "not-evaluated": (
        "the requirements of `{action}` could not be evaluated: {problem}",
        "无法核验 `{action}`：{problem}",
    ),
    "proof-not-evaluated": (
        "its proof could not be evaluated ({kind})",
        "无法核验其依据（{kind}）",
    ),
    "outcome-open": (
        "the outcome of call `{call}` of `{action}` is unknown; don't make it again",
        "`{action}` 的调用 `{call}` 结果未知；不得再次调用",
    ),
    "no-procedure": (
        "no procedure of this handbook carries out `{action}`, so it is never called: "
        "tell the user that it can't be done here",
        "此处没有流程执行 `{action}`，因此无法调用：请告知用户此处无法办理",
    ),
    "start-first": (
        "`{action}` is part of a request: `start` {goals} first",
        "`{action}` 属于一项请求：请先 `start` {goals}",
    ),
    "checks-first": (
        "`{action}` comes after its checks, but `{function}` is still open: {first} first",
        "`{action}` 须在其检查之后，`{function}` 尚未完成：请先{first}",
    ),
    "unmet": (
        "`{action}` must not be called, because {names} is not met: refuse with `fail`, "
        "unless the user corrects a value",
        "不得调用 `{action}`，因为 {names} 与要求不符：用 `fail` 拒绝，除非用户更正",
    ),
    "what-it-requires": ("what it requires", "其要求"),
    "not-asked-for": (
        "`{goal}` does not ask for `{action}` now: {first} first",
        "`{goal}` 现在不需要 `{action}`：请先{first}",
    ),
    "first-call": ("call `{call}`", "调用 `{call}`"),
    "first-ask": ("ask the user for {names}", "向用户询问 {names}"),
    "first-check": ("check `{function}`", "检查 `{function}`"),
    "first-verdict": ("give your verdict on `{function}`", "给出对 `{function}` 的判断"),
    "first-complete": ("`complete`", "用 `complete`"),
    "first-step": ("take the step `{label}`", "完成步骤 `{label}`"),
    "no-input": (
        "`{name}` isn't an input of `{action}` in the handbook, so it wasn't checked: call "
        "`{action}` without it; it takes {names}",
        "`{name}` 不是 `{action}` 的参数，未经核验：请去掉它再调用；它的参数为 {names}",
    ),
    "nothing": ("nothing", "无"),
    "stand-in": (
        "`{name}` has a value that sopilot can't pass to a tool unchanged: JSON can't express "
        "it, or it looks like a withheld value; call it with a plain value",
        "`{name}` 的值无法原样交给工具：请改用普通的值",
    ),
    "checked-for-another": (
        "`{action}` was checked for a different `{name}`: call it with the value that was "
        "checked, or correct it in the running request first",
        "`{action}` 核验时的 `{name}` 是另一个值：请用核验过的值调用，或先在办理中的请求里更正",
    ),
    "checked-for-others": (
        "`{action}` was checked for different arguments",
        "`{action}` 核验时的参数不同",
    ),
    "must-be-the-same": (
        "`{name}` of `{action}` must have the same value as another of its inputs: amend it, or "
        "reject the call",
        "`{action}` 的 `{name}` 必须与另一参数相同：请改正或驳回",
    ),
    "blocked": (
        "`{action}` is blocked: {missing}. Make the missing calls and call it again, "
        "or refuse with `fail`; an operator may also decide",
        "`{action}` 已拦截：{missing}。请补上缺少的调用后再次调用，或用 `fail` 拒绝；"
        "也可由操作员决定",
    ),
    "no-longer-proven": (
        "`{action}` is blocked: {missing}. Make the missing calls and call it again; an operator "
        "may also decide",
        "`{action}` 已拦截：{missing}。请补上缺少的调用后再次调用；也可由操作员决定",
    ),
    "fenced": ("`{action}` is blocked: {why}", "`{action}` 已暂停：{why}"),
    "being-carried-out": (
        "`{guarded}` is being carried out; call `{action}` again once it has an answer",
        "`{guarded}` 正在执行；待其有结果后再调用 `{action}`",
    ),
    "outcome-needed": (
        "the outcome of call `{call}` of `{guarded}` is unknown, and `{action}` may change the "
        "evidence for that call; a person must first record how it ended",
        "`{guarded}` 的调用 `{call}` 结果未知，而 `{action}` 可能改变其依据；须先由人确认其结果",
    ),
    "declined": (
        "the user said no to exactly this (#{seq}), and has asked for nothing since; don't ask "
        "again, and refuse the request or change it",
        "用户已拒绝此事（#{seq}），此后没有新的请求；请勿再问，请拒绝该请求或更改它",
    ),
    "outcome-elsewhere": (
        "the same call of `{action}` has an unknown outcome in session {session} (call `{call}`); "
        "a person must first record how it ended",
        "会话 {session} 中对 `{action}` 的同一调用（`{call}`）结果未知；须先由人确认其结果",
    ),
    "broke-off": (
        "`{action}` was interrupted, but may have been carried out",
        "`{action}` 中断，可能已经执行",
    ),
    "reported-error": (
        "`{action}` reported an error, but may have been carried out; its answer: {answer}",
        "`{action}` 报告了错误，可能已经执行；它的回答：{answer}",
    ),
    "waits": (
        "`{action}` is waiting for approval: {approvals} of {needed} from {roles} (call `{call}`)",
        "`{action}` 等待批准：需要 {roles} 批准 {needed} 次，已有 {approvals} 次（调用 `{call}`）",
    ),
    "waits-amended": (
        "`{action}` is waiting for approval with different arguments, {arguments}: {approvals} of "
        "{needed} from {roles} (call `{call}`)",
        "`{action}` 以其他参数 {arguments} 等待批准：需要 {roles} 批准 {needed} 次，"
        "已有 {approvals} 次（调用 `{call}`）",
    ),
    "approved": ("`{action}` is approved", "`{action}` 已获批准"),
    "approved-amended": (
        "`{action}` is approved with different arguments: {arguments}; use these",
        "`{action}` 已以其他参数获批：{arguments}；请使用这些参数",
    ),
    "rejected": (
        "`{action}` was rejected; refuse the request or change it",
        "`{action}` 被驳回；请拒绝该请求或更改它",
    ),
    "rejected-by": (
        "`{action}` was rejected by {role}; refuse the request or change it",
        "`{action}` 被 {role} 驳回；请拒绝该请求或更改它",
    ),
    # --- checks that are not proven ---
    "fixed-input": ("`{name}` is fixed to {value} here", "`{name}` 在此固定为 {value}"),
    "two-values": (
        "two inputs are named `{name}` and have different values",
        "`{name}` 有两个不同的值",
    ),
    "action-needs": ("`{action}` needs `{name}`", "`{action}` 需要 `{name}`"),
    "no-path": (
        "with the checks so far, the procedure doesn't reach `{action}`",
        "按已核验的内容，流程不通向 `{action}`",
    ),
    "model-only": (
        "only a model has judged it, and the handbook doesn't allow that",
        "只有模型作出判断，而手册不允许",
    ),
    "reread-in-vain": (
        "other calls were made while `{action}` was repeated; call again when they have ended",
        "重复调用 `{action}` 期间又有其他调用；请在它们结束后再调用",
    ),
    "not-reread": (
        "`{action}` must be read again first, but what it requires isn't proven now",
        "须先再次读取 `{action}`，但它所要求的现在未被证明",
    ),
    "not-done-at": ("`{place}` was not done", "`{place}` 尚未完成"),
    "computed-otherwise": (
        "`{name}` would now have a different value: start the goal again to recompute it",
        "`{name}` 现在的计算结果会不同：请重新 start",
    ),
    "undecided": (
        "`{predicate}` must be {wanted}, but is undecided: {why}",
        "`{predicate}` 须为 {wanted}，但尚未判定：{why}",
    ),
    "not-so": (
        "`{predicate}` must be {wanted}, but is {holds}",
        "`{predicate}` 须为 {wanted}，实为 {holds}",
    ),
    "not-so-by": (
        "`{predicate}` must be {wanted}, but is {holds} according to {evidence}",
        "`{predicate}` 须为 {wanted}，实为 {holds}（{evidence}）",
    ),
    "no-value": ("`{name}` has no value", "`{name}` 没有值"),
    "cannot-be-asked": ("`{action}` can't be called: {problem}", "无法调用 `{action}`：{problem}"),
    "not-answered": ("`{call}` has no answer yet", "`{call}` 尚无结果"),
    "not-called": ("`{call}` has not been called", "尚未调用 `{call}`"),
    "failed-last": ("`{call}` failed the last time it was called", "最近一次调用 `{call}` 失败"),
    "failed-last-at": (
        "`{call}` failed the last time it was called (#{seq})",
        "最近一次调用 `{call}` 失败（#{seq}）",
    ),
    "call-failed": ("`{action}` failed (#{seq})", "`{action}` 失败（#{seq}）"),
    "called-with-more": (
        "`{call}` was called again with extra arguments (#{seq})",
        "之后又带多余的参数调用了 `{call}`（#{seq}）",
    ),
    "more-since": (
        "it has been called with extra arguments since then (#{seq})",
        "此后又带多余的参数调用了它（#{seq}）",
    ),
    "changes-what-it-reads": (
        "`{action}` changes the data that it reads, so it proves nothing",
        "`{action}` 会改变它所读取的内容，因此不能作为证明",
    ),
    "call-again": ("`{call}` must be called again: {why}", "须再次调用 `{call}`：{why}"),
    "needs": ("it needs `{name}`", "缺少 `{name}`"),
    "answers-cannot-tell": ("the answers don't decide its verdict", "结果不足以作出判断"),
    "answers-cannot-tell-because": (
        "the answers don't decide its verdict: {problem}",
        "结果不足以作出判断：{problem}",
    ),
    "contradicting-ways": (
        "the ways to verify it contradict each other",
        "不同的验证方式相互矛盾",
    ),
    "calls-overlap": ("calls of `{action}` overlap", "`{action}` 的调用相互重叠"),
    "answer-opens-nothing": (
        "the answer of `{action}` (#{seq}) doesn't clearly say that it succeeded, and the gate has "
        "no `verdict` that reads it",
        "`{action}` 的回答（#{seq}）没有明确表示成功，该验证环节也没有 `verdict` 可据以判断",
    ),
    "order-unknown": (
        "it is unknown whether `{action}` or the call that closes it came last",
        "无法确定 `{action}` 与关闭它的调用孰先孰后",
    ),
    "judged-undecided": ("it was judged undecided", "判断为 undecided"),
    "not-judged": ("it wasn't judged for these values", "尚未对这些值作出判断"),
    "judged-on-older": (
        "it was judged (#{seq}) on answers that aren't the newest",
        "判断（#{seq}）所依据的不是最新结果",
    ),
    "earlier-connection": (
        "`{action}` was called on an earlier connection to its server: call it again",
        "`{action}` 是在先前的连接上调用的：请再次调用",
    ),
    "connection-changed": (
        "the connection to its server has been replaced since then (#{seq})",
        "此后与服务器的连接已更换（#{seq}）",
    ),
    "may-change": (
        "`{action}` got no answer, and may still change it",
        "`{action}` 没有返回结果，仍可能改变它",
    ),
    "may-have-changed": (
        "`{action}` (#{seq}) may have changed it since",
        "此后 `{action}`（#{seq}）可能已改变它",
    ),
    "may-be-changing": (
        "`{action}` (#{seq}) may be changing it: its outcome is unknown",
        "`{action}`（#{seq}）可能正在改变它，结果未知",
    ),
    "used-already": (
        "it was already used for a call, and each answer from the user counts for one call",
        "已有调用以它为依据，用户的一次答复只用于一次调用",
    ),
    # --- checks that the runtime passed by itself ---
    "bound-already": ("result already known in this frame", "此处已有结果"),
    "judged-already": ("already judged for the same values (#{seq})", "相同的值已判断过（#{seq}）"),
    "gate-open": ("gate already established in this process", "验证环节已在本流程中通过"),
}
