"""The end of a run, for a person."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.desks.tasks._result import Result
from sopilot.language.diagnostics.plain_text import Heading, Lines
from sopilot.runtime.agent import Ending
from sopilot.runtime.audit.text_report import render_text


def result_lines(done: Result, *, customer: bool = False) -> Iterator[str]:
    """``customer``: whoever reads it is who was served, and learns no more than they may."""
    result = done.run
    if customer:
        yield ""
        told = result.to_customer
        yield Heading(f"{result.ending}: {told}" if told else str(result.ending))
        return
    yield ""
    yield Heading(f"{result.ending}: {result.reason}" if result.reason else str(result.ending))
    for refusal in result.refusals:
        yield f"  not met: {refusal.sentence}"
        for line in refusal.evidence:
            yield f"    shown by {line}"
        if refusal.tells:
            yield f"    the customer is told: {refusal.tells}"
        if refusal.remedy:
            yield f"    what you could do: {refusal.remedy}"
    if done.waiting:
        yield f"  look at it: sopilot approve list {result.session_id}"
        yield f"  then go on: sopilot resume {result.session_id}"
    elif result.ending is Ending.INFRASTRUCTURE_FAILURE:
        yield f"  the provider failed, not the model; go on: sopilot resume {result.session_id}"
    usage = result.usage
    yield (
        f"  {result.agent_turns} requests, {result.domain_calls} tool calls, "
        f"{result.user_turns} answers of the user, {usage.prompt_tokens} prompt tokens "
        f"({usage.cached_tokens} cached), {usage.completion_tokens} completion tokens"
    )
    if done.verdict is not None and not done.pending:
        word = "as the task expects" if done.passed else "not what the task expects"
        yield f"  {result.ending}, {word}"
        for reason in done.verdict.get("reasons", ()):
            yield f"    {reason}"
    yield ""
    yield Heading("audit")
    yield Lines(render_text(done.audit))
    yield ""
    yield f"trace: sopilot trace export {result.session_id}"
