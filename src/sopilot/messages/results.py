"""Words for the result of a run by code, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RESULTS: Final[Mapping[str, tuple[str, str]]] = {
    "executed": ("executed", "已办理"),
    "refused": ("refused", "已拒绝"),
    "waiting": ("waiting", "等待处理"),
    "abandoned": ("abandoned", "未完成"),
    "budget": ("budget", "超出预算"),
    "infrastructure_failure": ("infrastructure_failure", "服务故障"),
    "separator": (": ", "："),
    "not-met": ("not met: {sentence}", "不满足：{sentence}"),
    "shown-by": ("shown by {line}", "依据：{line}"),
    "customer-message": ("the customer reads: {message}", "客户看到：{message}"),
    "remedy": ("what you could do: {remedy}", "可以这样做：{remedy}"),
    "decide": (
        "decide: sopilot approvals list {session}",
        "审批：sopilot approvals list {session}",
    ),
    "then-resume": ("then resume: sopilot resume {session}", "然后恢复：sopilot resume {session}"),
    "provider-failed": (
        "the provider failed, not the model; resume: sopilot resume {session}",
        "出错的是模型服务，不是模型；恢复：sopilot resume {session}",
    ),
    "usage": (
        "{requests}, {calls}, {replies} from the user, {prompt} prompt tokens ({cached} cached), "
        "{completion} completion tokens",
        "请求 {requests} 次，工具调用 {calls} 次，用户答复 {replies} 次；提示词元 {prompt}"
        "（缓存 {cached}），生成词元 {completion}",
    ),
    "as-expected": ("{ending}, as the task expects", "{ending}，符合任务预期"),
    "not-expected": ("{ending}, but the task expects another ending", "{ending}，与任务预期不符"),
    "audit": ("audit", "审计"),
    "trace": ("trace: sopilot trace export {session}", "轨迹：sopilot trace export {session}"),
    "files": ("files: {path}", "文件：{path}"),
}


def result_words(code: str, language: str, **fields: object) -> str:
    """The words for a code in this language."""
    return RESULTS[code][language == "zh"].format(**fields)
