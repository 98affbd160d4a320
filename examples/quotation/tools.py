"""The tools of one task: catalogue, price lists, freight and workbook behind one interface."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sopilot.protocols import ToolResult, ToolSchema
from sopilot.values.json import JSON

from .case_file import CaseFile
from .case_tools import case_tools
from .catalogue import Catalogue, build_catalogue
from .desk import Desk, Inputs
from .freight_tools import freight_tools
from .request import UnreadableRequest
from .workbook_tools import workbook_tools

HERE = Path(__file__).parent
SUPPLIERS = ("alba", "bering", "corvo")
Handler = Callable[..., ToolResult]
Tool = tuple[str, Mapping[str, str], Handler]
"""A tool's description, its arguments with their descriptions, and its function."""


def make_tools(task: Mapping[str, Any], out: Path) -> QuotationTools:
    """The tools for one task of ``tasks.yaml``; what they make goes into ``out``, and what was
    decided is kept there, so that a second call goes on where the first one stopped."""
    simulator = task["simulator"]
    changed: Mapping[str, str] = simulator.get("prices", {})
    database = out / "catalogue.sqlite"
    build_catalogue(HERE / "data" / "catalogue.sql", database)
    inputs = Inputs(
        request=HERE / "requests" / simulator["request"],
        prices={name: _price_list(name, changed.get(name)) for name in SUPPLIERS},
        suppliers=HERE / "data" / "suppliers.yaml",
        tariff=HERE / "data" / "freight_tariff.csv",
        zones=HERE / "data" / "freight_zones.csv",
        today=datetime.date.fromisoformat(str(simulator["today"])),
        spoil=simulator.get("spoil", ""),
    )
    return QuotationTools(inputs, Catalogue(database), out)


def _price_list(supplier: str, changed: str | None) -> Path:
    if changed is not None:
        return HERE / "wrong_inputs" / changed
    return next((HERE / "data" / "prices").glob(f"{supplier}.*"))


class QuotationTools:
    """Implements ``Tools``, and remembers releases, so that none is made twice."""

    def __init__(self, inputs: Inputs, catalogue: Catalogue, out: Path) -> None:
        self.desk = Desk(inputs, catalogue, CaseFile(out / "case.json"))
        self._tools: dict[str, Tool] = {
            **case_tools(self.desk),
            **freight_tools(self.desk),
            **workbook_tools(self.desk, out),
        }

    def schemas(self) -> Sequence[ToolSchema]:
        return [
            ToolSchema(
                name,
                says,
                {
                    "type": "object",
                    "properties": {
                        argument: {"type": "string", "description": what}
                        for argument, what in arguments.items()
                    },
                    "required": list(arguments),
                    "additionalProperties": False,
                },
            )
            for name, (says, arguments, _) in self._tools.items()
        ]

    async def call(self, name: str, arguments: Mapping[str, JSON], *, key: str) -> ToolResult:
        made = await self.recall(key)
        if made is not None:
            return made
        if name not in self._tools:
            return ToolResult(False, {"error": f"there is no tool {name}"})
        known = self.desk.request().request
        if arguments.get("request", known) != known:
            return ToolResult(False, {"error": f"the case at hand is {known}"})
        given = dict(arguments)
        given.pop("request", None)
        try:
            result = self._tools[name][2](**given)
        except (LookupError, UnreadableRequest) as problem:
            return ToolResult(False, {"error": str(problem)})
        if name in ("release_quotation", "release_under_approval") and result.ok:
            self.desk.case.enter("made", key, {"ok": result.ok, "value": result.value})
        return result

    async def recall(self, key: str) -> ToolResult | None:
        """The result of the release with this key; ``None`` if it was never made."""
        made = self.desk.case.entries("made").get(key)
        return None if made is None else ToolResult(made["ok"], made["value"])
