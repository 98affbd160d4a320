"""The gateway under the guard views, as a process. The judge is the shop's own file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

import mcp_types as types
from gateway_scenes import call, offered
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from reference_client import texts
from served import free_port, process, sopilot_command

from refund_shop import ONE_CHECK
from warm import warm_python

BREAKS, DECLINED = 14.0, 13.0
"""Amounts for which the shop's server reports an error."""
SHOP = Path(__file__).with_name("shop_upstream.py")
JUDGED = ONE_CHECK.replace("    verdict: result.state == 'delivered'\n", "    judged_by: model\n")
CLAIMED = ONE_CHECK.replace(
    "procedures:\n  refund: {requires: delivered(order)}",
    "  bought(order, buyer):\n"
    "    says: The order {order} was bought by {buyer}.\n"
    "    verify: find_order(order)\n"
    "    verdict: result.buyer == buyer\n"
    "procedures:\n"
    "  refund: {inputs: {customer: string}, requires: [delivered(order), bought(order, customer)]}",
)
"""The tool has no argument for the customer."""
REFUND = {"order": "o-1", "amount": 5.0}
TOOLS = ["find_order", "opening-hours", "refund"]


def command(folder: Path, book: str, *options: str) -> tuple[str, ...]:
    (folder / "refunds.yaml").write_text(book, "utf-8")
    kept = ("--store", f"sqlite:{folder}/sessions.db")
    wrapped = ("--exec", *warm_python(), str(SHOP), str(folder / "paid"))
    book_option = ("--handbook", str(folder / "refunds.yaml"))
    return sopilot_command("gateway", *book_option, *kept, *options, *wrapped)


@asynccontextmanager
async def shop(
    folder: Path, *options: str, book: str = ONE_CHECK, environment: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    started, *arguments = command(folder, book, *options)
    server = StdioServerParameters(command=started, args=arguments, env=environment)
    async with Client(server) as client:
        yield client


def text(result: types.CallToolResult) -> str:
    return "\n".join(texts(result))


def paid(folder: Path) -> str:
    file = folder / "paid"
    return file.read_text() if file.exists() else ""


def findings(folder: Path) -> set[str]:
    store = f"sqlite:{folder}/sessions.db"
    audit = sopilot_command("audit", "last", "--store", store, "--json")
    report = json.loads(subprocess.run(audit, capture_output=True, check=False).stdout)
    return {finding["code"] for finding in report["findings"]}


async def test_clients_see_the_servers_tools_and_results_and_nothing_else(tmp_path: Path) -> None:
    async with shop(tmp_path) as client:
        tools = await offered(client)
        assert sorted(tool.name for tool in tools) == TOOLS
        assert (await client.list_prompts()).prompts == []
        assert (await client.list_resources()).resources == []
        hasty = await call(client, "refund", **REFUND)
        assert hasty.is_error
        assert 'find_order(order="o-1")' in text(hasty)
        assert paid(tmp_path) == ""
        await call(client, "find_order", order="o-1")
        assert text(await call(client, "opening-hours")) == "9 to 5"
        # Nobody said what that tool changes: the order is read again.
        assert (await call(client, "refund", **REFUND)).is_error
        read = await call(client, "find_order", order="o-1")
        assert json.loads(text(read)) == {"state": "delivered", "buyer": "anna"}
        made = await call(client, "refund", **REFUND)
        assert (made.is_error, text(made)) == (False, "paid 5\nfor o-1")
        assert (await call(client, "refund", **REFUND)).is_error
        for hidden in ("pg_program_step", "confirm", "empty_till"):
            assert (await call(client, hidden)).is_error
        for built_in in ("ask_user", "confirm_with_user", "end_session"):
            assert text(await call(client, built_in)) == f"There is no tool `{built_in}`."
    assert paid(tmp_path) == "o-1 5\n"
    assert findings(tmp_path) <= {"premature-goal"}


async def test_a_refund_that_breaks_after_paying_is_not_made_again(tmp_path: Path) -> None:
    """The server's library marks what the tool raised as an error."""
    async with shop(tmp_path) as client:
        await call(client, "find_order", order="o-1")
        broken = await call(client, "refund", order="o-1", amount=BREAKS)
        assert "may have been carried out" in text(broken)
        assert "Error executing tool refund" in text(broken)
        await call(client, "find_order", order="o-1")
        for amount in (BREAKS, 5.0):
            assert (await call(client, "refund", order="o-1", amount=amount)).is_error
    assert paid(tmp_path) == f"o-1 {BREAKS:g}\n"
    assert "unknown-outcome" in findings(tmp_path)


@pytest.mark.parametrize("declared", [True, False])
async def test_an_error_is_a_failure_where_the_handbook_says_so(
    declared: bool, tmp_path: Path
) -> None:
    condition = """irreversible: true, not_done: "result.contains('declined')","""
    book = ONE_CHECK.replace("irreversible: true,", condition) if declared else ONE_CHECK
    async with shop(tmp_path, book=book) as client:
        await call(client, "find_order", order="o-1")
        failed = await call(client, "refund", order="o-1", amount=DECLINED)
        assert "card declined" in text(failed)
        assert ("may have been" in text(failed)) is not declared
        await call(client, "find_order", order="o-1")
        assert (await call(client, "refund", **REFUND)).is_error is not declared
        if declared:
            await call(client, "find_order", order="o-1")
            await call(client, "refund", order="o-1", amount=BREAKS)
            await call(client, "refund", order="o-1", amount=BREAKS)
    assert paid(tmp_path) == ("o-1 5\no-1 14\n" if declared else "")


async def test_what_a_client_leaves_out_is_not_taken_from_its_last_call(tmp_path: Path) -> None:
    async with shop(tmp_path) as client:
        assert (await call(client, "refund", **REFUND)).is_error
        await call(client, "find_order", order="o-1")
        assert "amount" in text(await call(client, "refund", order="o-1"))
    assert paid(tmp_path) == ""


async def test_a_value_is_left_out_if_it_is_the_default_of_the_server(tmp_path: Path) -> None:
    """Models of strict schemas write every parameter."""
    async with shop(tmp_path) as client:
        await call(client, "find_order", order="o-3", parcel=None)
        assert (await call(client, "refund", order="o-3", amount=5.0)).is_error
        await call(client, "find_order", order="o-1", parcel=1, page=None)
        assert not (await call(client, "refund", **REFUND, note=None)).is_error
    assert paid(tmp_path) == "o-1 5\n"


async def test_auto_reads_by_itself_and_refuses_in_one_answer(tmp_path: Path) -> None:
    async with shop(tmp_path, "--view", "guard-auto") as client:
        lost = await call(client, "refund", order="o-2", amount=5.0)
        assert lost.is_error
        assert text(lost).startswith("Refused")
        assert text(await call(client, "refund", **REFUND)) == "paid 5\nfor o-1"
    assert paid(tmp_path) == "o-1 5\n"


async def test_a_check_that_is_left_to_the_model_has_one_small_tool(tmp_path: Path) -> None:
    async with shop(tmp_path, book=JUDGED) as client:
        tools = await offered(client)
        assert sorted(tool.name for tool in tools) == sorted([*TOOLS, "judge_check"])
        await call(client, "find_order", order="o-1")
        assert (await call(client, "refund", **REFUND)).is_error
        judged = await call(client, "judge_check", check="delivered", holds=True)
        assert not judged.is_error
        assert not (await call(client, "refund", **REFUND)).is_error
    assert paid(tmp_path) == "o-1 5\n"


async def test_a_value_that_no_argument_has_is_passed_with_one_small_tool(tmp_path: Path) -> None:
    async with shop(tmp_path, book=CLAIMED) as client:
        (tool,) = [each for each in await offered(client) if each.name not in TOOLS]
        assert tool.name == "give_values"
        assert tool.input_schema["properties"] == {"customer": {"type": "string"}}
        early = await call(client, "give_values", customer="anna")
        assert text(early).startswith("Not recorded")
        await call(client, "find_order", order="o-1")
        for claimed, paid_now in (("bob", ""), ("anna", "o-1 5\n")):
            asked = await call(client, "refund", **REFUND)
            assert "`customer` and pass it with `give_values(customer=…)`" in text(asked)
            assert (await call(client, "give_values", order="o-1")).is_error
            assert not (await call(client, "give_values", customer=claimed)).is_error
            made = await call(client, "refund", **REFUND)
            assert (made.is_error, paid(tmp_path)) == (paid_now == "", paid_now)
        assert (await call(client, "refund", **REFUND)).is_error
    assert paid(tmp_path) == "o-1 5\n"
    assert findings(tmp_path) <= {"premature-goal"}


async def test_a_value_that_was_given_for_one_call_is_no_claim_about_another(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, book=CLAIMED) as client:
        await call(client, "find_order", order="o-1")
        await call(client, "find_order", order="o-2")
        assert (await call(client, "refund", order="o-2", amount=5.0)).is_error
        await call(client, "give_values", customer="bob")
        other = text(await call(client, "refund", **REFUND))
        assert "pass it with `give_values(customer=…)`" in other  # not refused because of bob
        await call(client, "give_values", customer="anna")
        assert not (await call(client, "refund", **REFUND)).is_error
    assert paid(tmp_path) == "o-1 5\n"


async def test_what_people_amend_is_carried_out_when_the_agent_calls_again(tmp_path: Path) -> None:
    """In place of its own call, or as its own call with their arguments."""
    book = ONE_CHECK.replace("confirm: false", "confirm: false, approval: boss")
    book = book.replace("requires: delivered(order)", "requires: [delivered(order)]")
    store = f"sqlite:{tmp_path}/sessions.db"

    def decide(*arguments: str) -> None:
        vote = sopilot_command("approvals", *arguments, "--role", "boss", "--store", store)
        subprocess.run(vote, check=True, capture_output=True)

    async with shop(tmp_path, book=book) as client:
        await call(client, "find_order", order="o-1")
        for asked, amended, again in ((50.0, 5.0, 50.0), (60.0, 6.0, 6.0)):
            waits = text(await call(client, "refund", order="o-1", amount=asked))
            assert "is waiting for approval: 0 of 1" in waits
            call_id = waits.partition("(call `")[2].partition("`")[0]
            less = json.dumps({"order": "o-1", "amount": amended})
            decide("amend", "last", call_id, "--as", "Bea", "--arguments", less)
            made = await call(client, "refund", order="o-1", amount=again)
            assert (made.is_error, text(made)) == (False, f"paid {amended:g}\nfor o-1")
            await call(client, "find_order", order="o-1")
    assert paid(tmp_path) == "o-1 5\no-1 6\n"
    assert findings(tmp_path) <= {"premature-goal"}


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_person_decides_for_a_client_that_cannot_ask_its_user(
    decision: str, tmp_path: Path
) -> None:
    book = ONE_CHECK.replace("confirm: false", 'confirm: "Pay {amount} back?"')
    store = ("--store", f"sqlite:{tmp_path}/sessions.db")
    async with shop(tmp_path, book=book) as client:
        hasty = text(await call(client, "refund", **REFUND))
        assert "find_order" in hasty  # people are asked last
        await call(client, "find_order", order="o-1")
        waits = text(await call(client, "refund", **REFUND))
        assert "can't show the user a question" in waits
        session_id = waits.partition("approvals list ")[2].partition("`")[0]
        listed = sopilot_command("approvals", "list", session_id, "--json", *store)
        (held,) = json.loads(subprocess.run(listed, capture_output=True, check=True).stdout)["held"]
        vote = ("approvals", decision, session_id, held["call_id"], "--role", "operator")
        subprocess.run(
            sopilot_command(*vote, "--as", "Bea", *store), check=True, capture_output=True
        )
        made = await call(client, "refund", **REFUND)
        assert made.is_error == (decision == "reject")
    assert paid(tmp_path) == ("o-1 5\n" if decision == "approve" else "")


async def test_a_wrapped_server_gets_the_environment_of_its_client(tmp_path: Path) -> None:
    """Credentials of the server, which clients pass to the command that they start."""
    given = {"SHOP_HOURS": "10 to 4", "SOPILOT_LANGUAGE": "en"}
    async with shop(tmp_path, environment=given) as client:
        assert text(await call(client, "opening-hours")) == "10 to 4"


@pytest.mark.parametrize(
    # Over HTTP the server offers only versions that have connections.
    ("over", "mode", "answer"),
    [("stdio", "legacy", "no"), ("stdio", "2026-07-28", "yes"), ("http", "auto", "yes")],
)
async def test_the_user_confirms_in_both_eras(
    over: str, mode: Any, answer: str, tmp_path: Path
) -> None:
    questions: list[str] = []

    async def user(context: Any, params: Any) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": answer})

    book = ONE_CHECK.replace("confirm: false", 'confirm: "Pay {amount} back?"')
    async with AsyncExitStack() as stack:
        server: Any
        if over == "http":
            address = f"127.0.0.1:{free_port()}"
            server = f"http://{address}/mcp"
            started = command(tmp_path, book, "--http", address)
            await stack.enter_async_context(process(started, server))
        else:
            program, *arguments = command(tmp_path, book)
            server = StdioServerParameters(command=program, args=arguments)
        client = await stack.enter_async_context(
            Client(server, elicitation_callback=user, mode=mode)
        )
        assert (await call(client, "refund", **REFUND)).is_error
        assert questions == []  # the order comes first
        await call(client, "find_order", order="o-1")
        made = await call(client, "refund", **REFUND)
    assert len(questions) == 1
    assert questions[0].startswith("Pay 5")
    assert made.is_error == (answer == "no")
    assert paid(tmp_path) == ("o-1 5\n" if answer == "yes" else "")


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (("--handbook-only",), []),
        ((), ["opening-hours"]),
        (("--pass-through", "empty_till"), ["empty_till", "opening-hours"]),
    ],
)
async def test_which_tools_pass_that_the_handbook_does_not_name(
    options: tuple[str, ...], more: list[str], tmp_path: Path
) -> None:
    """A tool that may change something must not be an unguarded way to do it."""
    async with shop(tmp_path, *options) as client:
        tools = await offered(client)
        assert sorted(tool.name for tool in tools) == sorted(["find_order", "refund", *more])
        emptied = await call(client, "empty_till")
    assert emptied.is_error == ("empty_till" not in more)
    assert paid(tmp_path) == ("everything\n" if "empty_till" in more else "")


@pytest.mark.parametrize("passed", ["refund", "empty_till"])
def test_nothing_passes_beside_a_guarded_action_that_no_server_offers(
    tmp_path: Path, passed: str
) -> None:
    """Its name may be misspelt in the handbook."""
    ended = subprocess.run(
        command(tmp_path, ONE_CHECK.replace("refund:", "refnd:"), "--pass-through", passed),
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    said = ended.stderr.decode()
    assert "missing-tool" in said
    assert "`refunds` guards `refnd`" in said
    assert "offered: false" in said
    assert paid(tmp_path) == ""


def test_inputs_that_differ_from_the_servers_are_errors(tmp_path: Path) -> None:
    book = ONE_CHECK.replace(
        "find_order: {input: {order: string}",
        "find_order: {input: {order: string, ordr: {type: string, required: false}}",
    ).replace("{order: string, amount: number}", "{order: number}")
    ended = subprocess.run(
        command(tmp_path, book),
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    said = ended.stderr.decode()
    for code, subject in (
        ("unknown-input", "did you mean `order`?"),
        ("input-type", "`order` of `refund` is `number` in the handbook and `string`"),
        ("missing-input", "needs `amount`"),
    ):
        assert code in said
        assert subject in said
