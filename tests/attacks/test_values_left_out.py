"""A value counts as left out if it is what the tool has without being told, and only then.

Models of strict schemas write every optional parameter, as null or as its default. The judge is
what the stock has left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from agents import FunctionTool, function_tool
from every_interface import reply_of
from framework_agents import FRAMEWORKS
from langchain_core.tools import StructuredTool
from pydantic_ai import Tool
from scripted_moves import Move, Script, call

import sopilot
from sopilot.runner.conversations import Conversations

HANDBOOK = """
handbook: blood-stock
actions:
  read_stock: {input: {group: string, site: SITE}, read_only: true}
  dispatch: {input: {group: string, units: integer, note: TEXT}, irreversible: true, confirm: false}
predicates:
  enough(group, units):
    says: The central site has {units} units of {group}.
    verify: read_stock(RECIPE)
    verdict: result.units >= units && units > 0
procedures:
  dispatch: {requires: enough(group, units)}
"""
OPTIONAL = "{type: string, required: false}"
CHECKS = {
    "undeclared": HANDBOOK.replace(", site: SITE", "").replace("RECIPE", "group"),
    "declared": HANDBOOK.replace("SITE", OPTIONAL).replace("RECIPE", "group"),
    "checked": HANDBOOK.replace("SITE", OPTIONAL).replace("RECIPE", "group, 'central'"),
}


class Stock:
    """The simulated system. Without a site it has the units of the central one."""

    def __init__(self, folder: Path, check: str = "declared") -> None:
        self.units = {"central": 3, "north": 9}
        self.dispatched: list[int] = []
        self.book = folder / "stock.yaml"
        text = CHECKS[check].replace("TEXT", OPTIONAL)
        if check == "undeclared":
            text = text.replace(f", note: {OPTIONAL}", "")
        self.book.write_text(text, "utf-8")

    def read_stock(self, group: str, site: str | None = "central") -> dict[str, int]:
        """Count the units."""
        return {"units": sum(self.units.values()) if site is None else self.units[site]}

    def dispatch(self, group: str, units: int, note: str | None = None) -> str:
        """Send units of the central site."""
        self.dispatched.append(units)
        return f"sent {units}"


EVERY = {"group": "O", "site": None}
WRITTEN = {"group": "O", "site": "central"}
SHORT = {"group": "O"}


def moves(read: Mapping[str, Any], units: int) -> Sequence[Move]:
    return [call("read_stock", **read), call("dispatch", group="O", units=units, note=None)]


CASES = [
    ("undeclared", EVERY, 5, []),
    ("declared", EVERY, 5, []),
    ("checked", EVERY, 5, []),
    ("undeclared", WRITTEN, 3, [3]),
    ("declared", WRITTEN, 3, [3]),
    ("checked", WRITTEN, 3, [3]),
    ("undeclared", SHORT, 3, [3]),
    ("declared", SHORT, 3, [3]),
    ("declared", SHORT, 5, []),
    ("declared", {"group": "O", "site": "north"}, 5, []),
]
EVERY_CASE = pytest.mark.parametrize(("check", "read", "units", "sent"), CASES)


@EVERY_CASE
@pytest.mark.parametrize("verify", ["ask", "auto"])
def test_a_function_of_ones_own(
    tmp_path: Path, check: str, read: dict[str, Any], units: int, sent: list[int], verify: Any
) -> None:
    stock = Stock(tmp_path, check)
    functions = stock.read_stock, stock.dispatch
    read_stock, dispatch = sopilot.guard(stock.book, *functions, verify=verify, refusals="text")
    with sopilot.conversation("c-1"):
        read_stock(**read)
        dispatch("O", units, None)
    assert stock.dispatched == sent


def strictly(stock: Stock, kind: str) -> list[Any]:
    """Tools whose schemas require every parameter, where the framework has such schemas."""
    functions = [stock.read_stock, stock.dispatch]
    return [
        function_tool(function)
        if kind == "openai_agents"
        else FRAMEWORKS[kind].tool(function, function.__name__)
        for function in functions
    ]


SCHEMAS = {
    "read_stock": {"group": {"type": "string"}, "site": {"default": "central"}},
    "dispatch": {
        "group": {"type": "string"}, "units": {"type": "integer"}, "note": {"default": None},
    },
}  # fmt: skip


def by_schema(stock: Stock, kind: str) -> list[Any]:
    """Tools that are described by a JSON schema alone."""

    def made(name: str) -> Any:
        function, schema = getattr(stock, name), {"type": "object", "properties": SCHEMAS[name]}
        if kind == "langchain":
            return StructuredTool(name=name, description=name, args_schema=schema, func=function)
        if kind == "pydantic_ai":
            return Tool.from_schema(function, name, name, schema)

        async def invoke(context: Any, arguments: str) -> str:
            return json.dumps(function(**json.loads(arguments)))

        return FunctionTool(name, name, schema, invoke, strict_json_schema=False)

    return [made(name) for name in SCHEMAS]


@EVERY_CASE
@pytest.mark.parametrize("view", ["guard", "guard-auto"])
@pytest.mark.parametrize("tools", [strictly, by_schema])
@pytest.mark.parametrize("kind", list(FRAMEWORKS))
async def test_a_tool_of_a_framework(
    tmp_path: Path, check: str, read: dict[str, Any], units: int, sent: list[int],
    view: str, tools: Any, kind: str,
) -> None:  # fmt: skip
    stock = Stock(tmp_path, check)
    conversations = Conversations.of(stock.book, view=view)
    agent = FRAMEWORKS[kind](
        conversations, tools(stock, kind), reply_of(Script(moves(read, units)))
    )
    await agent.say("Send it.", "c-1")
    assert stock.dispatched == sent


@pytest.mark.parametrize("limit", [500, None])
def test_none_is_a_value_for_a_parameter_with_another_default(
    tmp_path: Path, limit: int | None
) -> None:
    stock = Stock(tmp_path)

    def dispatch(group: str, units: int, limit: int | None = 2, **more: Any) -> str:
        return stock.dispatch(group, units)

    read_stock, guarded = sopilot.guard(stock.book, stock.read_stock, dispatch, refusals="text")
    with sopilot.conversation("c-1"):
        read_stock("O")
        assert "`limit` isn't an input" in guarded("O", 3, limit)
        assert "`override` isn't an input" in guarded("O", 3, override=None)
        assert stock.dispatched == []
        guarded("O", 3, 2)
    assert stock.dispatched == [3]


def test_another_object_than_the_default_is_not_left_out(tmp_path: Path) -> None:
    """Neither can be judged; they are not the same."""
    stock, default = Stock(tmp_path), object()

    def dispatch(group: str, units: int, lorry: object = default) -> str:
        return stock.dispatch(group, units)

    read_stock, guarded = sopilot.guard(stock.book, stock.read_stock, dispatch, refusals="text")
    with sopilot.conversation("c-1"):
        read_stock("O")
        guarded("O", 3, object())
        assert stock.dispatched == []
        guarded("O", 3)
    assert stock.dispatched == [3]
