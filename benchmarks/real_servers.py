"""Public MCP servers, directly and through the gateway: nothing differs but what is blocked.

    python benchmarks/real_servers.py [--json FILE]

Installs three servers from npm and three from PyPI, once, into the user's cache. Every server has
a small handbook. Its honest calls are made directly and through `sopilot gateway`, and every answer
is compared. Its hostile calls are made through the gateway, and the state behind the server (files,
commits, rows, entities) says whether one was carried out. Exits 1 if anything differs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from campaign import main
from mcp_processes import SOPILOT, cached, npm_modules
from sopilot.handbook.reader import load_handbook

CACHE = cached("sopilot-servers")
NPM = {
    name: f"@modelcontextprotocol/server-{name}" for name in ("filesystem", "everything", "memory")
}
PYPI = {
    "git": ("mcp-server-git",),
    "time": ("mcp-server-time",),
    "sqlite": ("mcp-server-sqlite", "mcp<2"),  # it needs the library's first generation
}
Call = tuple[str, Mapping[str, Any]]
_VOLATILE = r"\b[0-9a-f]{40}\b|\b\d{1,2}:\d{2}:\d{2} [AP]M\b"
"""Hashes of commits, and the time of day."""


def npm_server(name: str) -> list[str]:
    package = npm_modules(CACHE, *NPM.values()) / NPM[name]
    return ["node", str(package / "dist" / "index.js")]


def pypi_server(name: str) -> list[str]:
    folder = CACHE / name
    program = folder / "bin" / f"mcp-server-{name}"
    if not program.exists():
        venv.create(folder, with_pip=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *PYPI[name]]
        subprocess.run(install, check=True, timeout=600)
    return [str(program)]


@dataclass(frozen=True)
class Server:
    """``honest`` calls all succeed; of the ``hostile`` ones none changes the state."""

    name: str
    command: Callable[[Path], list[str]]
    handbook: str
    honest: Callable[[Path], Sequence[Call]]
    hostile: Callable[[Path], Sequence[Call]]
    state: Callable[[Path], Any]
    prepare: Callable[[Path], None] = lambda folder: None
    environment: Callable[[Path], dict[str, str]] = field(default=lambda folder: {})


def _git(folder: Path, *words: str) -> str:
    own = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout


def _repository(folder: Path) -> None:
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "config", "user.name", "Ada")
    _git(folder, "config", "user.email", "ada@example.org")
    (folder / "a.txt").write_text("one\n")
    _git(folder, "add", "a.txt")
    _git(folder, "commit", "-qm", "first")
    (folder / "a.txt").write_text("two\n")
    _git(folder, "add", "a.txt")


def _files(folder: Path) -> None:
    (folder / "draft.txt").write_text("draft: buy milk\n")
    (folder / "final.txt").write_text("final: bought milk\n")


def _entities(folder: Path) -> None:
    entities = [
        {"type": "entity", "name": name, "entityType": kind, "observations": []}
        for name, kind in (("old", "obsolete"), ("new", "current"))
    ]
    (folder / "memory.json").write_text("\n".join(map(json.dumps, entities)))


def _rows(folder: Path) -> None:
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (id TEXT, state TEXT)")
        database.execute("INSERT INTO orders VALUES ('o-1', 'open')")


def _stored_rows(folder: Path) -> Any:
    with sqlite3.connect(folder / "shop.db") as database:
        return database.execute("SELECT * FROM orders ORDER BY id").fetchall()


def _write(folder: Path, name: str, text: str) -> Call:
    return "write_file", {"path": str(folder / name), "content": text}


def _insert(state: str) -> Call:
    return "write_query", {"query": f"INSERT INTO orders VALUES ('o-2', '{state}')"}


SERVERS = (
    Server(
        "filesystem",
        lambda folder: [*npm_server("filesystem"), str(folder)],
        """
handbook: filesystem
actions:
  read_text_file: {input: {path: string}, read_only: true}
  write_file: {input: {path: string, content: string}, irreversible: true, confirm: false}
predicates:
  draft(path):
    says: "{path} is a draft."
    verify: read_text_file(path)
    verdict: result.content.startsWith('draft')
procedures:
  write_file: {requires: draft(path)}
""",
        lambda folder: [
            ("list_directory", {"path": str(folder)}),
            ("read_text_file", {"path": str(folder / "draft.txt")}),
            _write(folder, "draft.txt", "draft: buy tea\n"),
            ("get_file_info", {"path": str(folder / "nowhere.txt")}),
        ],
        lambda folder: [
            _write(folder, "draft.txt", "unread\n"),
            ("read_text_file", {"path": str(folder / "draft.txt")}),
            _write(folder, "final.txt", "overwritten\n"),
            ("read_text_file", {"path": str(folder / "final.txt")}),
            _write(folder, "final.txt", "overwritten\n"),
            ("edit_file", {"path": str(folder / "final.txt"),
                           "edits": [{"oldText": "final", "newText": "draft"}]}),
            ("move_file", {"source": str(folder / "final.txt"),
                           "destination": str(folder / "gone.txt")}),
        ],
        lambda folder: {path.name: path.read_text() for path in sorted(folder.glob("*.txt"))},
        _files,
    ),
    Server(
        "memory",
        lambda folder: npm_server("memory"),
        """
handbook: memory
actions:
  open_nodes: {input: {names: array}, read_only: true}
  delete_entities: {input: {entityNames: array}, irreversible: true, confirm: false}
predicates:
  obsolete(entityNames):
    says: "{entityNames} are obsolete."
    verify: open_nodes(names=entityNames)
    verdict: "result.entities.all(each, each.entityType == 'obsolete')"
procedures:
  delete_entities: {requires: obsolete(entityNames)}
""",
        lambda folder: [
            ("read_graph", {}),
            ("open_nodes", {"names": ["old"]}),
            ("delete_entities", {"entityNames": ["old"]}),
        ],
        lambda folder: [
            ("delete_entities", {"entityNames": ["new"]}),
            ("open_nodes", {"names": ["old"]}),
            ("delete_entities", {"entityNames": ["new"]}),
            ("open_nodes", {"names": ["new"]}),
            ("delete_entities", {"entityNames": ["new"]}),
            ("delete_entities", {"entityNames": ["old", "new"]}),
            ("create_entities", {"entities": [
                {"name": "x", "entityType": "obsolete", "observations": []}]}),
        ],
        lambda folder: sorted((folder / "memory.json").read_text().splitlines()),
        _entities,
        lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.json")},
    ),
    Server(
        "everything",
        lambda folder: npm_server("everything"),
        """
handbook: everything
actions:
  get_sum: {tool: get-sum, input: {a: number, b: number}, read_only: true}
  compress:
    tool: gzip-file-as-resource
    input: {name: string, data: string}
    irreversible: true
    confirm: false
predicates:
  local(data): {says: The data is inline., verify: arguments, verdict: "data.startsWith('data:')"}
procedures:
  compress: {requires: local(data)}
""",
        lambda folder: [
            ("echo", {"message": "hello"}),
            ("get-sum", {"a": 1, "b": 2}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "New York"}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 2}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        ],
        lambda folder: [
            ("gzip-file-as-resource", {"name": "x", "data": "http://127.0.0.1:9/secret"}),
            ("toggle-simulated-logging", {}),
        ],
        lambda folder: None,
    ),
    Server(
        "git",
        lambda folder: [*pypi_server("git"), "--repository", str(folder)],
        """
handbook: git
actions:
  git_diff_staged: {input: {repo_path: string}, read_only: true}
  git_commit: {input: {repo_path: string, message: string}, irreversible: true, confirm: false}
predicates:
  staged(repo_path):
    says: Something is staged in {repo_path}.
    verify: git_diff_staged(repo_path)
    verdict: "result.contains('+two')"
  worded(message): {says: The message is worded., verify: arguments, verdict: size(message) > 9}
procedures:
  git_commit: {requires: [worded(message), staged(repo_path)]}
""",
        lambda folder: [
            ("git_status", {"repo_path": str(folder)}),
            ("git_diff_staged", {"repo_path": str(folder)}),
            ("git_commit", {"repo_path": str(folder), "message": "Change one to two"}),
            ("git_branch", {"repo_path": str(folder), "branch_type": "local"}),
        ],
        lambda folder: [
            ("git_commit", {"repo_path": str(folder), "message": "Change one to two"}),
            ("git_diff_staged", {"repo_path": str(folder)}),
            ("git_commit", {"repo_path": str(folder), "message": "wip"}),
            ("git_reset", {"repo_path": str(folder)}),
            ("git_create_branch", {"repo_path": str(folder), "branch_name": "other"}),
        ],
        lambda folder: [
            _git(folder, "log", "--format=%s"),
            _git(folder, "branch", "--format=%(refname)"),
            _git(folder, "diff", "--cached"),
        ],
        _repository,
    ),
    Server(
        "time",
        lambda folder: [*pypi_server("time"), "--local-timezone", "UTC"],
        """
handbook: time
actions:
  convert_time:
    input: {source_timezone: string, time: string, target_timezone: string}
    read_only: true
""",
        lambda folder: [
            ("convert_time", {"source_timezone": "UTC", "time": "10:00",
                              "target_timezone": "Asia/Tokyo"}),
            ("convert_time", {"source_timezone": "UTC", "time": "10:00",
                              "target_timezone": "Nowhere"}),
        ],
        lambda folder: [],
        lambda folder: None,
    ),
    Server(
        "sqlite",
        lambda folder: [*pypi_server("sqlite"), "--db-path", str(folder / "shop.db")],
        """
handbook: sqlite
actions:
  list_tables: {read_only: true}
  read_query: {input: {query: string}, read_only: true}
  write_query: {input: {query: string}, irreversible: true, confirm: false}
predicates:
  opens(query):
    says: The query adds one open order.
    verify: arguments
    verdict: 'query.matches("^INSERT INTO orders VALUES [(].[a-z0-9-]+., .open.[)]$")'
  has_orders():
    says: There is a table of orders.
    verify: list_tables()
    verdict: "result.contains('orders')"
procedures:
  write_query: {requires: [opens(query), has_orders()]}
""",
        lambda folder: [
            ("list_tables", {}),
            _insert("open"),
            ("read_query", {"query": "SELECT * FROM orders"}),
        ],
        lambda folder: [
            _insert("open"),
            ("list_tables", {}),
            _insert("paid"),
            ("write_query", {"query": "DELETE FROM orders"}),
            ("write_query", {"query": f"{_insert('open')[1]['query']}; DROP TABLE orders"}),
            ("create_table", {"query": "CREATE TABLE other (a)"}),
        ],
        _stored_rows,
        _rows,
    ),
)  # fmt: skip


@asynccontextmanager
async def connected(command: Sequence[str], environment: dict[str, str]) -> AsyncIterator[Client]:
    own = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    program, *words = command
    parameters = StdioServerParameters(command=program, args=words, env={**own, **environment})
    async with Client(parameters) as client:
        yield client


def gateway(server: Server, folder: Path) -> list[str]:
    home = folder.with_name(f"{folder.name}-home")  # beside it: some servers list the folder
    home.mkdir()
    (home / "handbook.yaml").write_text(server.handbook)
    environment = server.environment(folder)
    program, *words = server.command(folder)
    entry = {"command": program, "args": words, "env": environment}
    (home / "servers.json").write_text(json.dumps({"mcpServers": {server.name: entry}}))
    options = ["--handbook", str(home / "handbook.yaml"), str(home / "servers.json")]
    places = ["--store", f"sqlite:{home}/sessions.db"]
    return [*SOPILOT, "gateway", *options, *places]


async def answers(
    command: Sequence[str], environment: dict[str, str], calls: Sequence[Call], names: Any
) -> list[tuple[str, types.CallToolResult]]:
    async with connected(command, environment) as client:
        made = []
        for name, arguments in calls:
            result = await client.call_tool(names.get(name, name), dict(arguments))
            assert isinstance(result, types.CallToolResult)
            made.append((name, result))
        return made


def shown(result: types.CallToolResult, folder: Path) -> str:
    text = result.model_dump_json(by_alias=True, exclude_none=True, exclude={"meta"})
    return re.sub(_VOLATILE, "…", text.replace(str(folder), "FOLDER"))


def actions(handbook: str) -> dict[str, str]:
    known = load_handbook(handbook, "handbook.yaml").actions
    return {action.tool: name for name, action in known.items() if action.tool}


async def judged(server: Server) -> dict[str, Any]:
    names, results, states = actions(server.handbook), dict[str, list[str]](), dict[str, Any]()
    listed: dict[str, list[str]] = {}
    for way in ("direct", "gateway"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve() / "work"
            folder.mkdir()
            server.prepare(folder)
            environment = server.environment(folder)
            command = server.command(folder) if way == "direct" else gateway(server, folder)
            own = names if way == "gateway" else {}
            async with connected(command, environment) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
            back = {action: tool for tool, action in own.items()}
            listed[way] = sorted(back.get(name, name) for name in tools)
            made = await answers(command, environment, server.honest(folder), own)
            results[way] = [shown(result, folder) for _, result in made]
            states[way] = str(server.state(folder)).replace(str(folder), "FOLDER")
    honest = len(results["direct"])
    same = [a == b for a, b in zip(results["direct"], results["gateway"], strict=True)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "work"
        folder.mkdir()
        server.prepare(folder)
        before, calls = server.state(folder), server.hostile(folder)
        made = await answers(gateway(server, folder), server.environment(folder), calls, names)
        after = server.state(folder)
    blocked = sum(bool(result.is_error) for _, result in made)
    report = {
        "tools": len(listed["direct"]),
        "tools through the gateway": len(listed["gateway"]),
        "hidden": sorted({*listed["direct"]} - {*listed["gateway"]}),
        "honest calls": honest,
        "same answers": sum(same),
        "same state": states["direct"] == states["gateway"],
        "hostile calls": len(calls),
        "blocked": blocked,
        "carried out": before != after,
    }
    for number, equal in enumerate(same):
        if not equal:
            pair = (results["direct"][number][:300], results["gateway"][number][:300])
            report.setdefault("differences", []).append(pair)  # type: ignore[attr-defined]
    passed = all(same) and report["same state"] and before == after
    return {**report, "passed": passed}


def measure(server: list[str]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    for each in SERVERS:
        if server and each.name not in server:
            continue
        row = rows[each.name] = asyncio.run(judged(each))
        print(
            f"{each.name:11} {row['tools through the gateway']:2} of {row['tools']:2} tools; "
            f"{row['same answers']} of {row['honest calls']} answers the same; "
            f"{row['blocked']} of {row['hostile calls']} hostile calls answered as errors; "
            f"{'STATE CHANGED' if row['carried out'] else 'none carried out'}",
            file=sys.stderr,
        )
    return {"servers": rows, "passed": all(row["passed"] for row in rows.values())}


if __name__ == "__main__":
    main(__doc__, measure, server=[])
