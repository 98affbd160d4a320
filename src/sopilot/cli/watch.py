"""A run, shown to a person while it happens, and its result."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sopilot.agent.result import RETRY, Ending, Progress
from sopilot.audit.text import render_text
from sopilot.audit.timeline import entries_of
from sopilot.cli.output import Exit, marked, say, warn
from sopilot.messages.catalogue import worded
from sopilot.messages.results import result_words
from sopilot.tasks.task import Result
from sopilot.values.text import Heading, Lines, counted

_MARKS = {
    "user": ("user", "green"),
    "assistant": ("agent", "cyan"),
    "call": ("  call", None),
    "result": ("  ", None),
    "step": ("  step", "bright_black"),
    "held": ("  held", "yellow"),
    "note": ("  note", "yellow"),
}


class Watcher:
    """Prints a run while it happens: ``frames`` too, and to a ``person`` who is served only what
    the agent says. If it is ``quiet``, only retries are reported."""

    def __init__(self, *, quiet: bool = False, frames: bool = False, person: bool = False) -> None:
        self._quiet = quiet
        self._frames = frames
        self._person = person
        self._frame = ""

    def __call__(self, progress: Progress) -> None:
        if progress.kind == RETRY:
            warn(progress.text)
        elif self._quiet or (
            self._person and progress.kind not in ("request", "assistant", "held", "note")
        ):
            return
        elif progress.kind == "request":
            if self._frames and progress.frame_text and progress.frame_text != self._frame:
                say(
                    "\n".join(f"    │ {line}" for line in progress.frame_text.split("\n")), dim=True
                )
                self._frame = progress.frame_text
        else:
            mark, colour = _MARKS.get(progress.kind, ("  ", None))
            marked(mark, progress.text, fg=colour, bold=bool(colour))


def result_lines(done: Result, language: str = "en", *, customer: bool = False) -> Iterator[str]:
    """The result of a run. A ``customer`` who was served reads no more than they may."""
    result, words = done.run, partial(result_words, language=language)
    ending = words(str(result.ending))
    reason = result.to_customer if customer else worded(result.reason, language)
    yield ""
    yield Heading(f"{ending}{words('separator')}{reason}" if reason else ending)
    if customer:
        return
    for refusal in result.refusals:
        yield "  " + words("not-met", sentence=refusal.sentence)
        for line in refusal.evidence:
            yield "    " + words("shown-by", line=line)
        if refusal.customer_message:
            yield "    " + words("customer-message", message=refusal.customer_message)
        if refusal.remedy:
            yield "    " + words("remedy", remedy=refusal.remedy)
    if done.waiting:
        yield "  " + words("decide", session=result.session_id)
        yield "  " + words("then-resume", session=result.session_id)
    elif result.ending is Ending.INFRASTRUCTURE_FAILURE:
        yield "  " + words("provider-failed", session=result.session_id)
    usage, english = result.usage, language != "zh"
    yield "  " + words(
        "usage",
        requests=counted(result.agent_turns, "request") if english else result.agent_turns,
        calls=counted(result.domain_calls, "tool call") if english else result.domain_calls,
        replies=_replies(result.user_turns) if english else result.user_turns,
        prompt=usage.prompt_tokens,
        cached=usage.cached_tokens,
        completion=usage.completion_tokens,
    )
    if done.verdict is not None and not done.pending:
        yield "  " + words("as-expected" if done.passed else "not-expected", ending=ending)
        yield from (f"    {reason}" for reason in done.verdict.get("reasons", ()))
    yield ""
    yield Heading(words("audit"))
    entries = entries_of((sealed.event for sealed in done.events), done.audit.proofs)
    yield Lines(render_text(done.audit, language, entries=entries))
    yield ""
    yield words("trace", session=result.session_id)


def _replies(number: int) -> str:
    return "1 reply" if number == 1 else f"{number} replies"


def interrupted(judged: int, number: int, output: Path | None) -> SystemExit:
    stored = "; the same command resumes" if output is not None else ""
    say(f"\ninterrupted: {judged} of {number} tasks were judged just now{stored}", err=True)
    return SystemExit(Exit.INTERRUPTED)
