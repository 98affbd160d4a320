"""中文会话用语。The Chinese words of a running session, under the same keys."""

from __future__ import annotations

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
    "move_call": "用 call 进入函数 {call}",
    "move_values": "用 call 给出 {names}，以进入函数 {call}",
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
    "fits_call": "用 call 进入函数 {call}",
    "fits_find": "（待获取：{names}）",
    "not_called": "未调用：{problem}。",
    "outcome_unknown": "结果未知：{problem}。请勿再次调用；已通知操作员。",
    "empty_reply": "上一条消息是空的。请与用户交谈或调用工具。",
    "user_silent": "用户没有更多要说的。请结束对话：{ways}。",
    "folded": "已折叠：以下是此前对话与结果中最新的部分。",
    # --- tools ---
    "step_tool": (
        "使流程引擎前进一步。`start` 开始一项请求；`amend` 更正它的值；`call` 进入当前步骤的函数；"
        "`return` 给出是否成立并附证据；`select_branch`；`emit_artifact`；"
        "目标达成后用 `complete`；拒绝用 `fail`。回答会说明流程引擎所在的位置。"
    ),
    "step_tool_short": "使流程引擎前进。",
    "short_start": "请求的名称。",
    "short_amend": "请求的其他值。",
    "short_true": "按编号给出判断，如 `1 2`。",
    "short_option": "所选的分支。",
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
