"""中文用语。The Chinese words, under the same keys as the English ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CHINESE: Final[Mapping[str, str]] = {
    # --- functions ---
    "process": "流程",
    "group": "要求",
    "gate": "验证环节",
    "rule": "规则",
    "purpose": "用途：{says}",
    "true_if": "为 true 的条件：{condition}",
    "all_first": "；全部查明之后再作判断",
    "true_means": "为 true 表示：{says}",
    "false_means": "为 false 表示：{says}",
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
    "then": "，然后 ",
    "ask": "向用户询问 {names}（对话中已有则不必）",
    "do": "执行：{says}",
    "do_with": "（工具：{names}）",
    "emit": "交付产物 {name}",
    "judge_you": "由你判断：return holds = true 或 false，并附证据",
    "judge_values": "由你根据参数值判断，无需工具：return holds = true 或 false",
    "judge_unverified": (
        "没有可用的核验工具；由你根据已知信息判断：return holds = true 或 false，否则 fail"
    ),
    "judge_gate": ("仅当本次调用成功才为 true：return holds = true 或 false；用户可以更正后重试"),
    "judge_gate_answer": (
        "仅当本次调用成功且其结果表明如此才为 true："
        "return holds = true 或 false；用户可以更正后重试"
    ),
    "judge_machine": "由流程引擎判断；仅在它无法判断时由你判断",
    "judge_gate_machine": "调用成功后由流程引擎判断；用户可以更正后重试",
    "judge_fact": (
        "仅当该调用在本次会话中已成功才为 true；不要为这项检查去调用：return holds = true 或 false"
    ),
    "judge_fact_machine": (
        "由流程引擎判断：仅当该调用在本次会话中已成功才为 true；不要为这项检查去调用"
    ),
    "return_value": "return holds = ({when})",
    "complete": "complete",
    "fail": "fail，并说明哪一项与要求不符",
    "remark": "——{says}",
    "and": " 且 ",
    "or": " 或 ",
    "not": "非 {slot}",
    "unknown": "?{name}",
    # --- the moving part of a frame ---
    "results": "结果：{items}",
    "known": "已知：{items}",
    "separator": "；",
    "evidence": " [{items}]",
    "keeps": "（{value}）",
    "not_met": "（与要求不符：{names}）",
    "now": "现在：{todo}",
    "now_check": "用 {tool} 的 call 进入函数 {function}。",
    "now_check_with": (
        "用 {tool} 的 call 进入函数 {function}，在 arguments 中给出 {names}。"
        "对话中没有的向用户询问；"
        "若用户无法提供，用 {tool} 的 fail 说明缺少哪一项。"
    ),
    "now_branch": "{tool} select_branch：按结果选 then 或 otherwise。",
    "now_choose": "{tool} select_branch，选其中一项。",
    "now_act": "调用工具 {action}；其结果即证据。",
    "now_act_with": (
        "调用工具 {action}；{names} 须取自先前的结果或用户，绝不编造。"
        "若无人能够提供，{tool} {way}。"
    ),
    "now_act_maybe": "调用工具 {action}，仅在用户给出 {names} 时带上它；其结果即为证据。",
    "now_act_failed": (
        "{action} 的结果为 `failed`（{seqs}）。若这已回答了问题，用 {tool} 的 return 引用它；"
        "否则换用其他值或其他途径；若仍无法判断，用 {tool} 的 return，给出 undecided。"
    ),
    "now_goal": "各项检查均符合要求：调用工具 {action}。",
    "now_goal_maybe": "所有检查均已满足：调用工具 {action}，仅在用户给出 {names} 时带上它。",
    "now_goal_failed": (
        "{action} 的结果为 `failed`（{seqs}）。与用户核对并更正后再调用，"
        "或以此为原因用 {tool} 的 fail。"
    ),
    "now_ask": ("若对话中没有 {names}，向用户询问，然后继续。若用户无法提供，{tool} {way}。"),
    "now_ask_act": (
        "若对话中没有 {names}，向用户询问，然后用它调用工具 {action}。"
        "若用户无法提供，{tool} {way}。"
    ),
    "way_gate": "return holds = false",
    "way_fail": "fail，并说明缺少哪一项",
    "now_do": "执行它，然后 {tool} select_branch next。",
    "now_emit": "{tool} emit_artifact {name}。",
    "now_return": "{tool} return，附 holds 和证据，或 undecided。",
    "now_return_machine": ("流程引擎无法判断：{tool} return，附 holds 和证据，或 undecided。"),
    "now_complete": "{tool} complete；其 summary 告知用户办理了什么。",
    "now_fail": "{tool} fail；其 reason 告知用户哪一项与要求不符。",
    "now_fail_told": (
        "{tool} fail；其 reason 只供记录。绝不向用户透露哪一项与要求不符，也不透露工具的结果。"
        "只对用户说：{says}"
    ),
    # --- whole program ---
    "flat_intro": (
        "下面的程序就是办事流程。从流程开始，依次执行以下各步："
        "检查是指下文同名的函数，它根据工具的结果得出 true 或 false；箭头表示转到哪一步。"
        "只有当步骤走到目标工具时才调用它；若走到 `fail`，则拒绝并说明哪一项与要求不符。"
    ),
    # --- prose ---
    "prose_intro": "如何办理 {name}（{parameters}）。",
    "prose_no_values": "不需要参数",
    "prose_steps": "依次执行以下各步，除非某一步说明转到哪里。",
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
    "prose_goal": "所有要求均已符合：调用工具 {call}。",
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
    "prose_groups": "各项要求",
    "prose_gates": "如何与用户一起使条件成立",
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
