"""Programs written by hand, and random ones, for the machine's tests."""

from __future__ import annotations

from hypothesis import strategies as st

from sopilot.program.model import (
    Act,
    Ask,
    Branch,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Holds,
    Kind,
    Literal,
    Local,
    Option,
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


LOGGED_IN = Function(
    "logged_in",
    Kind.GATE,
    ("username",),
    (
        Ask("ask", ("password",), "Ask for the password."),
        Act("login", "login", (("username", Local("username")), ("password", Unknown("password")))),
        ReturnStep("done"),
    ),
    predicate="logged_in",
)
FUNDS = Function(
    "funds_cover",
    Kind.RULE,
    ("username", "amount"),
    (Act("read", "read_balance", (("username", Local("username")),)), ReturnStep("done")),
    predicate="funds_cover",
    fallbacks=(
        (Act("ledger", "read_ledger"),),
        (Act("b1", "read_part_one"), Act("b2", "read_part_two", (("n", Literal(2)),))),
    ),
    verdict="result.balance >= amount",
)
OVERDRAFT = Function(
    "overdraft",
    Kind.RULE,
    ("username",),
    (
        Act("read", "read_balance", (("username", Local("username")),)),
        Act("limit", "read_limit", (("username", Local("username")),)),
        ReturnStep("done"),
    ),
    predicate="overdraft",
)
MONEY = Function(
    "any_of_funds",
    Kind.GROUP,
    ("username", "amount"),
    (
        Check(
            "check_1",
            "funds_cover",
            (("username", Local("username")), ("amount", Local("amount"))),
            "funds",
            met="check_2",
            unmet="check_2",
        ),
        Check(
            "check_2",
            "overdraft",
            (("username", Local("username")),),
            "over",
            met="end",
            unmet="end",
        ),
        ReturnStep("end", Some((Holds("funds"), Holds("over")))),
    ),
)
TRANSFER_STEPS: tuple[Step, ...] = (
    Check("login", "logged_in", (("username", Local("username")),), "logged", unmet="refuse"),
    Check(
        "money",
        "any_of_funds",
        (("username", Local("username")), ("amount", Local("amount"))),
        "money",
        met="login_again",
        unmet="login_again",
    ),
    Check("login_again", "logged_in", (("username", Local("username")),), "again", unmet="refuse"),
    Branch("decide", Every((Holds("logged"), Holds("money"))), "act", "refuse"),
    Act(
        "act",
        "transfer",
        (("username", Local("username")), ("amount", Local("amount")), ("to", Local("to"))),
        goal=True,
    ),
    CompleteStep("finish"),
    FailStep("refuse", "Refuse."),
)
TRANSFER = program(
    "transfer",
    Function("transfer", Kind.PROCESS, ("username", "amount", "to"), TRANSFER_STEPS),
    LOGGED_IN,
    MONEY,
    FUNDS,
    OVERDRAFT,
    constants={"largest": 500},
)
ERRAND = program(
    "errand",
    Function(
        "errand",
        Kind.PROCESS,
        ("what",),
        (
            Choose("pick", "Which?", (Option("short", "write"), Option("long", "look"))),
            Do("look", "Look around.", ("search",)),
            Ask("more", ("detail",)),
            Emit(
                "write",
                "memo",
                schema={
                    "type": "object",
                    "required": ["title"],
                    "properties": {"title": {"type": "string"}},
                },
            ),
            CompleteStep("finish"),
        ),
    ),
)
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
