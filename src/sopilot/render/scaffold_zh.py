"""中文用语。The Chinese words, under the same keys as the English ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CHINESE: Final[Mapping[str, str]] = {
    # --- functions ---
    "process": "流程",
    "group": "条件组",
    "gate": "关卡",
    "rule": "规则",
    "purpose": "用途：{says}",
    "judges": "判断：{says}",
    "establishes": "建立：{says}",
    # --- steps ---
    "check": "调用 {call}；结果须为{wanted}",
    "bound_as": "（记为 {slot}）",
    "true": "真",
    "false": "假",
    "met": "；满足 → {target}",
    "unmet": "；不满足 → {target}",
    "goto": "；→ {target}",
    "branch": "若 {when} → {then}，否则 → {otherwise}",
    "choose": "选择：{says}",
    "option": "- {name} → {target}",
    "option_says": "：{says}",
    "act": "工具 {call}",
    "goal": "目标工具 {call}",
    "instead": "或改用：{calls}",
    "then": "，然后 ",
    "ask": "询问用户：{names}",
    "do": "执行：{says}",
    "do_with": "（工具：{names}）",
    "emit": "交付产物 {name}",
    "return_judged": "返回 holds = true 或 false，并附证据",
    "return_value": "返回 holds = ({when})",
    "complete": "完成",
    "fail": "拒绝，并说明哪一项不满足",
    "remark": " — {says}",
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
    "now": "现在：{todo}",
    "now_check": "{tool} call {function}。",
    "now_branch": "{tool} select_branch：按结果选 then 或 otherwise。",
    "now_choose": "{tool} select_branch，选其中一项。",
    "now_act": "调用工具 {action}；其结果即证据。",
    "now_goal": "各项检查均已满足：调用工具 {action}。",
    "now_ask": "若对话中没有 {names}，向用户询问；然后继续。",
    "now_do": "执行它，然后 {tool} select_branch next。",
    "now_emit": "{tool} emit_artifact {name}。",
    "now_return": "{tool} return，附 holds 和证据。",
    "now_complete": "{tool} complete。",
    "now_fail": "告诉用户哪一项不满足，然后 {tool} fail。",
    # --- whole program ---
    "flat_intro": (
        "下面的程序就是办事流程。从流程函数开始，按顺序执行各步骤："
        "调用表示运行该函数，它给出条件是否成立以及来自工具的证据；箭头表示转到哪一步。"
        "只有当步骤走到目标工具时才调用它；若走到“拒绝”，则拒绝并说明哪一项不满足。"
    ),
    # --- prose ---
    "prose_intro": "如何办理 {name}（{parameters}）。",
    "prose_no_values": "不需要参数",
    "prose_steps": "按顺序办理以下各点，除非某一点说明转到哪里。",
    "prose_check_true": "以下必须成立：",
    "prose_check_false": "以下必须成立（该检查本身的结果须为假）：",
    "prose_group": "下文“{name}”部分的结果须为{wanted}。",
    "prose_see": " 见下文“{name}”{values}。",
    "prose_values": "，其中 {values}",
    "prose_value": "{name} 为 {value}",
    "prose_met": " 若成立，转到第 {number} 点。",
    "prose_unmet": " 若不成立，转到第 {number} 点。",
    "prose_goto": " 转到第 {number} 点。",
    "prose_branch": "查看结果：若{when}，转到第 {then} 点；否则转到第 {otherwise} 点。",
    "prose_holds": "“{slot}”为真",
    "prose_holds_not": "“{slot}”为假",
    "prose_always": "无论如何",
    "prose_never": "从不",
    "prose_choose": "作出决定：{says}",
    "prose_option": " 若选“{name}”{says}，转到第 {number} 点。",
    "prose_option_says": "（{says}）",
    "prose_act": "调用 {call}。",
    "prose_goal": "所有要求均已满足：调用 {call}。",
    "prose_with": "{action}，{values}",
    "prose_without": "{action}",
    "prose_unknown": "由先前证据或用户提供的 {name}",
    "prose_ask": "向用户询问 {names}。",
    "prose_do": "{says}",
    "prose_do_with": " 可使用 {names}。",
    "prose_emit": "交付“{name}”。",
    "prose_return_judged": "根据所得信息判断是否成立，并保留证据。",
    "prose_return_value": "若{when}，此部分为真，否则为假。",
    "prose_complete": "办理完毕。",
    "prose_fail": "拒绝，并告诉用户哪一项不满足。",
    "prose_groups": "要求的各个部分",
    "prose_gates": "如何与用户一起使条件成立",
    "prose_rules": "如何查明条件是否成立",
    "prose_function": "“{name}”{parameters}",
    "prose_parameters": "（针对 {names}）",
    "prose_instead": " 或改为：{calls}。",
    "prose_remark": "（{says}）",
    "prose_list_and": "，并且 ",
    # --- official wording ---
    "official_intro": (
        "条件按层级列出。“必须满足以下全部条件”之下每一项都是必需的，"
        "“必须满足以下任意一项条件”之下满足一项即可，“必须按顺序完成以下步骤”之下各项依次进行。"
        "编号表示有顺序，圆点表示无顺序。调用一个操作之前，先核实它所要求的条件。"
    ),
    "official_constrained": "### 有约束的操作：",
    "official_free": "### 无约束的操作：",
    "official_all": "必须满足以下全部条件：",
    "official_any": "必须满足以下任意一项条件：",
    "official_in_order": "必须按顺序完成以下步骤：",
    "official_first": "必须满足以下任意一项条件，按此顺序尝试：",
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
    "recipe_calls": "  调用 {calls}",
    "recipe_or": "  或 {calls}",
    "recipe_gate": "  通过调用 {calls} 使其成立",
    "recipe_arguments": "  根据其取值判断；不需要工具",
    "recipe_none": "  没有工具可以核实",
}
