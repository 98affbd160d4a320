"""The English words of a running session: slots, look-ahead, answers, tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ENGLISH_ANSWERS: Final[Mapping[str, str]] = {
    # --- where the machine stands ---
    "no_process": "No process is running.",
    "position": "Position: {items}",
    "gathered": "Evidence here: {items}",
    "nothing": "none",
    "next": "Next: {items}",
    "move_tool": "tool {call}",
    "move_goal": "goal tool {call}",
    "move_ask": "ask the user: {names}",
    "move_call": "call {call}",
    "move_values": "give {names} with `call` for {call}",
    # --- what follows a verdict ---
    "after": "After {edges}: {move}",
    "ahead_judge": "judge {number} {call} on {evidence}",
    "ahead_says": ": {says}",
    "no_tool": "no tool",
    # --- answers ---
    "done": "Done: {did}.",
    "nothing_to_do": "nothing to do",
    "nothing_done": "Nothing was done: {problem}.",
    "not_here": "this step does not fit where the program stands",
    "not_done": "Not done: {problem}.",
    "passed": "Passed {label}: {ground}.",
    "back_in": "Back in the suspended process `{goal}`.",
    "now_at": "Now at {place}.",
    "fits": "Fits: {shapes}.",
    "fits_tool": "call tool {call}",
    "fits_ask": "ask the user for {names}",
    "fits_start": "start {call}",
    "fits_call": "call {call}",
    "fits_find": " (find out: {names})",
    "not_called": "Not called: {problem}.",
    "outcome_unknown": ("Outcome unknown: {problem}. Do not call it again; an operator was told."),
    "empty_reply": "Your last message was empty. Speak to the user or call a tool.",
    "user_silent": ("The user has nothing more to say. End the conversation: {ways}."),
    "folded": "Folded: the newest of what was said and returned before.",
    # --- tools ---
    "step_tool": (
        "Move the program one step. `start` a goal; `amend` its values; `call` enters the function "
        "at the cursor; `return` whether it holds, with evidence; `select_branch`; "
        "`emit_artifact`; `complete` when the goal is reached; `fail` to refuse. The answer says "
        "where the program stands."
    ),
    "step_tool_short": "Move the program.",
    "short_start": "A goal.",
    "short_amend": "Other values for the goal.",
    "short_true": "Verdicts by number, `1 2`.",
    "short_option": "The branch to take.",
    "short_content": "Text or JSON.",
    "field_goal": "start: the goal.",
    "field_function": "call: the function at the cursor.",
    "field_arguments": "start, amend, call, return: values by name, as far as they are known.",
    "field_holds": "return: whether the predicate is true.",
    "field_undecided": "return: true instead of `holds` if the answers cannot tell.",
    "field_evidence": "return: tool results as `#12`, or names of tools called for it.",
    "field_value": "return: a value worth keeping.",
    "field_option": "select_branch: the option.",
    "field_name": "emit_artifact: the artifact's name.",
    "field_content": "emit_artifact: the content (text or JSON).",
    "field_summary": "complete: what was done; the user reads it.",
    "field_reason": "fail: what does not hold, or what the user cannot give; the user reads it.",
    "end_tool": "End the conversation once the request is carried out or refused.",
    "end_outcome": "`executed` if the request was carried out, else `refused`.",
    "end_reason": "What was done, or what does not hold; the user reads it.",
}
