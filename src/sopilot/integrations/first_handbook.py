"""A first handbook for tools that exist: every tool as an action with its schema.

Tools that aren't known to only read are `irreversible`, and each has a procedure in which the
user confirms the call. Add the requirements.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import runpy
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from sopilot.files.text import read_text
from sopilot.handbook.model import Action, Handbook, Input, Procedure
from sopilot.handbook.writer import write_handbook
from sopilot.integrations.mcp.options import read_upstreams
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON

_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_READS = ("get", "head", "options")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", Decimal: "number"}
_TEXTS = (date, datetime, time)


class FoundTool(NamedTuple):
    name: str
    says: str
    schema: Mapping[str, Any]
    reads: bool
    server: str = ""


def first_handbook(name: str, tools: Iterable[FoundTool]) -> str:
    """The handbook's text. Names that aren't identifiers, or that two servers have, get `tool:`."""
    every = list(tools)
    if not every:
        raise UserMistake("there are no tools to write a handbook for")
    actions: dict[str, Action] = {}
    for tool in every:
        alone = sum(other.name == tool.name for other in every) == 1
        action = _identifier(tool.name if alone else f"{tool.server}_{tool.name}")
        own = (
            f"{tool.server}:{tool.name}" if not alone else tool.name if action != tool.name else ""
        )
        says = " ".join(tool.says.split())
        actions[action] = Action(
            action,
            tuple(_inputs(tool.schema)),
            says,
            irreversible=not tool.reads,
            read_only=tool.reads,
            confirm=None if tool.reads else f"`{action}` will be called.",
            tool=own,
        )
    goals = {a.name: Procedure(a.name, a.name) for a in actions.values() if a.irreversible}
    return write_handbook(Handbook(name, actions=actions, procedures=goals))


def _identifier(name: str) -> str:
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return text if re.match(r"[A-Za-z_]", text) else f"tool_{text}"


def _inputs(schema: Mapping[str, Any]) -> Iterator[Input]:
    required = schema.get("required", ())
    for name, part in dict(schema.get("properties") or {}).items():
        own = part if isinstance(part, Mapping) else {}
        kinds = own.get("type", [])
        known = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind in _TYPES]
        says = " ".join(str(own.get("description", "")).split())
        kind = known[0] if known else "object" if "$ref" in own else "string"
        yield Input(name, kind, says, name in required)


# --- where tools come from ------------------------------------------------------------


def tools_of_servers(path: Path) -> list[FoundTool]:
    """The tools of the MCP servers in a file as MCP clients have it."""
    from sopilot.integrations.mcp.upstream import Upstream

    async def listed() -> list[FoundTool]:
        tools: list[FoundTool] = []
        for spec in read_upstreams(path):
            upstream = Upstream(spec)
            try:
                tools += [
                    FoundTool(
                        tool.name,
                        tool.description or "",
                        tool.input_schema,
                        bool(tool.annotations and tool.annotations.read_only_hint),
                        spec.name,
                    )
                    for tool in await upstream.tools()
                ]
            finally:
                await upstream.close()
        return tools

    return asyncio.run(listed())


def tools_of_file(path: Path) -> list[FoundTool]:
    """The public functions of a Python file, or the operations of an OpenAPI document in JSON."""
    if path.suffix == ".py":
        return list(_functions(path))
    try:
        document = json.loads(read_text(path))
    except ValueError as problem:
        raise mistake("bad-tools", f"not JSON: {problem}", Place(str(path))) from None
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        message = "there are no `paths`"
        raise mistake("bad-tools", message, Place(str(path)), "an OpenAPI document, or a .py file")
    return list(_operations(document))


def _functions(path: Path) -> Iterator[FoundTool]:
    """The file is run, as an import would."""
    for name, function in runpy.run_path(str(path)).items():
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if Path(function.__code__.co_filename).resolve() != path.resolve():
            continue
        hints, properties, required = get_type_hints(function), dict[str, Any](), list[str]()
        for parameter in inspect.signature(function).parameters.values():
            properties[parameter.name] = {"type": _type(hints.get(parameter.name))}
            if parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
        schema = {"properties": properties, "required": required}
        yield FoundTool(name, (inspect.getdoc(function) or "").partition("\n")[0], schema, False)


def _type(hint: Any) -> str:
    present = [each for each in get_args(hint) if each is not type(None)]
    if len(present) == 1 and type(None) in get_args(hint):
        return _type(present[0])
    kind = get_origin(hint) or hint
    if kind in _TEXTS:
        return "string"
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in (list, tuple, set, frozenset):
        return "array"
    return "string" if kind is None else "object"


def _operations(document: Mapping[str, Any]) -> Iterator[FoundTool]:
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if not isinstance(operation, Mapping):
                continue
            properties, required = dict[str, JSON](), list[str]()
            for written in (*shared, *operation.get("parameters", [])):
                parameter = _resolved(document, written)
                about = parameter.get("description", "")
                schema = _resolved(document, parameter.get("schema", {}))
                properties[parameter["name"]] = {**schema, "description": about}
                if parameter.get("required"):
                    required.append(parameter["name"])
            content = _resolved(document, operation.get("requestBody", {})).get("content", {})
            body = _resolved(document, content.get("application/json", {}).get("schema", {}))
            for name, schema in (body.get("properties") or {}).items():
                properties[name] = _resolved(document, schema)
            required += body.get("required", [])
            name = operation.get("operationId") or f"{method}{path}"
            says = operation.get("summary") or operation.get("description") or ""
            schema = {"properties": properties, "required": required}
            yield FoundTool(name, says, schema, method.lower() in _READS)


def _resolved(document: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """Follow references inside the document."""
    for _ in range(10):
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        part = document
        for step in reference[2:].split("/"):
            part = part.get(step.replace("~1", "/").replace("~0", "~"), {})
    return part if isinstance(part, Mapping) else {}
