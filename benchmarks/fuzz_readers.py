"""Every reader of what others write, as a function of bytes, with seeds and words to mix in.

A reader may answer with diagnostics or with an error of ours, and with nothing else: what
escapes is a crash. Shared by `benchmarks/fuzz.py` and `tests/fuzz`.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from sopilot.audit.transcript_files import read_messages
from sopilot.files.settings import read_settings
from sopilot.handbook.expressions import compute, free_names, judge, parse_verdict
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook, read_handbook
from sopilot.handbook.writer import write_handbook
from sopilot.integrations.mcp.content import answered, recorded
from sopilot.integrations.mcp.options import parse_upstream, read_upstreams
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import SopilotError, StoreCorrupt, TraceError
from sopilot.models.wire import read_reply
from sopilot.program.codec import program_from_yaml, program_to_yaml
from sopilot.program.printer import print_program
from sopilot.protocols import SystemClock
from sopilot.records.audits import load_deviations
from sopilot.records.journal import write
from sopilot.records.log import check_proof, read_seals
from sopilot.records.people import load_people
from sopilot.records.privacy import load_policy
from sopilot.records.selection import read_condition
from sopilot.records.store import Store
from sopilot.records.versions import load_versions
from sopilot.runner.audit_inputs import ForeignInput, TraceInput
from sopilot.runner.sign_in import subject_of
from sopilot.runner.sources import open_source
from sopilot.stores.memory import MemoryStore
from sopilot.tasks.scenarios import read_scenarios
from sopilot.trace.chain import genesis, seal_all
from sopilot.trace.files import read_trace, write_trace
from sopilot.values.json import spell
from sopilot.views.step_tool import parse_steps
from sopilot_lab.experiments.study.plan import load_study

ROOT = Path(__file__).resolve().parent.parent
TASKS = ROOT / "src" / "sopilot" / "tasks"
SHORT = Path(tempfile.gettempdir())


@dataclass(frozen=True, slots=True)
class Reader:
    """``read`` raises nothing but what is a fault. ``seeds`` are whole examples, ``words`` what
    its language is made of."""

    read: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    words: Callable[[], list[str]]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read_any_handbook(data: str | bytes) -> None:
    handbook, diagnostics = read_handbook(data, "fuzz.yaml")
    failed = any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
    assert (handbook is None) == failed
    if handbook is not None:
        assert read_handbook(write_handbook(handbook))[0] == handbook


def _program(data: bytes) -> None:
    program = program_from_yaml(data.decode("utf-8", "replace"))
    print_program(program)
    assert program_from_yaml(program_to_yaml(program)) == program


def _scenario(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    suite, diagnostics = read_scenarios(text, _starter(), "fuzz.yaml")
    assert (suite is None) == any(
        diagnostic.severity is Severity.ERROR for diagnostic in diagnostics
    )


def _trace(data: bytes) -> None:
    """Read the trace as it is, then spelled canonically with a chain that fits it."""
    text = data.decode("utf-8", "replace")
    try:
        read_trace(text)
    except TraceError:
        text = "".join(_spelled(line) + "\n" for line in text.split("\n") if line)
    trace = read_trace(text)
    source = TraceInput(trace, None, ended=True)
    source.verify()
    _audited(source)
    whole = seal_all((sealed.event for sealed in trace.events), genesis(trace.session_id))
    _audited(replace(source, trace=replace(trace, events=tuple(whole))))
    write_trace(trace)


def _spelled(line: str) -> str:
    try:
        return spell(json.loads(line))
    except (ValueError, RecursionError):
        return line


def _audited(source: TraceInput) -> None:
    try:
        for audited in source.audit():
            audited.report.as_json()
    except SopilotError:
        return


def _transcript(data: bytes) -> None:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(content, Mapping):
        content = content.get("messages")
    if not isinstance(content, list):
        return
    book = _bank()
    effects = frozenset(procedure.action for procedure in book.procedures.values())
    transcript = read_messages(content, effects=effects)
    goal = next(iter(book.procedures))
    for audited in ForeignInput((("fuzz", book, goal, transcript),)).audit():
        json.dumps(audited.report.as_json())


_MESSAGE: TypeAdapter[object] = TypeAdapter(types.JSONRPCMessage)


def _json_rpc(data: bytes) -> None:
    """A line from a peer: a message, a tool's result, a model's answer or step."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    with suppress(ValidationError):
        _MESSAGE.validate_python(value)
    inner = value.get("result", value) if isinstance(value, dict) else value
    try:
        result = types.CallToolResult.model_validate(inner)
    except ValidationError:
        pass
    else:
        recorded(result)
        answered("Done.", "slot", ok=True, session_id="s", upstream=result).model_dump_json()
    parse_steps(inner)
    read_reply(inner)


def _expression(data: bytes) -> None:
    text = _text(data)
    if len(text) > 400:
        return
    problems = parse_verdict(text) and parse_verdict(text, truth=False)
    names = free_names(text)
    if problems:
        return
    values: list[object] = [1, "a", [1, 2], {"a": {"b": 1}}, None, True, 1.5]
    arguments = {name: values[number % len(values)] for number, name in enumerate(sorted(names))}
    for work in (judge, compute):
        try:
            work(text, arguments)
        except ValueError:
            continue  # undecided


def _config(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    if kind in b"ucs":
        path = SHORT / f"sopilot-fuzz-{kind.decode('ascii', 'replace')}"
        path.write_bytes(rest)
        if kind == b"u":
            read_upstreams(path)
        elif kind == b"s":
            load_study(path)
        else:
            read_seals(rest.decode("utf-8", "replace"))
    elif kind == b"w":
        read_condition(_text(rest))
    else:
        parse_upstream(_text(rest))


def _records(data: bytes) -> None:
    """Documents about a store that others may have written: proofs, tokens, settings, entries."""
    kind, rest = data[:1], data[1:]
    if kind == b"t":
        subject_of(rest.decode("utf-8", "surrogateescape"), {})
    elif kind == b"y":
        path = SHORT / "sopilot-fuzz-settings"
        path.write_bytes(rest)
        read_settings(path)
    else:
        try:
            value = json.loads(rest)
        except (ValueError, RecursionError):
            return
        if kind == b"p":
            check_proof(value, ["00"])
        elif isinstance(value, dict):
            asyncio.run(_journals(value))


async def _journals(details: dict[str, object]) -> None:
    for journal, load, names in _JOURNALS:
        for name in names:
            store = MemoryStore()
            await write(store, journal, name, details, clock=SystemClock())  # type: ignore[arg-type] - whatever JSON says
            try:
                await load(store)
            except StoreCorrupt:
                continue


_JOURNALS: tuple[tuple[str, Callable[[Store], Awaitable[object]], tuple[str, ...]], ...] = (
    ("people", load_people, ("person_added", "token_issued", "limit_set", "deputy_named",
                             "escalation_set", "demanded")),
    ("handbooks", load_versions, ("version_released", "version_signed_off")),
    ("privacy", load_policy, ("columns_named", "period_set", "hold_set")),
    ("deviations", load_deviations, ("deviation_opened", "deviation_judged")),
)  # fmt: skip


def _forgiving(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def read_it(data: bytes) -> None:
        try:
            read(data)
        except (SopilotError, TraceError):
            return

    return read_it


@cache
def _starter() -> Handbook:
    text = (TASKS / "starter_handbook.yaml").read_text("utf-8")
    return load_handbook(text.replace("@name@", "desk"))


@cache
def _bank() -> Handbook:
    return open_source("bank").handbook


def _files(*paths: Path) -> Iterator[bytes]:
    for path in paths:
        yield path.read_bytes()


def _pieces(data: bytes) -> Iterator[bytes]:
    """Short ones: a long seed is changed in places that hardly matter."""
    yield data
    lines = data.splitlines(keepends=True)
    for start in range(0, len(lines), 20):
        yield b"".join(lines[start : start + 40])


def _handbook_seeds() -> Iterator[bytes]:
    yield from _files(*sorted((ROOT / "tests/handbook/mistakes").glob("*.yaml")))
    for path in sorted(TASKS.glob("bundled/*/handbook.yaml")):
        yield from _pieces(path.read_bytes())
    yield from _files(TASKS / "starter_handbook.yaml")


def _program_seeds() -> Iterator[bytes]:
    yield from _files(ROOT / "tests/program/fine.yaml", ROOT / "tests/program/mistakes.txt")
    yield from _files(*sorted((ROOT / "tests/program/listings").glob("*.yaml")))


def _scenario_seeds() -> Iterator[bytes]:
    for path in (TASKS / "starter_scenarios.yaml", *ROOT.rglob("*scenarios.yaml")):
        yield from _pieces(path.read_bytes().replace(b"@name@", b"desk"))


def _trace_seeds() -> Iterator[bytes]:
    for path in sorted((ROOT / "tests" / "trace").glob("*/*.jsonl")):
        whole = path.read_bytes()
        header, *lines = whole.splitlines(keepends=True)
        yield whole
        short = {**json.loads(header), "program_texts": {}, "programs": {}}
        bare = json.dumps(short, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        for size in (1, 3, 8, 20):
            yield bare + b"".join(lines[:size])


def _transcript_seeds() -> Iterator[bytes]:
    call = {"name": "transfer", "arguments": '{"amount": 5, "username": "a"}'}
    tool = {"id": "c1", "type": "function", "function": call}
    openai = [
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": "", "tool_calls": [tool]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}'},
    ]
    used = {"type": "tool_use", "id": "t", "name": "transfer", "input": {"amount": 5}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "1"}]}
    anthropic = [
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [answer]},
    ]
    items = [
        {"type": "function_call", "call_id": "c", "name": "transfer", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "(True, {'a': 1})"},
    ]
    old = [
        {"role": "assistant", "function_call": call},
        {"role": "function", "name": "transfer", "content": "None"},
    ]
    for document in (openai, anthropic, items, old, {"messages": openai}):
        yield json.dumps(document).encode()


def _json_rpc_seeds() -> Iterator[bytes]:
    blocks = [
        {"type": "text", "text": "hello"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "x"}},
        {"type": "resource", "resource": {"uri": "a:b", "blob": "aGk="}},
        {"type": "resource_link", "uri": "a:b", "name": "n", "_meta": {"sopilot/runtime": True}},
    ]
    result = {"content": blocks, "structuredContent": {"a": 1}, "isError": False}
    function = {"name": "f", "arguments": "{}"}
    message = {"content": "hi", "tool_calls": [{"id": "1", "function": function}]}
    for document in (
        {"jsonrpc": "2.0", "id": 1, "result": result},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}},
        {"choices": [{"message": message}], "usage": {"prompt_tokens": 1}},
        {"operation": "return", "holds": True, "evidence": [1], "function": "a"},
        {"start": "goal", "true": "1 2", "false": [3], "complete": True},
        {"error": {"message": "no", "code": "context_length_exceeded"}},
    ):
        yield json.dumps(document).encode()


def _expression_seeds() -> Iterator[bytes]:
    words: set[str] = set()
    for path in sorted(TASKS.glob("bundled/*/handbook.yaml")):
        words.update(re.findall(r"(?:verdict|when|value): (.+)", path.read_text("utf-8")))
    yield from (word.strip("\"'").encode() for word in sorted(words))
    for text in (
        "a.b[0] + 1 > 2 ? 'x' : \"y\"",
        "[1, 2].map(x, x * 2).all(y, y in [2])",
        "has(a.b) && size(a) > 1u",
        "{'a': 1}.a == 1 || !true",
        r"'\x00'.matches('(a+)+$')",
        "timestamp('2024-01-01T00:00:00Z') < duration('1h')",
        "b'abc' + b\"d\"",
    ):
        yield text.encode()


def _config_seeds() -> Iterator[bytes]:
    yield b'u{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"K": "v"}}}}'
    yield b'u{"mcpServers": {"a": {"url": "http://x", "headers": {"A": "b"}}}}'
    yield b"s" + (ROOT / "src/sopilot_lab/experiments/study/paper.yaml").read_bytes()
    yield b"smodels: [reference]\narms: [pg, flat]\ntasks: {limit: 3}\nuser: {model: x}\n"
    yield b'c{"at": 1, "head": "", "key": "", "signature": "", "size": 1}\n{"actions": 1}\n'
    yield b"wamount>=1000"
    yield b'wa.b!="x"'
    yield b"=name=http://127.0.0.1:1/mcp"
    yield b"=name=python -m 'x y'"


def _records_seeds() -> Iterator[bytes]:
    head = {"sopilot_log": 1, "size": 2, "root": "00", "at": 1, "key": "00", "signature": "00"}
    entry = {"entry": 0, "at": 1, "session": "s", "seq": 0, "hash": "00", "actions": "00"}
    for each in (
        {"sopilot_proof": "inclusion", "entry": entry, "path": ["00"], "head": head},
        {"sopilot_proof": "consistency", "old": head, "path": [], "head": head},
    ):
        yield b"p" + json.dumps(each).encode()
    yield b"teyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkIiwic3ViIjoiYSJ9.eA"
    yield b"yhttp: 127.0.0.1:80\ntoken: ${HOME:-x}\nlist: &a [1, 2]\nmore: *a\nat: 2001-01-01\n"
    for details in (
        {"person": "a", "roles": ["b"], "aliases": [], "subjects": [], "conditions": ["a<=1"]},
        {"token": "a", "person": "b", "sha256": "00", "expires_at": 1, "role": "r", "to": "s"},
        {"handbook": "h", "by": "a", "programs": {"g": "00"}, "text": "", "from": 1, "version": 1},
        {"session": "s", "code": "c", "event": 1, "explanation": "e", "deviation": 0, "what": "w"},
        {"for": "a", "begin": 1, "end": 2, "before_seconds": 3, "on": True, "seconds": 5},
    ):
        yield b"j" + json.dumps(details).encode()


_JSON_WORDS = ["null", "true", "false", "{}", "[]", '""', "1e999", "-0", "1.5", '"\\u0000"', '"a"']
_YAML_WORDS = ["- ", ": ", "\n  ", "{", "}", "[", "]", "&a ", "*a", "!!", "|", "null", "~", "<<"]


def _words(*seeds: Callable[[], Iterator[bytes]], extra: list[str]) -> Callable[[], list[str]]:
    """Names that the examples use."""

    def collected() -> list[str]:
        texts = b" ".join(text for seed in seeds for text in seed())
        names = re.findall(r"[A-Za-z_]{2,24}", texts.decode("utf-8", "replace"))
        return sorted(set(names))[:600] + extra

    return collected


def _reader(
    read: Callable[[bytes], None], seeds: Callable[[], Iterator[bytes]], extra: list[str]
) -> Reader:
    return Reader(_forgiving(read), seeds, _words(seeds, extra=extra))


READERS: dict[str, Reader] = {
    "handbook": _reader(read_any_handbook, _handbook_seeds, _YAML_WORDS),
    "program": _reader(_program, _program_seeds, _YAML_WORDS),
    "scenario": _reader(_scenario, _scenario_seeds, _YAML_WORDS),
    "trace": _reader(_trace, _trace_seeds, _JSON_WORDS),
    "transcript": _reader(_transcript, _transcript_seeds, _JSON_WORDS),
    "json-rpc": _reader(_json_rpc, _json_rpc_seeds, _JSON_WORDS),
    "expression": _reader(_expression, _expression_seeds, ["&&", "||", ".map(", "[", "in", "?"]),
    "config": _reader(_config, _config_seeds, _JSON_WORDS + _YAML_WORDS),
    "records": _reader(_records, _records_seeds, _JSON_WORDS + _YAML_WORDS),
}
