"""Programs written by hand, and random ones, for the machine's tests."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from sopilot.program.codec import program_from_yaml
from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    CompleteStep,
    Condition,
    Every,
    FailStep,
    Function,
    Holds,
    Kind,
    Literal,
    Local,
    Program,
    ReturnStep,
    Some,
    Source,
    Step,
    Unknown,
)

SOURCE = Source("bank", "transfer", "0" * 64)


def program(entry: str, *functions: Function, constants: dict[str, int] | None = None) -> Program:
    return Program(
        entry,
        {function.name: function for function in functions},
        SOURCE,
        "test",
        dict(constants or {}),
    )


def _written(name: str) -> Program:
    path = Path(__file__).parent / "programs" / f"{name}.yaml"
    return program_from_yaml(path.read_text(encoding="utf-8"), path.name)


TRANSFER, ERRAND = _written("transfer"), _written("errand")
LOGGED_IN = TRANSFER.functions["logged_in"]
PROGRAMS = {"transfer": TRANSFER, "errand": ERRAND}


# --- random programs ------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A process over rules, gates and groups of groups, with reuse and factoring by chance."""
    names = ("a", "b")
    functions: list[Function] = []
    for index in range(draw(st.integers(1, 3))):
        gate = draw(st.booleans())
        action = draw(st.sampled_from(["read", "look"]))
        steps: list[Step] = [Ask("ask", ("secret",))] if gate else []
        steps.append(Act("act", action, (("x", Local("a")), ("s", Unknown("secret")))))
        if draw(st.booleans()):
            steps.append(Act("more", "also", (("x", Local("a")),)))
        steps.append(ReturnStep("done"))
        fallbacks = ((Act("fb", "fallback"),),) if draw(st.booleans()) else ()
        functions.append(
            Function(
                f"leaf_{index}",
                Kind.GATE if gate else Kind.RULE,
                ("a",),
                tuple(steps),
                predicate=f"leaf_{index}",
                fallbacks=fallbacks,
                verdict="x" if draw(st.booleans()) else None,
            )
        )
    for index in range(draw(st.integers(0, 3))):
        functions.append(Function(f"group_{index}", Kind.GROUP, names, _group(draw, functions)))
    checks = _checks(draw, functions)
    slots = list(dict.fromkeys(check.slot for check in checks))
    steps = [
        *checks,
        Branch("decide", _condition(draw, slots), "act", "refuse"),
        Act("act", "goal", (("x", Local("a")), ("y", Literal(1))), goal=True),
        CompleteStep("finish"),
        FailStep("refuse"),
    ]
    return program("main", Function("main", Kind.PROCESS, names, tuple(steps)), *functions)


def _group(draw: st.DrawFn, callees: list[Function]) -> tuple[Step, ...]:
    checks = _checks(draw, callees)
    slots = list(dict.fromkeys(check.slot for check in checks))
    return (*checks, ReturnStep("end", _condition(draw, slots)))


def _checks(draw: st.DrawFn, callees: list[Function]) -> list[Check]:
    checks = []
    for index in range(draw(st.integers(1, 4))):
        callee = draw(st.sampled_from(callees))
        terms: list[Local | Literal] = [Local("a"), Local("b"), Literal(7)]
        arguments = tuple((name, draw(st.sampled_from(terms))) for name in callee.parameters)
        # One slot per function and arguments, so that a repetition is reused.
        spelled = "_".join(
            str(term.value) if isinstance(term, Literal) else term.name for _, term in arguments
        )
        slot = f"s_{callee.name}_{spelled}"
        checks.append(Check(f"check_{index}", callee.name, arguments, slot, draw(st.booleans())))
    return checks


def _condition(draw: st.DrawFn, slots: list[str]) -> Condition:
    parts = tuple(Holds(slot, draw(st.booleans())) for slot in slots)
    return Every(parts) if draw(st.booleans()) else Some(parts)
