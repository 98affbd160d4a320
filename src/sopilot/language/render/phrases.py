"""Reasons that the runtime gives in English, in the language of the session.

The trace keeps them in one language; what a model reads is translated where it is shown. Values
and identifiers, which stand in quotation marks or backticks, are never touched.
"""

from __future__ import annotations

import re
from typing import Final

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
        rf"say what to do: {_T}, {_T}, {_T} or {_T}",
        r"请说明要做什么：\1、\2、\3 或 \4",
    ),
    (
        rf"there is no result {_T} here; cite results as {_T}",
        r"此处没有结果 \1；请以 \2 的形式引用结果",
    ),
    (rf"there is no tool {_T}; ", r"没有工具 \1；"),
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
    (
        rf"{_T} needs a running process that accepts it: start its goal",
        r"\1 须在流程之中调用：请先 start",
    ),
    (
        rf"{_T} waits for {_T} to accept; (\S+) is still open: finish its checks and return",
        r"\1 须等 \2 的要求全部符合；\3 尚未结束：请完成其检查并 return",
    ),
    (
        rf"{_T} waits for {_T} to accept, and (.+?) is not met: refuse with {_T}, or start it "
        r"again and verify \((\S+)\)",
        r"\1 须等 \2 的要求全部符合，而 \3 与要求不符：用 \4 拒绝，或重新 start 并核验（\5）",
    ),
    (
        rf"{_T} waits for {_T} to accept; it stands at (\S+): the steps before the goal come first",
        r"\1 须等 \2 的要求全部符合；当前位于 \3：先完成之前的步骤",
    ),
    (
        rf"{_T} is no input of {_T} in the handbook, so nobody checked it: call it without",
        r"\1 不是 \2 的参数，未经核验：请去掉它再调用",
    ),
    (
        rf"{_T} was checked for another {_T}: call it with the checked values, or start the goal "
        r"again with the new ones",
        r"\1 核验时的 \2 是另一个值：请用核验过的值调用，或用新值重新 start",
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
    (rf"{_T} is held, because ", r"\1 被暂缓，因为 "),
    (
        r"\. Verify that and call it again, refuse ",
        "。请核验后再次调用，或拒绝 ",
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
