"""Options of the MCP server as people write them. Needs no MCP library, so help can show them."""

from __future__ import annotations

import ipaddress
import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sopilot.files.addresses import require_url
from sopilot.files.settings import filled
from sopilot.files.text import read_text, whole_text
from sopilot.handbook.model import Handbook
from sopilot.messages.diagnostic import Place, did_you_mean
from sopilot.messages.errors import UserMistake, mistake
from sopilot.values.json import JSON

TOKEN_VARIABLE = "SOPILOT_MCP_TOKEN"
LOCAL = "local"
"""The owner behind standard streams, and behind loopback without a token."""
PATH = "/mcp"
SHORTEST_TOKEN = 16
LAST_PORT = 65535
_ALL_ADDRESSES = ("0.0.0.0", "::", "")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

# --- limits ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a server one client can take."""

    header_seconds: float = 10.0
    """For a request to arrive up to its body."""
    body_seconds: float = 30.0
    """For the next piece of a body."""
    idle_seconds: float = 300.0
    """Until an unused client or session is given up."""
    drain_seconds: float = 5.0
    """For requests under way when the server stops."""
    connections: int = 200
    """Per address."""
    requests: int = 100
    """Under way per owner, open streams included."""
    clients: int = 500
    """Connected with `initialize` per owner."""
    initializes: int = 600
    """Per owner and minute."""
    sessions: int = 200
    sessions_of_one: int = 50
    """Sessions per owner."""
    upstreams: int = 400
    """Connections to upstream servers, and so processes."""

    def sessions_with(self, upstreams: int) -> int:
        """How many sessions fit, each with a connection to each of so many upstreams."""
        return max(1, min(self.sessions, self.upstreams // max(1, upstreams)))


LIMITS_HELP = "One of: " + ", ".join(
    f"{limit.name.replace('_', '-')} ({limit.default:g})" for limit in fields(Limits)
)


def read_limits(texts: Sequence[str]) -> Limits:
    """``NAME=NUMBER`` each, the names with or without dashes."""
    kinds = {limit.name: limit.type for limit in fields(Limits)}
    limits: dict[str, Any] = {}
    for text in texts:
        name, _, written = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in kinds:
            message = f"there is no limit `{name}`"
            raise mistake("bad-limit", message, help=did_you_mean(name, kinds))
        whole = kinds[name] == "int"
        try:
            number = int(written) if whole else float(written)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number <= 0:
            kind = "a whole number" if whole else "a number of seconds"
            message = f"`{text}`: `{written}` is not {kind} above 0"
            raise mistake("bad-limit", message, help=f"{name}=30")
        limits[name] = number
    return replace(Limits(), **limits)


# --- upstreams ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """A command to start, or a URL to reach. ``headers`` may hold credentials."""

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse_upstream(text: str) -> UpstreamSpec:
    """``[NAME=]URL`` or ``[NAME=]COMMAND ARGUMENTS…``. A command gets this process's environment
    without sopilot's own variables, which hold credentials: a client passes the server's there."""
    name, mark, rest = text.partition("=")
    if not mark or not name.replace("-", "").replace("_", "").isalnum():
        name, rest = "", text
    if rest.startswith(("http://", "https://")):
        return UpstreamSpec(name or rest, url=require_url(rest))
    try:
        command = tuple(shlex.split(rest))
    except ValueError as problem:
        raise _bad_upstream(f"`{text}` isn't a valid command line: {problem}", text) from None
    if not command:
        raise _bad_upstream(f"`{text}` names no MCP server", text)
    own = {name: value for name, value in os.environ.items() if not name.startswith("SOPILOT_")}
    return UpstreamSpec(name or rest.strip(), command=command, environment=own)


def read_upstreams(path: Path) -> tuple[UpstreamSpec, ...]:
    """Read a file in the shape that MCP clients share: ``{"mcpServers": {name: {...}}}``."""
    source = str(path)
    try:
        document = json.loads(whole_text(path))
    except (OSError, ValueError, RecursionError) as problem:
        message = f"the file of MCP servers cannot be read: {problem}"
        raise _bad_upstream(message, source) from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise _bad_upstream("it has no `mcpServers` object", source)
    return tuple(_upstream(name, filled(entry, source), source) for name, entry in servers.items())


def _upstream(name: str, entry: JSON, source: str) -> UpstreamSpec:
    settings = entry if isinstance(entry, dict) else {}
    url, command = settings.get("url", ""), settings.get("command", "")
    if bool(url) == bool(command):
        raise _bad_upstream(f"`{name}` needs either `command` or `url`", source)
    arguments = settings.get("args")
    return UpstreamSpec(
        name,
        command=(str(command), *map(str, arguments if isinstance(arguments, list) else ()))
        if command
        else (),
        environment=_texts(settings.get("env")),
        url=require_url(str(url)) if url else "",
        headers=_texts(settings.get("headers")),
    )


def _texts(value: JSON) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _bad_upstream(message: str, source: str) -> UserMistake:
    cure = 'a URL, a command line, or a file with {"mcpServers": {NAME: {"command": …}}}'
    return mistake("bad-upstream", message, Place(source), cure)


def actions_by_tool(handbook: Handbook, pass_through: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The names under which each tool (``TOOL`` or ``SERVER:TOOL``) is offered."""
    names: dict[str, list[str]] = {}
    for name, action in handbook.actions.items():
        if action.offered:
            names.setdefault(action.tool or name, []).append(name)
    for passed in sorted({*pass_through}):
        for name, action in handbook.actions.items():
            of_action = _may_be_one(action.tool or name, passed)
            if passed != name and not of_action and passed.rpartition(":")[2] != name:
                continue
            cure = f"leave out --pass-through {passed}, or change the handbook"
            if not action.offered:
                message = f"the handbook says that `{name}` is not offered"
                raise mistake("not-offered", message, help=cure)
            if passed != name:
                what = "is the tool of" if of_action else "would be offered under the name of"
                message = f"`{passed}` {what} the action `{name}`"
                raise mistake("shared-tool", message, help=cure)
        if passed not in handbook.actions:
            names.setdefault(passed, []).append(passed.rpartition(":")[2])
    return names


def _may_be_one(tool: str, other: str) -> bool:
    """Whether two names may mean one tool: a name without a server may be any server's."""
    return tool == other or tool == other.rpartition(":")[2] or tool.rpartition(":")[2] == other


# --- HTTP -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """``host`` is an address without brackets, or a name. ``tokens`` maps an owner's name to
    its token. ``hosts`` are the names under which clients reach this server beside the address
    itself; ``origins`` are the web pages that may talk to it. ``admin`` is another address,
    with health and metrics for operators."""

    host: str = "127.0.0.1"
    port: int = 8321
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    stateless: bool = False
    """Any server of the same store can answer any request."""
    admin: tuple[str, int] | None = None

    def check(self) -> None:
        """Raise rather than serve strangers."""
        if not 0 <= self.port <= LAST_PORT:
            message = f"there is no port {self.port}"
            raise mistake("no-such-port", message, help=f"0 to {LAST_PORT}")
        if not is_loopback(self.host) and not self.tokens:
            raise mistake(
                "unprotected-server",
                f"other machines can reach `{self.host}`, and there is no token",
                help="pass --token-file, or bind to 127.0.0.1",
            )
        if self.host in _ALL_ADDRESSES and not self.hosts:
            raise mistake(
                "unknown-host-name",
                "a server bound to every address can't tell its own name from a forged name",
                help="name the hosts that clients use: --allow-host NAME",
            )
        for owner, token in self.tokens.items():
            require_long_token(f"the token of `{owner}`", token)

    @property
    def allowed_hosts(self) -> list[str]:
        return [
            spelling.lower()
            for name in (*self._own_names, *map(in_url, self.hosts))
            for spelling in ((name,) if _has_port(name) else (name, f"{name}:{self.port}"))
        ]

    @property
    def allowed_origins(self) -> list[str]:
        local = self._own_names if is_loopback(self.host) else ()
        own = (f"http://{name}:{self.port}" for name in local)
        return [origin.lower().rstrip("/") for origin in (*own, *self.origins)]

    @property
    def url(self) -> str:
        return f"http://{in_url(self.host)}:{self.port}{PATH}"

    @property
    def _own_names(self) -> tuple[str, ...]:
        if self.host in _ALL_ADDRESSES:
            return ()
        return (in_url(self.host), *(_LOOPBACK if is_loopback(self.host) else ()))


def require_long_token(name: str, token: str) -> None:
    if len(token) < SHORTEST_TOKEN:
        raise mistake(
            "short-token",
            f"{name} has fewer than {SHORTEST_TOKEN} characters",
            help="generate one with: python -c 'import secrets; print(secrets.token_hex(32))'",
        )


def in_url(host: str) -> str:
    """As it stands in URLs and Host headers: IPv6 addresses in brackets, at their shortest."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host
    return f"[{address}]" if address.version == 6 else host


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _has_port(name: str) -> bool:
    return not name.endswith("]") and ":" in name.rpartition("]")[2]


def parse_address(option: str, address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    odd = "[" in bare or "]" in bare or host.startswith("[") != host.endswith("]")
    if not bare or odd or not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise UserMistake(f"{option}: `{address}` is not HOST:PORT")
    return bare, int(port)


def read_tokens(path: Path | None) -> dict[str, str]:
    """From a file or the environment, never from the command line, which others see."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE)
        return {"default": token} if token else {}
    if os.name == "posix" and path.exists() and _others_can_read(path.stat()):
        message = "others can read this file of tokens"
        raise mistake("open-secret", message, Place(str(path)), "chmod 600")
    tokens: dict[str, str] = {}
    for line in read_text(path).splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise UserMistake(f"{path}: every line is `NAME TOKEN`")
        name, token = words
        if name == LOCAL:
            raise UserMistake(
                f"{path}: `{LOCAL}` means clients without a token; choose another name"
            )
        if name in tokens:
            raise UserMistake(f"{path}: `{name}` has two tokens; give each its own name")
        if token in tokens.values():
            raise UserMistake(f"{path}: `{name}` has the same token as another name")
        tokens[name] = token
    if not tokens:
        raise UserMistake(f"{path}: it contains no token")
    return tokens


def _others_can_read(status: os.stat_result) -> bool:
    """A secret that a cluster mounts is root's, and readable for this process's group."""
    others = 0o037 if status.st_uid == 0 != os.getuid() else 0o077
    return bool(status.st_mode & others)


# --- the server -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """How a gateway uses its upstream servers.

    ``pass_through`` names tools that are offered although the handbook has no action for them.
    ``approve`` names tools to approve as they are now, ``approve_tools`` approves all.
    """

    pass_through: Sequence[str] = ()
    handbook_only: bool = False
    share_upstream: bool = False
    upstream_timeout: float = 300.0
    require_pins: bool = False
    approve: Sequence[str] = ()
    approve_tools: bool = False
    recheck_tools: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(GatewayOptions):
    """Everything that `sopilot serve` and `sopilot gateway` take."""

    source: str
    upstreams: tuple[str, ...] = ()
    upstream_file: Path | None = None
    view: str = "pg"
    language: str = "en"
    tools: str = "official"
    address: str | None = None
    token_file: Path | None = None
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    stateless: bool = False
    admin: str | None = None
    limited: tuple[str, ...] = ()
    lease_seconds: float
    session_id: str | None = None
    store_spec: str | None = None

    @property
    def limits(self) -> Limits:
        return read_limits(self.limited)

    def http(self) -> HttpSettings | None:
        """As the files are now, tokens may change; ``None`` for standard streams."""
        if self.address is None:
            if self.admin is not None or self.stateless:
                raise UserMistake("--admin and --stateless need --http")
            return None
        host, port = parse_address("--http", self.address)
        settings = HttpSettings(
            host,
            port,
            read_tokens(self.token_file),
            self.allow_host,
            self.allow_origin,
            self.limits,
            self.stateless,
            parse_address("--admin", self.admin) if self.admin is not None else None,
        )
        settings.check()
        return settings

    def specs(self) -> list[UpstreamSpec]:
        specs = [parse_upstream(text) for text in self.upstreams]
        if self.upstream_file is not None:
            specs += read_upstreams(self.upstream_file)
        names = [spec.name for spec in specs]
        if len(set(names)) != len(names):
            raise UserMistake("two upstream servers have the same name; write NAME=… before each")
        return specs
