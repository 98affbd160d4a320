"""The guard over HTTP. The judge is the caller's own list of what it paid."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `mcp`")

import httpx2
import jsonschema
from click.testing import CliRunner
from guarded_shop import LOGIN, LOOK, REFUND
from scripted_moves import call

from refund_shop import BOOK
from sopilot import load as load_handbook
from sopilot.audit.audit import audit_trace
from sopilot.cli.main import sopilot
from sopilot.handbook.expressions import judge
from sopilot.integrations import pre_tool_hook
from sopilot.integrations.decision_service import OPENAPI, decision_app
from sopilot.machine.replay import whole_events
from sopilot.messages.catalogue import worded
from sopilot.messages.diagnostic import Severity
from sopilot.messages.errors import UserMistake
from sopilot.records.loading import load
from sopilot.records.store import Store
from sopilot.runner.conversations import Conversations
from sopilot.session.opening import resume_session
from sopilot.stores.memory import MemoryStore
from sopilot.values.text import quote_value

TOKEN = "a-token-of-the-test"
LOOPBACK = "127.0.0.1:0"
RESULTS: dict[str, Any] = {
    "login": {"customer": "anna"},
    "find_order": {"state": "delivered"},
    "shop:look": {"state": "delivered"},
    "other:look": {"state": "delivered"},
    "refund": "paid",
}


def require_described(path: str, method: str, answer: httpx2.Response) -> None:
    """Hold an answer against the OpenAPI document, which must name each of its fields."""
    document: Any = OPENAPI
    described = document["paths"][path][method]["responses"][str(answer.status_code)]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "additionalProperties": False})


class Agent:
    """An agent in another language: it asks before every call and reports the answer."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.paid: list[Any] = []

    async def post(self, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        answer = await self.http.post(path, json=body)
        require_described(path, "post", answer)
        return answer.status_code, answer.json()

    async def before(self, id: str, call: Any, conversation: str = "c-1") -> dict[str, Any]:
        tool, arguments = call.tool, call.arguments
        own = {"conversation": conversation, "id": id, "tool": tool, "arguments": dict(arguments)}
        status, decided = await self.post("/before", **own)
        assert status == 200, decided
        return decided

    async def after(
        self, id: str, decided: dict[str, Any], value: Any = "paid", **changed: Any
    ) -> tuple[int, dict[str, Any]]:
        """Report the answer to a call."""
        named = {"conversation": "c-1", "id": id, "digest": decided["digest"]}
        return await self.post("/after", **{**named, "ok": True, "value": value, **changed})

    async def make(self, id: str, call: Any, conversation: str = "c-1") -> str:
        decided = await self.before(id, call, conversation)
        if decided["decision"] == "carry_out":
            if call.tool == "refund":
                self.paid.append(decided["arguments"])
            value = RESULTS[call.tool]
            status, _ = await self.after(id, decided, value, conversation=conversation)
            assert status == 200
        decision: str = decided["decision"]
        return decision


@asynccontextmanager
async def served(
    folder: Path,
    *,
    book: str = BOOK,
    confirm: str = "false",
    store: Store | None = None,
    **options: Any,
) -> AsyncIterator[Agent]:
    path = folder / "refunds.yaml"
    path.write_text(book.replace("CONFIRM", confirm), "utf-8")
    conversations = Conversations.of(path, store=store)
    transport = httpx2.ASGITransport(decision_app(conversations, token=TOKEN, **options))
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://guard", headers=headers
    ) as http:
        yield Agent(http)


@asynccontextmanager
async def looked_up(folder: Path, **options: Any) -> AsyncIterator[Agent]:
    """An agent that has logged the customer in and read the order: the refund comes third."""
    async with served(folder, **options) as agent:
        await agent.make("1", LOGIN)
        await agent.make("2", LOOK)
        yield agent


async def test_a_call_is_carried_out_when_it_is_proven(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        hasty = await agent.before("1", REFUND)
        assert hasty["decision"] == "missing"
        assert 'find_order(customer="anna", order="o-1")' in hasty["agenda"]
        assert await agent.make("2", LOGIN) == "carry_out"
        assert await agent.make("3", LOOK) == "carry_out"
        assert await agent.make("4", REFUND, conversation="c-2") == "missing"
        assert await agent.make("5", REFUND) == "carry_out"
        assert await agent.make("6", REFUND) == "refused"
    assert agent.paid == [dict(REFUND.arguments)]


async def test_requests_can_be_repeated_and_are_bound_to_their_call(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        first = await agent.before("1", LOGIN)
        assert await agent.before("1", LOGIN) == first
        other = {"tool": "login", "arguments": {**LOGIN.arguments, "customer": "bob"}}
        assert (await agent.post("/before", conversation="c-1", id="1", **other))[0] == 409
        assert (await agent.after("1", first, digest="0" * 64))[0] == 409
        recorded = await agent.after("1", first, {"customer": "anna"})
        assert recorded[1]["recorded"]
        assert await agent.after("1", first, {"customer": "anna"}) == recorded
        # What the agent reports of a call that it must not make is no evidence.
        missing = await agent.before("2", REFUND)
        assert missing["decision"] == "missing"
        assert (await agent.after("2", missing))[0] == 409
        assert (await agent.after("9", first))[0] == 404


@pytest.mark.parametrize("answered", [True, False])
async def test_the_id_of_a_call_that_has_ended_serves_no_other_call(
    answered: bool, tmp_path: Path
) -> None:
    """Agents whose ids start again with every message send the same id for a second refund."""
    async with looked_up(tmp_path, answer_seconds=0.2) as agent:
        if answered:
            assert await agent.make("3", REFUND) == "carry_out"
        else:
            assert (await agent.before("3", REFUND))["decision"] == "carry_out"
            await asyncio.sleep(0.5)
        arguments = dict(REFUND.arguments)
        again = {"conversation": "c-1", "id": "3", "tool": "refund", "arguments": arguments}
        status, answer = await agent.post("/before", **again)
        assert (status, "new id" in answer["error"]) == (409, True)
        assert await agent.make("4", REFUND) != "carry_out"


async def test_the_audit_reports_a_guarded_call_that_was_made_although_denied(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    async with served(tmp_path, store=store) as agent:
        denied = await agent.before("1", REFUND)
        assert denied["decision"] == "missing"
        # The agent pays nevertheless, and reports it.
        assert (await agent.after("1", denied))[0] == 409
    (record,) = await store.sessions()
    session = await load(store, record.id)
    report = audit_trace(session.programs.programs, session.whole, judge=judge, ended=False)
    assert report.clean is False
    (finding,) = [found for found in report.findings if found.severity is Severity.ERROR]
    assert (finding.code, finding.details["action"]) == ("unlicensed-call", "refund")
    for language in ("en", "zh"):
        assert "`refund`" in worded(finding.explanation, language)


async def test_an_answer_that_comes_after_a_restart_is_no_deviation(tmp_path: Path) -> None:
    """The service let the call through: nobody has done wrong, and a person says how it ended."""
    store = MemoryStore()
    async with looked_up(tmp_path, store=store, answer_seconds=1.0) as agent:
        decided = await agent.before("3", REFUND)
        assert decided["decision"] == "carry_out"
        (record,) = await store.sessions()
        # The service dies, and its lease runs out.
        await (await resume_session(store, record.id, take_over=True)).release()
        async with served(tmp_path, store=store) as again:
            repeated = await again.before("3", REFUND)
            assert repeated["decision"] == "missing"
            status, answer = await again.after("3", decided)
            assert (status, "restart" in answer["error"]) == (409, True)
        await asyncio.sleep(1.2)  # what is left of the first service ends
    session = await load(store, record.id)
    assert [pending.action for pending in session.configuration.pending.values()] == ["refund"]
    report = audit_trace(session.programs.programs, session.whole, judge=judge, ended=False)
    assert "unlicensed-call" not in {finding.code for finding in report.findings}


async def test_an_answer_that_never_comes_is_an_unknown_outcome(tmp_path: Path) -> None:
    async with looked_up(tmp_path, answer_seconds=0.2) as agent:
        decided = await agent.before("3", REFUND)  # and the agent dies
        assert await agent.make("4", REFUND) != "carry_out"
        await asyncio.sleep(0.5)
        late = await agent.after("3", decided)
        assert late[0] != 200 or not late[1]["recorded"]
        assert await agent.make("5", REFUND) != "carry_out"


async def test_only_an_answer_in_time_is_evidence_and_said_to_be(tmp_path: Path) -> None:
    async with served(tmp_path, answer_seconds=0.2) as agent:
        await agent.make("1", LOGIN)
        decided = await agent.before("2", LOOK)
        await asyncio.sleep(0.5)
        for _ in range(2):
            assert not (await agent.after("2", decided, RESULTS["find_order"]))[1]["recorded"]
        assert await agent.make("3", REFUND) == "missing"
        await agent.make("4", LOOK)
        assert await agent.make("5", REFUND) == "carry_out"


async def test_nothing_is_read_again_for_a_call_whose_outcome_is_unknown(tmp_path: Path) -> None:
    """However often the agent did so, it would prove nothing."""
    async with served(tmp_path, answer_seconds=0.2) as agent:
        await agent.before("1", LOGIN)  # and no answer
        await asyncio.sleep(0.5)
        await agent.make("2", LOGIN)
        await agent.make("3", LOOK)
        decided = await agent.before("4", REFUND)
        assert (decided["decision"], decided["agenda"]) == ("missing", [])
        assert "until a person records how it ended" in decided["text"]


async def test_strangers_and_nonsense_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as agent:
        answer = await agent.http.post("/before", headers={"authorization": "Bearer x"}, json={})
        assert answer.status_code == 401
        assert (await agent.post("/before", conversation="c-1"))[0] == 400
        assert (await agent.http.post("/before", content=b"[")).status_code == 400
        assert (await agent.http.post("/before", content=b"x" * 1_000_001)).status_code == 413
        assert (await agent.http.get("/openapi.json")).json() == OPENAPI
        listed = await agent.http.get("/tools")
        require_described("/tools", "get", listed)
        assert listed.json()["tools"] == {"login": False, "find_order": False, "refund": True}
    with pytest.raises(UserMistake, match="short-token"):
        decision_app(tmp_path / "refunds.yaml", token="short")


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("/before", {"conversation": "c\0"}),
        ("/before", {"id": "1\0"}),
        ("/before", {"tool": "refund\0"}),
        ("/before", {"messages": ["hello", "yes\0"]}),
        ("/before", {"reply": {"question": "Pay?\0", "text": "yes"}}),
        ("/before", {"reply": {"question": "Pay?", "text": "yes\0"}}),
        ("/after", {"conversation": "c\0"}),
        ("/after", {"digest": "\0"}),
    ],
)
async def test_a_nul_in_a_text_is_refused(path: str, changed: Any, tmp_path: Path) -> None:
    own = {"conversation": "c-1", "id": "1"}
    whole = {"tool": "refund", "arguments": {}} if path == "/before" else {"digest": "", "ok": True}
    async with served(tmp_path) as agent:
        status, answer = await agent.post(path, **{**own, **whole, **changed})
    assert status == 400
    assert "has a NUL character in it" in answer["error"]


async def test_tools_that_the_handbook_does_not_name_are_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    async with served(tmp_path, pass_through=["hours"], store=store) as agent:
        refused = await agent.before("1", call("empty_till", sum=4711))
        assert refused["decision"] == "refused"
        assert "--pass-through empty_till" in refused["text"]
        assert (await agent.before("2", call("hours")))["decision"] == "carry_out"
        for name in ("ask_user", "confirm_with_user"):
            assert (await agent.before(name, call(name)))["decision"] == "refused"
    (record,) = await store.sessions()
    events = whole_events(await store.events(record.id), await store.payloads(record.id))
    notes = [event.payload for event in events if event.kind == "note"]
    assert {"tool": "empty_till", "inputs": ["sum"]} in [note["details"] for note in notes]
    assert "4711" not in json.dumps(notes)


async def test_an_agenda_names_the_tools_that_the_agent_has(tmp_path: Path) -> None:
    book = BOOK.replace("find_order: {input", "find_order: {tool: 'shop:look', input")
    async with served(tmp_path, book=book) as agent:
        assert (await agent.before("1", REFUND))["agenda"][1].startswith("shop:look(")


async def test_a_passed_through_tool_of_another_server_is_no_evidence(tmp_path: Path) -> None:
    """Without their servers, both tools have one name."""
    book = BOOK.replace("find_order: {input", "find_order: {tool: 'shop:look', input")
    async with served(tmp_path, book=book, pass_through=["other:look"]) as agent:
        assert await agent.make("1", LOGIN) == "carry_out"
        for id, tool, proven in (("2", "other:look", "missing"), ("4", "shop:look", "carry_out")):
            own = call(tool, **LOOK.arguments)
            assert await agent.make(id, own) == "carry_out"
            assert await agent.make(f"{id}, refund", REFUND) == proven


def test_what_the_service_cannot_do_is_said_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "refunds.yaml"
    book = BOOK.replace("CONFIRM", "false")
    path.write_text(book.replace("irreversible: true", "irreversible: true, recheck: true"))
    with pytest.raises(UserMistake, match=r"no-reader[\s\S]*leave out `recheck`"):
        decision_app(path, token=TOKEN)
    path.write_text(book.replace("read_only: true", "read_only: true, offered: false"))
    with pytest.raises(UserMistake, match="not-offered"):
        decision_app(path, token=TOKEN, pass_through=["find_order"])
    path.write_text(book.replace("refund:", "refnd:"), "utf-8")
    with pytest.raises(UserMistake, match=r"missing-tool[\s\S]*guards `refnd`, and `refund` may"):
        decision_app(path, token=TOKEN, pass_through=["refund"])
    decision_app(path, token=TOKEN, pass_through=["refuse", "find_refund"])


@pytest.fixture
def confirm() -> str:
    return "false"


@pytest.fixture
def paying() -> str:
    return "mcp__pay"


@pytest.fixture
def service(tmp_path: Path, confirm: str, paying: str) -> Iterator[str]:
    """`sopilot guard serve`, as a process."""
    book = BOOK.replace("CONFIRM", confirm).replace(
        "refund: {input", f"refund: {{tool: {paying}, input"
    )
    (tmp_path / "refunds.yaml").write_text(book, "utf-8")
    words = ("guard", "serve", str(tmp_path / "refunds.yaml"), "--http", LOOPBACK)
    command = [sys.executable, "-m", "sopilot.cli.main", *words]
    environment = {**os.environ, "SOPILOT_MCP_TOKEN": TOKEN}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert running.stdout is not None
    yield running.stdout.readline().decode().split()[1]
    running.terminate()
    running.wait(timeout=20)
    running.stdout.close()


def hooked(url: str, **event: Any) -> dict[str, Any]:
    """`sopilot guard hook`: one event of a coding agent, and the answer."""
    runner = CliRunner(env={"SOPILOT_MCP_TOKEN": TOKEN})
    made = runner.invoke(
        sopilot, ["guard", "hook", "--url", url], input=json.dumps(event), catch_exceptions=False
    )
    assert made.exit_code == 0, made.output
    answer: dict[str, Any] = json.loads(made.output) if made.output else {}
    return answer.get("hookSpecificOutput", answer)


@dataclass
class CodingAgent:
    """Runs the hook before each tool call, and after it unless the call was denied."""

    url: str
    ids: Iterator[int] = field(default_factory=count)

    def event(self, call: Any) -> dict[str, Any]:
        named = {"tool_name": call.tool, "tool_input": dict(call.arguments)}
        return {"session_id": "s", "tool_use_id": f"t{next(self.ids)}", **named}

    def before(self, event: dict[str, Any]) -> dict[str, Any]:
        return hooked(self.url, hook_event_name="PreToolUse", **event)

    def after(self, event: dict[str, Any], response: Any) -> dict[str, Any]:
        return hooked(self.url, hook_event_name="PostToolUse", tool_response=response, **event)

    def call(self, call: Any, response: Any = None) -> str:
        """The guard's decision, or why it denies the call."""
        event = self.event(call)
        decided = self.before(event)
        if decided.get("permissionDecision") == "deny":
            return str(decided["permissionDecisionReason"])
        assert self.after(event, response) == {}
        return str(decided.get("permissionDecision", ""))


PAY = call("mcp__pay", **REFUND.arguments)


def test_a_coding_agent_is_guarded_by_its_hooks(service: str) -> None:
    agent = CodingAgent(service)
    assert agent.call(call("Bash", command="ls")) == ""  # the handbook doesn't name it
    assert "find_order" in agent.call(PAY)
    assert agent.call(LOGIN, RESULTS["login"]) == ""
    assert agent.call(LOOK, RESULTS["find_order"]) == ""
    assert agent.call(PAY, "paid") == "allow"
    assert "already" in agent.call(PAY)


@pytest.mark.parametrize(
    ("paying", "tools"),
    [("mcp__pay", ["mcp__payy", "MCP-pay", "mcp__apy"]), ("pay", ["mcp__bank__pay"])],
)
def test_a_coding_agents_tool_that_may_be_a_guarded_one_is_denied(
    service: str, tools: list[str]
) -> None:
    agent = CodingAgent(service)
    for tool in tools:
        assert f"write `tool: {tool}`" in agent.call(call(tool, **REFUND.arguments))
    assert agent.call(call("mcp__paint", **REFUND.arguments)) == ""


def test_a_report_of_a_call_that_nobody_decided_about_is_no_evidence(service: str) -> None:
    """Its answer may be older than what has changed since."""
    agent = CodingAgent(service)
    assert agent.call(LOGIN, RESULTS["login"]) == ""
    told = agent.after(agent.event(LOOK), RESULTS["find_order"])
    assert "didn't record this call" in told["reason"]
    assert "find_order" in agent.call(PAY)


@pytest.mark.parametrize("mark", ["isError", "is_error"])
def test_a_result_that_is_marked_as_an_error_opens_no_gate(service: str, mark: str) -> None:
    agent = CodingAgent(service)
    wrong = {"content": [{"type": "text", "text": "wrong password"}], mark: True}
    assert agent.call(LOGIN, wrong) == ""
    assert agent.call(LOOK, RESULTS["find_order"]) == ""
    assert agent.call(PAY) not in ("", "allow")
    assert agent.call(LOGIN, {**wrong, mark: False}) == ""
    assert agent.call(PAY) not in ("", "allow")
    right = {"content": [{"type": "text", "text": "Welcome, Anna!"}], mark: False}
    assert agent.call(LOGIN, right) == ""
    assert agent.call(LOOK, RESULTS["find_order"]) == ""
    assert agent.call(PAY) == "allow"


async def test_an_amendment_serves_the_call_that_a_coding_agent_makes_after_it(
    tmp_path: Path,
) -> None:
    """A hook can't change the arguments: the agent must write the amended ones itself."""
    store, approval = MemoryStore(), "false, approval: {roles: [boss]}"
    amended = {**REFUND.arguments, "amount": 20}
    async with looked_up(tmp_path, confirm=approval, store=store) as agent:

        async def before(id: str, arguments: Any) -> dict[str, Any]:
            named = {"conversation": "c-1", "id": id, "tool": "refund", "arguments": arguments}
            _, decided = await agent.post("/before", **named, as_written=True)
            return decided

        waiting = await before("3", REFUND.arguments)
        assert waiting["decision"] == "waiting"
        runner = load_handbook(tmp_path / "refunds.yaml", store=store)
        await runner.decide(waiting["session"], "amend", by="Mia", role="boss", arguments=amended)
        for id in ("4", "5"):
            told = await before(id, REFUND.arguments)
            assert told["decision"] == "refused"
            assert '"amount":20' in told["text"]
        assert (await before("6", amended))["decision"] == "carry_out"


def test_a_payment_that_reports_an_error_may_have_been_made(service: str) -> None:
    agent = CodingAgent(service)
    assert agent.call(LOGIN, RESULTS["login"]) == ""
    assert agent.call(LOOK, RESULTS["find_order"]) == ""
    attempt = agent.event(PAY)
    assert agent.before(attempt)["permissionDecision"] == "allow"
    broken = hooked(service, hook_event_name="PostToolUseFailure", error="timed out", **attempt)
    assert "may have been carried out" in broken["reason"]
    assert agent.call(LOOK, RESULTS["find_order"]) == ""
    assert agent.before(agent.event(PAY))["permissionDecision"] == "deny"


def test_a_text_with_two_values_under_one_name_proves_nothing(service: str) -> None:
    agent = CodingAgent(service)
    assert agent.call(LOGIN, RESULTS["login"]) == ""
    found = json.dumps(RESULTS["find_order"])
    assert agent.call(LOOK, found.replace("{", '{"state": "lost", ', 1)) == ""
    assert agent.call(PAY) not in ("", "allow")
    assert agent.call(LOOK, found) == ""
    assert agent.call(PAY) == "allow"


@pytest.mark.parametrize("confirm", ['"Pay {amount} back?"'])
def test_a_coding_agent_cannot_confirm_by_its_own_prompt(service: str) -> None:
    agent = CodingAgent(service)
    agent.call(LOGIN, RESULTS["login"])
    agent.call(LOOK, RESULTS["find_order"])
    attempt = agent.event(PAY)
    decided = agent.before(attempt)
    assert decided["permissionDecision"] == "deny"
    assert "Pay 50 back?" in decided["permissionDecisionReason"]
    assert "sopilot gateway" in decided["permissionDecisionReason"]
    # What the agent did nevertheless is neither evidence nor the user's yes.
    assert agent.after(attempt, "paid")["decision"] == "block"
    assert agent.before(agent.event(PAY))["permissionDecision"] == "deny"


def test_a_call_that_the_hook_itself_denies_is_not_waited_for(service: str) -> None:
    """The agent copied a shortened value from the guard's answer."""
    agent, customer = CodingAgent(service), "anna " + "x" * 400
    shown = json.loads(quote_value(customer))

    def calls(name: str) -> list[Any]:
        own = (call(LOGIN.tool, customer=name, password="sesame"),
               call(LOOK.tool, customer=name, order="o-1"),
               call(PAY.tool, customer=name, order="o-1", amount=50))  # fmt: skip
        return list(own)

    assert shown in agent.call(calls(customer)[2])
    for short, whole in zip(calls(shown), calls(customer), strict=True):
        assert customer in agent.call(short)
        assert agent.call(whole, RESULTS.get(whole.tool)) == (
            "allow" if whole.tool == PAY.tool else ""
        )


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", b"nonsense\r\n"]
)
def test_another_server_at_the_address_allows_nothing(answer: bytes) -> None:
    """A hook that broke off would let the agent go on."""
    with socketserver.TCPServer(("127.0.0.1", 0), partial(Answers, answer)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        agent = CodingAgent(f"http://127.0.0.1:{server.server_address[1]}")
        assert "can't be asked" in agent.call(PAY)
        server.shutdown()


def test_a_service_that_hangs_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents stop a hook after a minute, and then make the call."""
    assert 3 * pre_tool_hook.ANSWER_SECONDS < 60
    monkeypatch.setattr(pre_tool_hook, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent = CodingAgent(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "can't be asked" in agent.call(PAY)


class Answers(socketserver.BaseRequestHandler):
    def __init__(self, answer: bytes, *own: Any) -> None:
        self.answer = answer
        super().__init__(*own)

    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(self.answer)


@pytest.mark.parametrize(
    ("conversation", "tool", "decision"),
    [("c-1", "refund\ud800", "refused"), ("\ud800", "login", "carry_out")],
)
async def test_a_name_with_a_lone_surrogate_is_answered(
    conversation: str, tool: str, decision: str, tmp_path: Path
) -> None:
    body = {"conversation": conversation, "id": "1", "tool": tool, "arguments": {}}
    async with served(tmp_path) as agent:
        answer = await agent.http.post("/before", content=json.dumps(body).encode())
        assert (answer.status_code, answer.json()["decision"]) == (200, decision)


def test_without_the_service_nothing_is_allowed() -> None:
    event = {"session_id": "s", "tool_name": "pay", "tool_input": {}, "tool_use_id": "1"}
    url = "http://127.0.0.1:9"
    for name in ("PreToolUse", "preToolUse", "", None):
        assert hooked(url, hook_event_name=name, **event)["permissionDecision"] == "deny"
    assert hooked(url, **event)["permissionDecision"] == "deny"
    assert (
        pre_tool_hook.answer_hook({"session_id": "s", "hook_event_name": "SessionEnd"}, url, "t")
        is None
    )


async def test_a_question_to_the_user_is_answered_by_the_next_request(tmp_path: Path) -> None:
    async with looked_up(tmp_path, confirm='"Pay {amount} back?"') as agent:
        own = {"tool": "refund", "arguments": dict(REFUND.arguments)}
        question = (await agent.before("3", REFUND))["question"]
        assert "50" in question

        async def reply(number: str, conversation: str = "c-1", **changed: Any) -> str:
            body = {"conversation": conversation, "id": number, **own, **changed}
            status, decided = await agent.post("/before", **body)
            return decided.get("decision", "") if status == 200 else str(status)

        yes = {"question": question, "text": "yes"}
        dearer = {**REFUND.arguments, "amount": 60}
        assert await reply("4", reply=yes, arguments=dearer) == "missing"
        assert await reply("5", reply=yes, conversation="c-2") == "missing"
        assert await reply("6", reply={"question": "Another?", "text": "yes"}) == "missing"
        assert await reply("7", reply={"text": "yes"}) == "400"
        assert await reply("8", reply={**yes, "text": "no"}) != "carry_out"
        assert await reply("9", reply=yes) == "refused"  # the no stands
        assert await reply("10", reply=yes, messages=["Pay it after all."]) == "carry_out"


async def test_a_reply_answers_no_other_call_at_the_same_time_or_later(tmp_path: Path) -> None:
    async with looked_up(tmp_path, confirm='"Pay {amount} back?"') as agent:
        yes = {"question": (await agent.before("3", REFUND))["question"], "text": "yes"}

        looks = {}
        for id, reply in (("4", yes), ("5", {"question": "Another?", "text": "yes"})):
            look = {"tool": "find_order", "arguments": {**LOOK.arguments, "order": "o-2"}}
            named = {"conversation": "c-1", "id": id, "reply": reply}
            _, looks[id] = await agent.post("/before", **named, **look)
        assert await agent.make("6", REFUND) == "missing"
        for id, decided in looks.items():
            await agent.after(id, decided, RESULTS["find_order"])
        assert await agent.make("7", REFUND) == "missing"
        assert agent.paid == []
