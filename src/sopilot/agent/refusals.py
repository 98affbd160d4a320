"""Which checks a refusal rests on, in words a user can read."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.handbook.grammar import in_language
from sopilot.handbook.wording import fill, named
from sopilot.machine.state import Status
from sopilot.program.model import Check, Function, Kind, Program
from sopilot.session.session import Session
from sopilot.values.json import JSON
from sopilot.values.text import quote_value
from sopilot.views.refusals import EVIDENCE_SHOWN, Refusal, refusal


def refusals(session: Session, language: str = "en") -> tuple[Refusal, ...]:
    """The unmet checks that the process which failed last is to be blamed on, latest first."""
    failed = [
        process
        for process in session.configuration.processes.values()
        if process.status is Status.FAILED
    ]
    if not failed:
        return ()
    process = failed[-1]
    program = session.programs.programs[process.goal]
    shown = {
        result.seq: f"#{result.seq} {result.action}: {quote_value(result.value, EVIDENCE_SHOWN)}"
        for result in process.results
    }
    events = session.own_events
    blamed = None if process.unmet is None else {item.producer for item in process.unmet}
    match: dict[str, Refusal] = {}
    for event in events:
        if event.kind != "return" or event.process != process.id:
            continue
        if blamed is not None and event.seq not in blamed:
            continue
        opened = events[event.payload["opened"]]
        resolved = opened.payload["resolved"] if opened.kind == "call" else {}
        values = {**resolved, **event.payload.get("learned", {})}
        function = program.functions[event.payload["function"]]
        bound = event.payload["bound"]
        if function.kind not in (Kind.RULE, Kind.GATE) or bound["holds"] == _wanted(
            program, function, event.payload["slot"]
        ):
            continue
        masked = session.secrets.masked
        whole = _sentence(function, program, values, holds=bound["holds"])
        sentence = masked(in_language(whole, language))
        evidence = tuple(masked(shown[seq]) for seq in bound["evidence"] if seq in shown)
        match[sentence] = refusal(function, program, sentence, evidence, language)
    return tuple(reversed(match.values()))


def _wanted(program: Program, function: Function, slot: str) -> bool:
    """The truth that the SOP asks for; a rule that is wanted both ways counts as wanted true."""
    for caller in program.functions.values():
        for step in caller.steps:
            if isinstance(step, Check) and (step.function, step.slot) == (function.name, slot):
                return step.wanted
    return True


def _sentence(
    function: Function, program: Program, values: Mapping[str, JSON], *, holds: bool
) -> str:
    names = {**program.constants, **named({name: name for name in function.parameters}), **values}
    template = function.says if holds or not function.says_not else function.says_not
    if not template:
        return f"{function.name} is {'true' if holds else 'false'}"
    return fill(template, names)
