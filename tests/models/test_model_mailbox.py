"""A model that is a folder: whoever answers files, killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sopilot.agent.providers import (
    InfrastructureFailure,
    ProviderError,
    Retries,
    complete_with_retries,
)
from sopilot.handbook.reader import load_handbook
from sopilot.messages.errors import UserMistake
from sopilot.models.mailbox import MailboxModel
from sopilot.models.open import make_model
from sopilot.protocols import Message, ModelReply, ModelRequest, ToolCall
from sopilot.tasks.scenarios import load_scenarios
from sopilot.tasks.starter import starter

ROOT = Path(__file__).parents[2]
HELLO = ModelRequest([Message("system", "Be brief."), Message("user", "Hello")], timeout_seconds=20)
QUICK = Retries(attempts=3, first_seconds=0.01)


def requests(box: Path) -> list[Path]:
    return sorted((box / "requests").glob("*.json"))


def answering(box: Path, answer: Callable[[dict[str, Any]], object], count: int = 1) -> Any:
    """Answers so many requests in a thread, each once."""

    def run() -> None:
        done: set[str] = set()
        until = time.monotonic() + 20
        while len(done) < count and time.monotonic() < until:
            for path in requests(box):
                reply = box / "replies" / path.name
                if not reply.exists():
                    text = json.dumps(answer(json.loads(path.read_text())))
                    reply.with_suffix(".part").write_text(text)
                    os.replace(reply.with_suffix(".part"), reply)
                    done.add(path.name + str(len(done)))
            time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def ask(model: MailboxModel, request: ModelRequest = HELLO, retries: Retries = QUICK) -> ModelReply:
    async def run() -> ModelReply:
        return await complete_with_retries(model, request, retries)

    return asyncio.run(run())


def test_a_reply_is_asked_for_once_whoever_asks_again(tmp_path: Path) -> None:
    reply = {
        "content": "Good morning.",
        "tool_calls": [{"id": "a", "name": "look", "arguments": {"at": "it"}}],
        "usage": {"prompt_tokens": 7},
        "model": "me",
    }
    thread = answering(tmp_path, lambda asked: reply)
    first = ask(MailboxModel(str(tmp_path), about={"task": "t"}))
    thread.join()
    assert first.content == "Good morning."
    assert first.tool_calls == (ToolCall("a", "look", '{"at": "it"}'),)
    assert (first.usage.prompt_tokens, first.served.model) == (7, "me")
    again = ask(MailboxModel(str(tmp_path), about={"task": "t"}))
    assert again == first, "after a kill the reply is there"
    (kept,) = requests(tmp_path)
    asked = json.loads(kept.read_text())
    assert asked["id"] == kept.stem
    assert asked["about"] == {"task": "t"}
    assert [one["role"] for one in asked["request"]["messages"]] == ["system", "user"]
    assert str(tmp_path) not in kept.read_text(), "a folder that was moved goes on"


def test_another_run_or_another_word_is_another_request(tmp_path: Path) -> None:
    for about, request in (
        ({"run": "1"}, HELLO),
        ({"run": "2"}, HELLO),
        ({"run": "1"}, ModelRequest([Message("user", "Hello!")])),
        ({"run": "1"}, ModelRequest(HELLO.messages, temperature=0.7)),
    ):
        short = ModelRequest(
            request.messages, temperature=request.temperature, timeout_seconds=0.05
        )
        with pytest.raises(InfrastructureFailure, match="no answer within"):
            ask(MailboxModel(str(tmp_path), about=about), short, Retries(attempts=1))
    assert len(requests(tmp_path)) == 4


def test_several_at_once(tmp_path: Path) -> None:
    thread = answering(
        tmp_path, lambda asked: {"content": asked["request"]["messages"][-1]["content"]}, count=5
    )

    async def run() -> list[ModelReply]:
        model = MailboxModel(str(tmp_path))
        some = [ModelRequest([Message("user", f"number {n}")]) for n in range(5)]
        return list(await asyncio.gather(*(model.complete(one) for one in some)))

    replies = asyncio.run(run())
    thread.join()
    assert [one.content for one in replies] == [f"number {n}" for n in range(5)]


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
def test_a_reply_that_cannot_be_used_is_set_aside_and_asked_for_again(
    tmp_path: Path, bad: object, problem: str
) -> None:
    given = iter([bad, {"content": "better"}])
    thread = answering(tmp_path, lambda asked: next(given), count=2)
    assert ask(MailboxModel(str(tmp_path))).content == "better"
    thread.join()
    (refused,) = (tmp_path / "replies").glob("*.refused-1")
    assert json.loads(refused.read_text()) == bad
    refused.replace(refused.with_suffix(""))

    async def once() -> None:
        await MailboxModel(str(tmp_path)).complete(HELLO)

    with pytest.raises(ProviderError, match=problem):
        asyncio.run(once())


def test_a_reply_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "replies").mkdir()

    def slowly() -> None:
        while not requests(tmp_path):
            time.sleep(0.01)
        reply = tmp_path / "replies" / requests(tmp_path)[0].name
        reply.write_text('{"content": ')
        time.sleep(0.3)
        reply.write_text('{"content": "whole"}')

    thread = threading.Thread(target=slowly)
    thread.start()
    assert ask(MailboxModel(str(tmp_path))).content == "whole"
    thread.join()


def test_a_mailbox_needs_a_folder() -> None:
    with pytest.raises(UserMistake, match="mailbox:DIR"):
        make_model("mailbox:")
    assert make_model("mailbox:some/box").name == "mailbox:box"


def test_the_documents_example_answers_a_whole_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "measure-an-agent.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- file: answerer.py -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "answerer.py").write_text(found[1])
    box = tmp_path / "box"
    box.mkdir()
    answerer = subprocess.Popen([sys.executable, str(tmp_path / "answerer.py"), str(box)])
    command = ["run", "bank", "--view", "pg", "--model", f"mailbox:{box}", "--json"]
    environment = {**os.environ, "SOPILOT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "sopilot.cli.main", *command],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    (box / "stop").touch()
    assert answerer.wait(timeout=20) == 0
    result = json.loads(done.stdout)
    assert result["agent_turns"] == len(requests(box)) > 1
    assert result["ending"] in ("abandoned", "budget")


def test_scenarios_are_played_by_whoever_answers(tmp_path: Path) -> None:
    handbook, scenarios = starter("my-desk")
    (tmp_path / "my-desk.yaml").write_text(handbook, encoding="utf-8")
    (tmp_path / "my-desk.scenarios.yaml").write_text(scenarios, encoding="utf-8")
    box = tmp_path / "box"
    names = load_scenarios(scenarios, load_handbook(handbook), "x").scenarios
    thread = answering(box, lambda asked: {"content": "No."}, count=3)
    command = ["test", str(tmp_path / "my-desk.yaml"), "--model", f"mailbox:{box}", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "sopilot.cli.main", *command, "--only", names[0].name],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    thread.join()
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["scenarios"][0]["ending"] == "abandoned"
    assert {json.loads(path.read_text())["about"]["task"] for path in requests(box)} == {
        f"my-desk/{names[0].name}"
    }


def test_the_folder_may_name_the_run(tmp_path: Path) -> None:
    """Every task of every view its own folder: answerers see their own requests alone."""
    about = {"arm": "pg-paper", "task": "sopbench:bank/get_loan#3"}
    model = MailboxModel(f"{tmp_path}/{{arm}}/{{task}}", about=about)
    assert model.name == "mailbox:sopbench-bank-get_loan-3"
    assert model._folder == tmp_path / "pg-paper" / "sopbench-bank-get_loan-3"
    with pytest.raises(UserMistake, match="known: arm, task"):
        MailboxModel("box/{view}", about=about)
