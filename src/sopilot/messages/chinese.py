"""中文用语。The Chinese words, under the same keys as the English ones.

Reasons that the runtime gives in English, in the language of the session.

The trace keeps them in one language; what a model reads is translated where it is shown. Values
and identifiers, which stand in quotation marks or backticks, are never touched.

中文会话用语。The Chinese words of a running session, under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

CHINESE_ANSWERS: Final[Mapping[str, str]] = {
    # --- where the machine stands ---
    "no_process": "没有正在办理的流程。",
    "position": "位置：{items}",
    "gathered": "此处证据：{items}",
    "nothing": "无",
    "next": "下一步：{items}",
    "move_tool": "调用工具 {call}",
    "move_goal": "调用目标工具 {call}",
    "move_ask": "询问用户：{names}",
    "move_call": "用 `call` 进入函数 {call}",
    "move_values": "用 `call` 给出 {names}，以进入函数 {call}",
    "short_move_values": "用 `amend` 给出 {names}",
    "at_least": "，至少给出 {names}",
    # --- what follows a verdict ---
    "after": "{edges} 之后：{move}",
    "ahead_judge": "判断 {number} {call}，依据 {evidence}",
    "ahead_says": "：{says}",
    "no_tool": "参数值",
    # --- answers ---
    "done": "已完成：{did}。",
    "nothing_to_do": "无需操作",
    "nothing_done": "未执行：{problem}。",
    "not_here": "这一步与流程引擎当前的位置不符",
    "not_done": "未办理：{problem}。",
    "passed": "已通过 {label}：{ground}。",
    "back_in": "回到暂停的流程 `{goal}`。",
    "now_at": "当前位置：{place}。",
    "fits": "可用操作：{shapes}。",
    "fits_tool": "调用工具 {call}",
    "fits_ask": "向用户询问 {names}",
    "fits_start": "start {call}",
    "fits_call": "用 `call` 进入函数 {call}",
    "fits_find": "（向用户询问 {names}，除非结果中已有）",
    "not_called": "未调用：{problem}。",
    "outcome_unknown": "结果未知：{problem}。请勿再次调用；已通知操作员。",
    "empty_reply": "上一条消息是空的。请与用户交谈或调用工具。",
    "user_silent": "用户没有更多要说的。请结束对话：{ways}。",
    "folded": "已折叠：以下是此前对话与结果中最新的部分。",
    # --- tools ---
    "step_tool": (
        "使流程引擎前进一步。`start` 开始一项请求；`amend` 更正它的值；`call` 进入当前步骤的函数；"
        "`return` 返回判断结果并附证据编号；`select_branch`；`emit_artifact`；"
        "目标达成后用 `complete`；拒绝用 `fail`。回答会说明当前步骤。"
    ),
    "step_tool_paper": (
        "使流程引擎前进一步。`start` 开始一项请求；`call` 进入当前步骤的函数；"
        "`return` 给出是否成立并附证据；`select_branch`；`emit_artifact`；"
        "目标达成后用 `complete`；拒绝用 `fail`。回答会说明流程引擎所在的位置。"
    ),
    "field_arguments_paper": "start、call、return：已知的值，按名称给出。",
    "step_tool_short": "使流程引擎前进。",
    "short_start": "请求的名称。",
    "short_arguments": "`start` 的参数值，按名称给出。",
    "short_amend": "要更正的参数值。",
    "short_true": "判断为 true 的编号，如 `1,2`。",
    "short_false": "判断为 false 的编号。",
    "short_undecided": "无法判断的编号；视为不符合要求。",
    "short_option": "“现在”指明的选项。",
    "short_content": "文本或 JSON。",
    "field_goal": "start：请求的名称。",
    "field_function": "call：当前步骤的函数。",
    "field_arguments": "start、amend、call、return：已知的值，按名称给出。",
    "field_holds": "return：条件是否为 true。",
    "field_undecided": "return：若结果无法说明，用 true 代替 `holds`。",
    "field_evidence": "return：工具结果的编号，如 `#12`，或为此调用的工具名称。",
    "field_value": "return：值得保留的值。",
    "field_option": "select_branch：所选项。",
    "field_name": "emit_artifact：产物的名称。",
    "field_content": "emit_artifact：内容（文本或 JSON）。",
    "field_summary": "complete：办理了什么；用户会读到。",
    "field_reason": "fail：哪一项与要求不符，或用户无法提供什么；用户会读到。",
    "end_tool": "业务办理完毕或必须拒绝时，结束对话。",
    "end_outcome": "已办理为 `executed`，否则为 `refused`。",
    "end_reason": "办理了什么，或哪一项与要求不符；用户会读到。",
}


CHINESE: Final[Mapping[str, str]] = {
    # --- functions ---
    "process": "流程",
    "group": "条件组",
    "gate": "验证环节",
    "rule": "规则",
    "purpose": "用途：{says}",
    "true_if": "为 true 的条件：{condition}",
    "all_first": "；全部查明之后再作判断",
    "true_means": "若属实则为 true：{says}",
    "false_means": "若属实则为 false：{says}",
    "establishes": "须达成：{says}",
    "told": "若因此项拒绝请求，只对用户说：{says}",
    # --- steps ---
    "check_must": "{call} 须为 {wanted}；否则 → {target}",
    "check_find": "查明 {call}",
    "found": "；{wanted} → {target}",
    "found_else": "，否则 → {target}",
    "found_on": "，否则继续",
    "either": "；无论结果如何都继续",
    "bound_as": "（记为 {slot}）",
    "for_each": "，对 {where} 中的每个 {element} 各一次",
    "undecided": "undecided",
    "goto": "；→ {target}",
    "branch": "若 {when} → {then}，否则 → {otherwise}",
    "choose": "选择：{says}",
    "option": "- {name} → {target}",
    "option_says": "：{says}",
    "act": "调用工具 {call}",
    "goal": "调用目标工具 {call}",
    "supplied": "——{names}：取自先前的结果或询问用户",
    "computed": "——{names}：取先前算出的值",
    "instead": "或改用：{calls}",
    "instead_of_all": "或以下列调用代替以上全部调用：{calls}",
    "then": "，然后 ",
    "ask": "向用户询问 {names}（对话中已有则不必）",
    "do": "执行：{says}",
    "do_with": "（工具：{names}）",
    "emit": "交付产物 {name}",
    "judge_you": "由你根据这些结果判断：true 或 false",
    "judge_values": "由你仅根据参数值判断：true 或 false；无需工具",
    "judge_unverified": (
        "没有可用的核验工具：由你根据已知信息判断 true 或 false；若无从判断，则拒绝"
    ),
    "judge_gate": "仅当本次调用成功才为 true；用户可以更正后重试",
    "judge_gate_answer": "仅当本次调用成功且其结果表明如此才为 true；用户可以更正后重试",
    "judge_machine": "由流程引擎判断；仅在它无法判断时由你判断",
    "judge_gate_machine": "调用成功后由流程引擎判断；用户可以更正后重试",
    "judge_fact": "仅当该调用在本次会话中已成功才为 true；不要为这项检查去调用",
    "judge_fact_machine": (
        "由流程引擎判断：仅当该调用在本次会话中已成功才为 true；不要为这项检查去调用"
    ),
    "return_value": "结果 = {when}",
    "complete": "办理完毕",
    "fail": "拒绝，并说明哪一项与要求不符",
    "remark": "——{says}",
    "and": " 且 ",
    "or": " 或 ",
    "not": "非 {slot}",
    "unknown": "?{name}",
    # --- the moving part of a frame ---
    "results": "结果：{items}",
    "known": "已知：{items}",
    "separator": "; ",
    "origin": " (= {name})",
    "evidence": " [{items}]",
    "keeps": " ({value})",
    "not_met": "（与要求不符：{names}）",
    "now": "现在：{todo}",
    "now_check": "用 `{tool}`，operation 为 `call`，`function` 为 `{function}`。",
    "now_check_with": (
        "用 `{tool}`，operation 为 `call`，`function` 为 `{function}`，`arguments` 为 {values}。"
        "对话中没有的向用户询问；若用户无法提供，用 `{tool}`，operation 为 `fail`，"
        "并在 `reason` 中说明。"
    ),
    "now_branch": (
        "用 `{tool}`，operation 为 `select_branch`，"
        "`option` 按结果选 `then`（→ {then}）或 `otherwise`（→ {otherwise}）。"
    ),
    "now_choose": "用 `{tool}`，operation 为 `select_branch`，`option` 选其中一项：{names}。",
    "now_act": "调用工具 `{action}`；其结果即证据。",
    "now_act_with": (
        "调用工具 `{action}`；{names} 须取自先前的结果或用户，绝不编造。若无人能够提供，{way}。"
    ),
    "now_gate_with": (
        "调用工具 `{action}`；{names} 须取自对话或先前的结果，绝不编造。若都没有，向用户询问，"
        "必要时再问一次。若用户无法提供，{way}。"
    ),
    "now_act_maybe": "调用工具 `{action}`，仅在用户给出 {names} 时带上它；其结果即证据。",
    "now_act_failed": (
        "`{action}` 的结果为 `failed`（{seqs}）。若这已回答了问题，{verdict}；"
        "否则换用其他值或其他途径{undecided}。"
    ),
    "now_gate_failed": (
        "`{action}` 的结果为 `failed`（{seqs}）。告知用户，用户可以更正后重试。"
        "若用户无法更正，{way}。"
    ),
    "now_goal": "决定允许办理：调用工具 `{action}`。",
    "now_goal_maybe": "决定允许办理：调用工具 `{action}`，仅在用户给出 {names} 时带上它。",
    "now_goal_failed": (
        "`{action}` 的结果为 `failed`（{seqs}）。与用户核对并更正后再调用，否则{way}。"
    ),
    "now_goal_blocked": (
        "`{action}` 已拦截：{why}。请补上缺少的调用后再次调用{amend}；否则{way}。"
    ),
    "or_amend": "，或用 operation `amend` 更正参数值",
    "short_or_amend": "，或用 `amend` 更正参数值",
    "now_ask": "向用户询问 {names}；若对话中已有，{next}。若用户无法提供，{way}。",
    "now_ask_act": (
        "若对话中没有 {names}，向用户询问，然后用它调用工具 `{action}`。若用户无法提供，{way}。"
    ),
    "way_gate": "用 `{tool}`，operation 为 `return`，`holds` 为 false",
    "short_way_gate": '用 `{tool}`，`false` 为 "1"；若“false 之后”为 fail，同时 `fail` 为 true',
    "way_fail": "用 `{tool}`，operation 为 `fail`，并在 `reason` 中说明",
    "short_way_fail": "用 `{tool}`，`fail` 为 true，并告知用户原因",
    "way_next": "用 `{tool}`，operation 为 `select_branch`，`option` 为 `next`",
    "short_way_next": '用 `{tool}`，`option` 为 "next"',
    "now_do": "执行它，然后{next}。",
    "now_emit": "用 `{tool}`，operation 为 `emit_artifact`，`name` 为 `{name}`，并给出 `content`。",
    "short_now_emit": "用 `{tool}`，`name` 为 `{name}`，并给出 `content`。",
    "verdict": "用 `{tool}`，operation 为 `return`，`holds` 为 true 或 false，并附 `evidence`",
    "verdict_values": (
        "用 `{tool}`，operation 为 `return`，`holds` 为 true 或 false；没有证据可引用"
    ),
    "short_verdict_values": '给出判断：用 `{tool}`，`true` 为 "1" 或 `false` 为 "1"',
    "short_verdict": '给出判断：用 `{tool}`，`true` 为 "1" 或 `false` 为 "1"',
    "or_undecided": "；若结果无法说明，不给 `holds` 而给 `undecided`: true（视为不符合要求）",
    "short_or_undecided": '；若结果无法说明，`undecided` 为 "1"（视为不符合要求）',
    "now_return": "{verdict}{undecided}。",
    "now_return_machine": "流程引擎无法判断：{verdict}{undecided}。",
    "now_return_group": "用 `{tool}`，operation 为 `return`，按结果 `holds` 为 {holds}。",
    "short_now_check": "用 `{tool}`，`call` 为 `{function}`。",
    "short_now_check_with": (
        "缺少 {names}：用 `{tool}`，`amend` 为 {values}。对话中没有的向用户询问；"
        "若用户无法提供，用 `{tool}`，`fail` 为 true，并告知用户原因。"
    ),
    "short_now_branch": (
        "用 `{tool}`，`option` 按结果选 `then`（→ {then}）或 `otherwise`（→ {otherwise}）。"
    ),
    "short_now_choose": "用 `{tool}`，`option` 选其中一项：{names}。",
    "short_now_return_group": '用 `{tool}`，按结果 `{holds}` 为 "1"。',
    "now_complete": "用 `{tool}`，operation 为 `complete`；其 `summary` 告知用户办理了什么。",
    "short_now_complete": "用 `{tool}`，`complete` 为 true；告知用户办理了什么。",
    "now_fail": "用 `{tool}`，operation 为 `fail`；其 `reason` 告知用户哪一项与要求不符。",
    "short_now_fail": "用 `{tool}`，`fail` 为 true；告知用户哪一项与要求不符。",
    "now_fail_told": (
        "用 `{tool}`，operation 为 `fail`；其 `reason` 只供记录。"
        "绝不向用户透露哪一项与要求不符，也不透露工具的结果。只对用户说：{says}"
    ),
    "short_now_fail_told": (
        "用 `{tool}`，`fail` 为 true。绝不向用户透露哪一项与要求不符，也不透露工具的结果。"
        "只对用户说：{says}"
    ),
    "remedy": "用户可以：{says}",
    # --- whole program ---
    "flat_intro": (
        "下面的程序就是办事流程。从流程开始，依次执行以下各步："
        "检查是指下文同名的函数，它根据工具的结果得出 true 或 false；箭头表示转到哪一步。"
        "只有当步骤走到目标工具时才调用它；若走到 `refuse`，则拒绝并说明哪一项与要求不符。"
    ),
    # --- prose ---
    "prose_intro": "如何办理 {name}（{parameters}）。",
    "prose_no_values": "不需要参数",
    "prose_steps": "依次执行以下各步；有跳转说明的，按说明跳转。",
    "prose_check_must": "以下必须成立：",
    "prose_check_find": "查明“{name}”。",
    "prose_must": "“{name}”的结果须为 {wanted}。",
    "prose_group_must": "下文“{name}”部分的结果须为 {wanted}。",
    "prose_see": "见下文“{name}”{values}。",
    "prose_values": "，其中 {values}",
    "prose_value": "{name} 为 {value}",
    "prose_met": "若结果为 {wanted}，转到第 {number} 步。",
    "prose_unmet": "否则转到第 {number} 步。",
    "prose_either": "无论结果如何都继续。",
    "prose_on": "否则继续下一步。",
    "prose_goto": "转到第 {number} 步。",
    "prose_branch": "查看结果：若{when}，转到第 {then} 步；否则转到第 {otherwise} 步。",
    "prose_holds": "“{slot}”的结果为 true",
    "prose_holds_not": "“{slot}”的结果为 false",
    "prose_choose": "作出决定：{says}",
    "prose_option": "若选“{name}”{says}，转到第 {number} 步。",
    "prose_option_says": "（{says}）",
    "prose_act": "调用工具 {call}。",
    "prose_goal": "所有检查均已通过：调用工具 {call}。",
    "prose_with": "{action}（{values}）",
    "prose_without": "{action}",
    "prose_each": "，对 {where} 中的每个 {element} 各一次",
    "prose_named": "（其结果称为 {name}）",
    "prose_answer": "结果中 {where} 处的值",
    "prose_unknown": "`{name}`（待获取）",
    "prose_supplied": "{names} 取自先前的结果或询问用户，绝不编造。",
    "prose_ask": "向用户询问 {names}（对话中已有则不必）。",
    "prose_do": "{says}",
    "prose_do_with": "可使用 {names}。",
    "prose_emit": "交付“{name}”。",
    "prose_judge_you": "根据工具的结果判断为 true 还是 false，并保留证据。",
    "prose_judge_values": "根据参数值判断为 true 还是 false；无需工具。",
    "prose_judge_unverified": (
        "没有可用的核验工具：根据已知信息判断为 true 还是 false，否则拒绝。"
    ),
    "prose_judge_gate": "仅当本次调用成功才为 true；用户可以更正后重试。",
    "prose_judge_gate_answer": "仅当本次调用成功且其结果表明如此才为 true；用户可以更正后重试。",
    "prose_judge_fact": "仅当该调用在本次会话中已成功才为 true；不要为这项检查去调用。",
    "prose_return_fixed": "到此，本部分结果为 {value}。",
    "prose_return_value": "若{when}，本部分结果为 true，否则为 false。",
    "prose_complete": "办理完毕。",
    "prose_fail": "拒绝，并告知用户哪一项与要求不符。",
    "prose_groups": "条件组",
    "prose_gates": "需用户配合的验证",
    "prose_rules": "如何查明条件是否成立",
    "prose_function": "“{name}”{parameters}",
    "colon": "：",
    "prose_parameters": "（针对 {names}）",
    "prose_instead": "或改用：{calls}。",
    "prose_remark": "（{says}）",
    "prose_list_and": "，并且 ",
    "prose_values_and": "，",
    # --- official wording ---
    "official_intro": (
        "条件按层级列出。“必须满足以下全部条件”之下每一项都是必需的，"
        "“必须满足以下至少一项条件”之下满足一项即可，“必须按顺序完成以下步骤”之下各项依次进行。"
        "编号表示有顺序，圆点表示无顺序。调用一项操作之前，先核实其要求的条件。"
    ),
    "official_constrained": "### 有约束的操作：",
    "official_free": "### 无约束的操作：",
    "official_all": "必须满足以下全部条件：",
    "official_any": "必须满足以下至少一项条件：",
    "official_in_order": "必须按顺序完成以下步骤：",
    "official_first": "必须满足以下至少一项条件，按此顺序尝试：",
    "official_otherwise": "若因此拒绝：{told}",
    "official_none": "无",
    # --- the same as code ---
    "code_intro": (
        "每个操作列出它的要求。`require all` 要求其下每一行，`require any` 要求其中一行，"
        "`require in_order` 要求每一行依次成立，`require first` 依次尝试、要求其中一行。"
        "调用操作之前先核实。"
    ),
    "code_action": "action {name}({parameters}):",
    "code_all": "require all:",
    "code_any": "require any:",
    "code_in_order": "require in_order:",
    "code_first": "require first:",
    "code_check": "check ",
    "code_none": "pass",
    # --- recipes ---
    "recipes_title": "### 各项条件如何核实：",
    "recipe_calls": "  调用工具 {calls}",
    "recipe_or": "  或 {calls}",
    "recipe_gate": "  通过调用工具 {calls} 使其成立",
    "recipe_arguments": "  根据参数值判断；无需工具",
    "recipe_none": "  没有可用的核验工具",
}


_KEPT = re.compile(r'`[^`]*`|"(?:[^"\\]|\\.)*"')


_T = r"(\0\d+\0)"
"""A value or an identifier, taken out while the words around it are translated."""


_CHINESE: Final[tuple[tuple[str, str], ...]] = (
    (rf"did you mean {_T}\?", r"是否想用 \1？"),
    (r"known names: ", "已知名称："),
    # --- steps that do not fit ---
    (rf"no program is called {_T}; ", r"没有名为 \1 的请求；"),
    (rf"{_T} takes no {_T}; ", r"\1 没有参数 \2；"),
    (rf"{_T} is running already", r"\1 已在办理中"),
    (r"(\d+) processes were started already", r"已开始 \1 个流程"),
    (r"(\d+) processes are suspended already", r"已有 \1 个流程暂停"),
    (
        r"the program does not accept at (\S+): the goal is not reached yet",
        r"流程引擎在 \1 处不能结束：目标尚未达成",
    ),
    (rf"call {_T} has no result yet", r"调用 \1 还没有结果"),
    (rf"no call {_T} waits for a result", r"没有等待结果的调用 \1"),
    (r"this process took (\d+) steps; only \S+ is left", r"本流程已执行 \1 步，只能用 `fail`"),
    (rf"the step calls {_T}, not {_T}", r"当前步骤进入函数 \1，而不是 \2"),
    (r"the stack is (\d+) frames deep already", r"已嵌套 \1 层"),
    (rf"nothing here is called {_T}", r"此处没有名为 \1 的值"),
    (rf"{_T} is (\S+) here, not (\S+)", r"\1 在此为 \2，而不是 \3"),
    (rf"a process ends with {_T} or {_T}, not {_T}", r"流程以 \1 或 \2 结束，而不是 \3"),
    (rf"say whether it holds: {_T} is true or false", r"请说明是否成立：\1 为 true 或 false"),
    (rf"the bound results make {_T} (true|false)", r"已有结果使 \1 为 \2"),
    (rf"the options are {_T} and {_T}", r"可选项为 \1 和 \2"),
    (r"the options are ", "可选项为 "),
    (rf"the only option is {_T}", r"唯一的选项是 \1"),
    (rf"the bound results take {_T}", r"已有结果应选 \1"),
    (rf"the step hands over {_T}", r"当前步骤交付 \1"),
    (rf"{_T} does not fit its schema: ", r"\1 不符合其格式："),
    (rf"{_T} has these values already", r"\1 已是这些值"),
    (
        rf"the goal of {_T} was carried out with the values that it had; complete it, and start "
        r"it again for the others",
        r"\1 已按原有的值办理；请先 complete，再用其他值 start",
    ),
    (r"no process is running; start one first", "没有正在办理的流程；请先用 start"),
    (rf"{_T} does not fit at (\S+), which is a (\w+) step", r"\1 不适用于 \2"),
    # --- wrong shapes ---
    (r"the arguments are not JSON( \(.*\))?", "参数不是 JSON"),
    (r"the arguments must be a JSON object", "参数必须是 JSON 对象"),
    (rf"the arguments must be an object with {_T}", r"参数必须是带有 \1 的对象"),
    (rf"{_T} must be one of ", r"\1 必须是以下之一："),
    (rf"{_T} is missing", r"缺少 \1"),
    (rf" in {_T}", r"（在 \1 中）"),
    (rf"{_T} must be a string", r"\1 必须是字符串"),
    (rf"{_T} must be an object", r"\1 必须是对象"),
    (rf"{_T} must be true or false", r"\1 必须是 true 或 false"),
    (rf"give {_T} or {_T}, not both", r"\1 和 \2 只给一个"),
    (rf"{_T} must be a list of strings such as {_T}", r"\1 必须是字符串列表，如 \2"),
    (rf"{_T} must cite results as {_T}, not ", r"\1 须以 \2 的形式引用结果，而不是 "),
    (rf"{_T} must be the numbers of {_T}, such as {_T}", r"\1 须为判断的编号，如 \3"),
    (
        rf"say what to do: {_T}, {_T}, {_T}, {_T} or {_T}",
        r"请说明要做什么：\1、\2、\3、\4 或 \5",
    ),
    (
        rf"there is no result {_T} here; cite results as {_T}",
        r"此处没有结果 \1；请以 \2 的形式引用结果",
    ),
    (rf"there is no tool {_T}; ", r"没有工具 \1；"),
    (rf"{_T} isn't an operation of this tool", r"此工具没有 \1 操作"),
    (rf"{_T} isn't a verdict here: {_T} is true or false", r"此处没有 \1：\2 为 true 或 false"),
    (rf"{_T} has no argument {_T}; ", r"\1 没有参数 \2；"),
    (rf"the argument {_T} of {_T} must be ", r"\2 的参数 \1 必须是 "),
    (rf"{_T} also needs ", r"\1 还需要 "),
    (rf"{_T} must be of type (\w+(?: or \w+)*)", r"\1 的类型必须是 \2"),
    (rf"{_T} is not one of the values it may have", r"\1 不在可用的取值之中"),
    (rf"{_T} has the wrong value", r"\1 的值不对"),
    (rf"{_T} is not expected", r"\1 是多余的"),
    (r"; it takes ", "；正确的形式为 "),
    (r"the step before it did not fit", "前一步未被接受"),
    (
        rf"this verdict is on {_T}, but the program stands in {_T}",
        r"这一判断针对 \1，但流程引擎位于 \2",
    ),
    # --- calls that are held ---
    (rf"{_T} is part of a request: {_T} ", r"\1 属于一项请求：请先 \2 "),
    (rf"{_T} is part of a request: no request leads to it", r"\1 不属于任何请求"),
    (
        rf"{_T} comes after its checks, and {_T} is still open: ",
        r"\1 须在其检查之后，\2 尚未完成：",
    ),
    (
        rf"no procedure of the handbook that runs here carries out {_T}, so it is never called: "
        r"tell the user that it cannot be done here",
        r"此处没有流程执行 \1，因此它从不被调用：请告知用户此处无法办理",
    ),
    (
        rf"{_T} must not be called, because (.+?) is not met: refuse with {_T}, "
        r"unless the user corrects a value",
        r"不得调用 \1，因为 \2 与要求不符：用 \3 拒绝，除非用户更正",
    ),
    (rf"{_T} does not ask for {_T} now: ", r"\1 现在不需要 \2："),
    (rf"call {_T} first", r"请先调用 \1"),
    (rf"ask the user for ((?:{_T}, )*{_T}) first", r"请先向用户询问 \1"),
    (rf"check {_T} first", r"请先检查 \1"),
    (rf"give your verdict on {_T} first", r"请先给出对 \1 的判断"),
    (rf"take the step {_T} first", r"请先完成步骤 \1"),
    (r" first$", ""),
    (
        rf"{_T} is no input of {_T} in the handbook, so nobody checked it: call it without",
        r"\1 不是 \2 的参数，未经核验：请去掉它再调用",
    ),
    (
        rf"{_T} was checked for another {_T}: call it with the value that was checked, or correct "
        r"it in the running request first",
        r"\1 核验时的 \2 是另一个值：请用核验过的值调用，或先在办理中的请求里更正",
    ),
    (rf"{_T} was checked for other arguments", r"\1 核验时的参数不同"),
    (
        rf"nobody knows yet how call {_T} of {_T} ended; it must not be made twice",
        r"\2 的调用 \1 结果未知；不得再次调用",
    ),
    (rf"{_T} broke off, and may have been carried out", r"\1 中断，可能已经执行"),
    (rf"{_T} waits for approval", r"\1 等待批准"),
    (r"(\d+) of (\d+) from (.+?) \(call ", r"需要 \3 批准 \2 次，已有 \1 次（调用 "),
    (rf"{_T} was rejected", r"\1 被驳回"),
    (r"; refuse the request or change it", "；请拒绝该请求或更改它"),
    (rf"{_T} is approved", r"\1 已获批准"),
    (rf"{_T} is blocked: ", r"\1 已拦截："),
    (
        rf"\. Make the calls that are missing and call it again, or refuse with {_T}; "
        r"an operator may also decide",
        r"。请补上缺少的调用后再次调用，或用 \1 拒绝；也可由操作员决定",
    ),
    (rf"{_T} has not been called", r"尚未调用 \1"),
    (rf"{_T} is not answered yet", r"\1 尚无结果"),
    (rf"{_T} failed when it was called last", r"最近一次调用 \1 失败"),
    (rf"{_T} must be called again: ", r"须再次调用 \1："),
    (rf"{_T} has no value", r"\1 没有值"),
    (r"nobody has judged it for these values", "尚未对这些值作出判断"),
    (r"it was judged undecided", "判断为 undecided"),
    (
        r"only a model has judged it, and the handbook does not let it",
        "只有模型作出判断，而手册不允许",
    ),
    (rf"{_T} must be (true|false) and is undecided: ", r"\1 须为 \2，但尚未判定："),
    (rf"{_T} must be (true|false) and is (true|false)", r"\1 须为 \2，实为 \3"),
    # --- what the machine passed by itself ---
    (r"slot already bound in this frame", "此处已有结果"),
    (r"judged for the same values already \((#\d+)\)", r"相同的值已判断过（\1）"),
    (r"gate already established in this process", "验证环节已在本流程中通过"),
)


def said_in(text: str, language: str) -> str:
    """A reason in the session's language, word by word where it is known."""
    if language != "zh":
        return text
    kept: list[str] = []

    def take_out(match: re.Match[str]) -> str:
        kept.append(match.group())
        return f"\0{len(kept) - 1}\0"

    words = _KEPT.sub(take_out, text)
    for pattern, phrase in _CHINESE:
        words = re.sub(pattern, phrase, words)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match.group(1))], words)
