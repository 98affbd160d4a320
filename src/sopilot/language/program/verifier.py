"""The verifier that runs on every compiled and every loaded program.

It reports every mistake it finds, and its time grows with the size of the
program. A program it accepts cannot send a machine to a place that does not
exist, read a result that is not bound, or loop for ever by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.language.diagnostics import Diagnostic, UserMistake
from sopilot.language.program._call_graph import check_call_graph
from sopilot.language.program._function_checks import check_function
from sopilot.language.program._report import Places, ProblemCollector, is_identifier
from sopilot.language.program.model import FORMAT, KNOWN_FORMATS, Act, Function, Kind, Program


def verify_program(
    program: Program,
    handbook_predicates: frozenset[str] | None = None,
    *,
    places: Places | None = None,
    accepted: Mapping[str, Function] | None = None,
) -> list[Diagnostic]:
    """Every mistake in ``program``; nothing when it may run.

    ``handbook_predicates`` bounds what rules and gates may judge (L(T) ∪ H_T).
    ``places`` gives positions in the file a program was read from.
    ``accepted`` are functions without callees that passed before, by name: a rule
    that many programs share is looked at once.
    """
    report = ProblemCollector(places or {})
    accepted = accepted or {}
    _check_header(program, report)
    for name, function in program.functions.items():
        if function.name != name:
            report.program(
                "name-mismatch",
                f"function `{function.name}` is listed as `{name}`",
                "list a function under its own name",
                path=name,
            )
        if accepted.get(name) is not function:
            check_function(program, function, report)
        predicate = function.predicate
        if (
            handbook_predicates is not None
            and predicate is not None
            and predicate not in handbook_predicates
        ):
            report.function(
                function,
                "unknown-predicate",
                f"`{predicate}` is not a predicate that this procedure needs",
                report.nearest(predicate, handbook_predicates, "it needs none"),
            )
    check_call_graph(program, report)
    if program.source.sha256:
        _check_goal(program, report)
    return report.diagnostics


def require_valid(
    program: Program,
    handbook_predicates: frozenset[str] | None = None,
    *,
    accepted: Mapping[str, Function] | None = None,
) -> None:
    """Raise ``UserMistake`` with every mistake in ``program``."""
    mistakes = verify_program(program, handbook_predicates, accepted=accepted)
    if mistakes:
        raise UserMistake(mistakes)


def _check_header(program: Program, report: ProblemCollector) -> None:
    if program.format not in KNOWN_FORMATS:
        report.program(
            "unknown-format",
            f"program format {program.format} is not known",
            f"this version reads formats up to {FORMAT}",
        )
    entry = program.functions.get(program.entry)
    if entry is None:
        report.program(
            "entry-missing",
            f"the entry `{program.entry}` is not a function of this program",
            report.nearest(program.entry, program.functions, "add a process function"),
            path="entry",
        )
    elif entry.kind is not Kind.PROCESS:
        report.function(
            entry,
            "entry-not-process",
            f"the entry `{program.entry}` is a {entry.kind}",
            "a run starts in a process",
        )
    for name in program.constants:
        if not is_identifier(name):
            report.program(
                "bad-name",
                f"`{name}` is not a name for a constant",
                "use letters, digits and underscores",
                path="constants",
            )
    _check_guarded(program, report)


def _check_guarded(program: Program, report: ProblemCollector) -> None:
    seen: set[str] = set()
    for guarded in program.guarded:
        if guarded.action in seen:
            report.program(
                "duplicate-guard",
                f"`{guarded.action}` is guarded twice",
                "write one guard for an action",
                path="guarded",
            )
        seen.add(guarded.action)
        expires = guarded.expires_seconds
        if guarded.needed < 0 or (expires is not None and expires <= 0):
            report.program(
                "bad-guard",
                f"the guard of `{guarded.action}` asks for an impossible approval",
                "`needed` is at least 0 and `expires_seconds` at least 1",
                path="guarded",
            )
        if guarded.needed > 0 and not guarded.roles:
            report.program(
                "bad-guard",
                f"the guard of `{guarded.action}` names nobody who could approve",
                "list the roles that may approve",
                path="guarded",
            )


def _check_goal(program: Program, report: ProblemCollector) -> None:
    """A program compiled from a handbook exists for exactly one call."""
    entry = program.functions.get(program.entry)
    if entry is None or entry.kind is not Kind.PROCESS:
        return
    goals = [index for index, step in enumerate(entry.steps) if isinstance(step, Act) and step.goal]
    if not goals:
        report.function(
            entry,
            "goal-missing",
            f"`{entry.name}` never calls its goal action",
            "mark one `act` step with `goal: true`",
        )
    for index in goals[1:]:
        report.step(
            entry,
            index,
            "goal-repeated",
            f"`{entry.name}` calls its goal action more than once",
            f"the goal is already called at `{entry.steps[goals[0]].label}`",
        )
