"""Tools whose names aren't those of their actions: the guard knows them all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")
pytest.importorskip("mcp", reason="needs the extra `mcp`")

from every_interface import INTERFACES, reply_of
from framework_agents import EVERY_FRAMEWORK, FrameworkAgent, PydanticAIAgent
from pydantic_ai import DeferredToolRequests, ExternalToolset, ToolDefinition, ToolOutput
from scripted_moves import Case, Move, RecordingTools, Script, call

import sopilot
from sopilot.integrations.decision_service import decision_app
from sopilot.messages.errors import UserMistake
from sopilot.runner.conversations import Conversations

HANDBOOK = """
handbook: releases
actions:
  read_build: {tool: ci-build, input: {build: string}, read_only: true}
  deploy: {tool: "ci:do-deploy", input: {build: string}, irreversible: true, confirm: false}
  wipe: {tool: ci-wipe, offered: false}
predicates:
  green(build):
    says: The build {build} is green.
    verify: read_build(build)
    verdict: result.state == 'green'
procedures:
  deploy: {requires: green(build)}
"""
READ, DEPLOY = call("ci-build", build="b-1"), call("do-deploy", build="b-1")


class Builds:
    """The simulated system: what was deployed, and whether it was wiped."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.deployed: list[str] = []
        self.wiped = False

    def read(self, build: str) -> dict[str, str]:
        """Reads a build."""
        return {"state": self.state}

    def deploy(self, build: str) -> str:
        """Deploys a build."""
        self.deployed.append(build)
        return "deployed"

    def wipe(self) -> str:
        """Wipes."""
        self.wiped = True
        return "wiped"


async def driven(
    kind: type[FrameworkAgent],
    folder: Path,
    builds: Builds,
    *moves: Move,
    view: str = "guard",
    text: str = HANDBOOK,
    **options: Any,
) -> None:
    book = folder / "releases.yaml"
    book.write_text(text, "utf-8")
    named = {"ci-build": builds.read, "do-deploy": builds.deploy, "ci-wipe": builds.wipe}
    elsewhere = options.pop("elsewhere", "")
    tools = [kind.tool(each, name) for name, each in named.items() if name != elsewhere]
    hooks = Conversations.of(book, view=view)
    async with sopilot.conversation("c-1"):
        await kind(hooks, tools, reply_of(Script(moves)), **options).say("Please.")
    await hooks.close()


@EVERY_FRAMEWORK
@pytest.mark.parametrize(
    ("view", "state", "moves", "deployed"),
    [
        ("guard", "green", [DEPLOY], []),
        ("guard", "red", [READ, DEPLOY], []),
        ("guard", "green", [READ, DEPLOY], ["b-1"]),
        ("guard-auto", "red", [DEPLOY], []),
        ("guard-auto", "green", [DEPLOY], ["b-1"]),
    ],
)
async def test_a_tool_is_guarded_under_its_own_name(
    framework: type[FrameworkAgent],
    tmp_path: Path,
    view: str,
    state: str,
    moves: list[Move],
    deployed: list[str],
) -> None:
    builds = Builds(state)
    await driven(framework, tmp_path, builds, *moves, call("ci-wipe"), view=view)
    assert builds.deployed == deployed
    assert not builds.wiped


@EVERY_FRAMEWORK
async def test_a_tool_that_two_servers_may_have_is_not_called(
    framework: type[FrameworkAgent], tmp_path: Path
) -> None:
    """The agent's name for it has no server, so it could be either action's."""
    builds, text = Builds("green"), HANDBOOK.replace("ci-build", "'store:do-deploy'")
    await driven(framework, tmp_path, builds, DEPLOY, text=text)
    assert builds.deployed == []


@pytest.mark.parametrize(("name", "elsewhere"), [("do-deploy", "do-deploy"), ("ship", "")])
async def test_no_action_is_an_output_function(tmp_path: Path, name: str, elsewhere: str) -> None:
    """Pydantic AI runs it as the end of the run, and no hook sees the call."""
    builds = Builds("red")
    own: dict[str, Any] = {
        "output_type": [str, ToolOutput(builds.deploy, name=name)],
        "elsewhere": elsewhere,
    }
    with pytest.raises(UserMistake, match="runs past the hook"):
        await driven(PydanticAIAgent, tmp_path, builds, READ, call(name, build="b-1"), **own)
    assert builds.deployed == []


async def test_no_action_is_an_external_tool(tmp_path: Path) -> None:
    """Pydantic AI leaves its calls to the application."""
    external = ExternalToolset([ToolDefinition(name="do-deploy")])
    own: dict[str, Any] = {"toolsets": [external], "output_type": [str, DeferredToolRequests]}
    with pytest.raises(UserMistake, match="`do-deploy` runs past the hook"):
        await driven(
            PydanticAIAgent, tmp_path, Builds("red"), READ, DEPLOY, elsewhere="do-deploy", **own
        )


SHARED = HANDBOOK.replace("ci:do-deploy", "ci-build")
BARE = HANDBOOK.replace("ci-build", "'store:deploy'")  # `deploy` is an action's own name, too


@pytest.mark.parametrize("text", [SHARED, HANDBOOK.replace("ci-build", "deploy"), BARE])
def test_a_tool_of_two_actions_is_refused(tmp_path: Path, text: str) -> None:
    """A call of it could be the unguarded one."""
    book = tmp_path / "releases.yaml"
    book.write_text(text, "utf-8")
    with pytest.raises(UserMistake, match="shared-tool"):
        Conversations.of(book)
    with pytest.raises(UserMistake, match="shared-tool"):
        decision_app(book, token="a-token-of-the-test")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("pay_out", "shared-tool"),
        ("other:pay_out", "shared-tool"),
        ("other:read_build", "shared-tool"),
        ("ci-wipe", "not-offered"),
    ],
)
async def test_no_tool_of_an_action_passes_the_gateway_beside_it(name: str, code: str) -> None:
    text = HANDBOOK.replace("ci:do-deploy", "pay_out")
    case = Case(0, "aliased", text, lambda name, given, state: {"done": True})
    tools = RecordingTools(case)
    with pytest.raises(UserMistake, match=code):
        async with INTERFACES["gateway"](case, tools, "guard", pass_through=[name]):
            pass
    assert tools.made == []
