"""Shared by the tests of the quotation example: cases in a folder of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from quotation.tools import QuotationTools, make_tools
from sopilot.protocols import ToolResult

EXAMPLE = Path(__file__).parents[2] / "examples" / "quotation"


def tasks() -> dict[str, dict[str, Any]]:
    document = yaml.safe_load((EXAMPLE / "tasks.yaml").read_text(encoding="utf-8"))
    return {task["id"]: task for task in document["tasks"]}


def call(tools: QuotationTools, name: str, **arguments: str) -> ToolResult:
    return asyncio.run(tools.call(name, arguments, key=f"{name}{sorted(arguments.items())}"))


def case(task_id: str, out: Path, **simulation: Any) -> QuotationTools:
    """The tools of a task, with something changed in its simulation."""
    task: Mapping[str, Any] = tasks()[task_id]
    return make_tools({**task, "simulator": {**task["simulator"], **simulation}}, out)


def written(tools: QuotationTools) -> ToolResult:
    """The workbook of a case in which nothing is open, with the recommended freight."""
    assert call(tools, "choose_freight", service="recommended").ok
    result = call(tools, "write_workbook")
    assert result.ok, result.value
    return result
