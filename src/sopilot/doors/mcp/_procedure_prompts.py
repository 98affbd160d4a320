"""Prompts with which a person starts a procedure in any MCP client."""

from __future__ import annotations

import mcp_types as types
from mcp.shared.exceptions import MCPError

from sopilot.language.render import quote_value
from sopilot.runtime.agent import Briefing
from sopilot.runtime.vm import TOOL_NAME


def list_prompts(briefing: Briefing) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=goal,
                description=program.functions[program.entry].says or None,
                arguments=[
                    types.PromptArgument(name=name, required=False)
                    for name in program.functions[program.entry].parameters
                ],
            )
            for goal, program in briefing.programs.items()
        ]
    )


def get_prompt(
    briefing: Briefing, params: types.GetPromptRequestParams, *, machine: bool
) -> types.GetPromptResult:
    program = briefing.programs.get(params.name)
    if program is None:
        raise MCPError(types.INVALID_PARAMS, "there is no such procedure")
    entry = program.functions[program.entry]
    given = {
        name: value for name, value in (params.arguments or {}).items() if name in entry.parameters
    }
    lines = [f"I ask for `{params.name}`." + (f" {entry.says}" if entry.says else "")]
    lines += [f"{name}: {quote_value(value)}" for name, value in given.items()]
    if machine:
        lines.append(
            f"Follow its procedure: `{TOOL_NAME}` with operation `start` and goal "
            f"`{params.name}` comes first, and every answer shows what comes next."
        )
    return types.GetPromptResult(
        description=entry.says or None,
        messages=[
            types.PromptMessage(role="user", content=types.TextContent(text="\n".join(lines)))
        ],
    )
