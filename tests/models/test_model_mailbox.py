"""A model that is a folder: programs answer its files, and are killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sopilot.agent.retries import (
    InfrastructureFailure,
    ProviderError,
    Retries,
    complete_with_retries,
)
from sopilot.messages.errors import UserMistake
from sopilot.models.mailbox import MailboxModel
from sopilot.models.open import make_model
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.tasks.starter import starter

ROOT = Path(__file__).parents[2]
HELLO = ModelRequest([Message("system", "Be brief."), Message("user", "Hello")], timeout_seconds=20)


def requests(box: Path) -> list[Path]:
    return sorted((box / "requests").glob("*.json"))


async def answered(box: Path, answer: Callable[[dict[str, Any]], object], count: int = 1) -> None:
    """Answer so many requests, each once."""
    async with asyncio.timeout(20):
        while count:
            for path in requests(box):
                reply = box / "replies" / path.name
                if not reply.exists():
                    reply.with_suffix(".part").write_text(
                        json.dumps(answer(json.loads(path.read_text())))
                    )
                    os.replace(reply.with_suffix(".part"), reply)
                    count -= 1
            await asyncio.sleep(0.01)


async def ask(
    box: Path,
    request: ModelRequest = HELLO,
    *answers: object,
    attempts: int = 3,
    about: dict[str, str] | None = None,
) -> ModelReply:
    """The reply to a request that gets these answers, one after the other."""
    model, given = MailboxModel(str(box), about=about), iter(answers)
    retries = Retries(attempts=attempts, first_seconds=0.01)
    answering = asyncio.create_task(answered(box, lambda asked: next(given), len(answers)))
    reply = await complete_with_retries(model, request, retries)
    await answering
    return reply


async def test_a_killed_run_finds_its_reply_again(tmp_path: Path) -> None:
    answer = {
        "content": "Good morning.",
        "tool_calls": [{"id": "a", "name": "look", "arguments": {"at": "it"}}],
        "usage": {"prompt_tokens": 7},
        "model": "me",
    }
    first = await ask(tmp_path, HELLO, answer, about={"task": "t"})
    assert first.content == "Good morning."
    assert first.tool_calls == (ToolCall("a", "look", '{"at": "it"}'),)
    assert (first.usage.prompt_tokens, first.served.model) == (7, "me")
    assert await ask(tmp_path, HELLO, about={"task": "t"}) == first
    (path,) = requests(tmp_path)
    request = json.loads(path.read_text())
    assert (request["id"], request["about"]) == (path.stem, {"task": "t"})
    assert [message["role"] for message in request["request"]["messages"]] == ["system", "user"]
    assert str(tmp_path) not in path.read_text(), "a folder that was moved goes on"


async def test_another_run_or_another_word_is_another_request(tmp_path: Path) -> None:
    for about, request in (
        ({"run": "1"}, HELLO),
        ({"run": "2"}, HELLO),
        ({"run": "1"}, ModelRequest([Message("user", "Hello!")])),
        ({"run": "1"}, replace(HELLO, temperature=0.7)),
    ):
        short = replace(request, timeout_seconds=0.05)
        with pytest.raises(InfrastructureFailure, match="no answer within"):
            await ask(tmp_path, short, attempts=1, about=about)
    assert len(requests(tmp_path)) == 4


async def test_several_at_once(tmp_path: Path) -> None:
    model = MailboxModel(str(tmp_path))
    some = [ModelRequest([Message("user", f"number {n}")]) for n in range(5)]
    *replies, _ = await asyncio.gather(
        *(model.complete(request) for request in some),
        answered(tmp_path, lambda asked: asked["request"]["messages"][-1], count=5),
    )
    assert [reply.content for reply in replies] == [f"number {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"error": "I am tired"}, "I am tired"),
        ({}, "the answer is empty"),
        ([], "not an object"),
        ({"tool_calls": [{"arguments": {}}]}, "tool_calls"),
        ({"choices": []}, "no choice"),
    ],
)
async def test_an_unusable_reply_is_set_aside_and_requested_again(
    tmp_path: Path, bad: object, problem: str
) -> None:
    assert (await ask(tmp_path, HELLO, bad, {"content": "better"})).content == "better"
    (refused,) = (tmp_path / "replies").glob("*.refused-1")
    assert json.loads(refused.read_text()) == bad
    refused.replace(refused.with_suffix(""))
    with pytest.raises(ProviderError, match=problem):
        await MailboxModel(str(tmp_path)).complete(HELLO)


async def test_a_reply_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    asking = asyncio.create_task(MailboxModel(str(tmp_path)).complete(HELLO))
    while not requests(tmp_path):
        await asyncio.sleep(0.01)
    reply = tmp_path / "replies" / requests(tmp_path)[0].name
    reply.write_text('{"content": ')
    await asyncio.sleep(0.3)
    reply.write_text('{"content": "whole"}')
    assert (await asking).content == "whole"


def test_a_mailbox_needs_a_folder() -> None:
    with pytest.raises(UserMistake, match="mailbox:DIR"):
        make_model("mailbox:")
    assert make_model("mailbox:some/box").name == "mailbox:box"


@pytest.mark.parametrize(
    ("command", "task"),
    [
        (("run", "bank", "--view", "pg"), "bank/transfer-rent-share"),
        (
            ("test", "my-desk.yaml", "--only", "a fresh order is refunded"),
            "my-desk/a fresh order is refunded",
        ),
    ],
)
def test_the_documents_example_answers_whole_commands(
    tmp_path: Path, command: tuple[str, ...], task: str
) -> None:
    text = (ROOT / "docs" / "how-to" / "measure-an-agent.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- file: answerer.py -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "answerer.py").write_text(found[1])
    for suffix, content in zip(("yaml", "scenarios.yaml"), starter("my-desk"), strict=True):
        (tmp_path / f"my-desk.{suffix}").write_text(content, encoding="utf-8")
    box = tmp_path / "box"
    box.mkdir()
    answerer = subprocess.Popen([sys.executable, str(tmp_path / "answerer.py"), str(box)])
    environment = {**os.environ, "SOPILOT_HOME": str(tmp_path / "home")}
    whole = [sys.executable, "-m", "sopilot.cli.main", *command, "--model", f"mailbox:{box}"]
    done = subprocess.run(
        [*whole, "--json"], capture_output=True, text=True, check=False, env=environment,
        cwd=tmp_path, timeout=60,
    )  # fmt: skip
    (box / "stop").touch()
    assert answerer.wait(timeout=20) == 0
    result = json.loads(done.stdout)
    (ran,) = result.get("scenarios", [result])
    assert ran["ending"] in ("abandoned", "budget")
    assert len(requests(box)) > 1
    assert {json.loads(path.read_text())["about"]["task"] for path in requests(box)} == {task}


def test_the_folder_may_name_the_run(tmp_path: Path) -> None:
    """Every task of every view its own folder: answerers see their own requests alone."""
    about = {"arm": "pg-paper", "task": "sopbench:bank/get_loan#3"}
    model = MailboxModel(f"{tmp_path}/{{arm}}/{{task}}", about=about)
    assert model.name == "mailbox:sopbench-bank-get_loan-3"
    assert model._folder == tmp_path / "pg-paper" / "sopbench-bank-get_loan-3"
    with pytest.raises(UserMistake, match="known: arm, task"):
        MailboxModel("box/{view}", about=about)
