"""Random programs that are valid by construction."""

from __future__ import annotations

from hypothesis import strategies as st

from sopilot.handbook.requirements import Path, Scalar
from sopilot.program.model import (
    Act,
    ActionFacts,
    Always,
    Argument,
    Arguments,
    Ask,
    Branch,
    CallArgument,
    Check,
    Choose,
    CompleteStep,
    Condition,
    Do,
    Emit,
    Every,
    FailStep,
    Function,
    Guarded,
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

_AWKWARD = [
    *("", "yes", "null", "~", "$x", "??", "a: b # c", "- a", "{a}", "true", "1", "1e3", "x "),
    *("\u2028", "\ufeff", "\x7f", "\x85", '"', "\\", "\n", "\t x", "银行", "\U0001f3e6", "f(a, b)"),
]
texts = st.sampled_from(_AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(
    [*"abcdefghijklmnopqrsuvwxz", "true", "null", "no", "y", "not", "all", "step", "_", "t1"]
)
scalars: st.SearchStrategy[Scalar] = (
    texts
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)
json_values: st.SearchStrategy[object] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


paths = st.builds(
    Path,
    names,
    st.lists(st.sampled_from(["key", "no", "null"]) | st.integers(0, 999_999), max_size=3).map(
        tuple
    ),
)
types = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
plain_schemas: st.SearchStrategy[dict[str, object]] = types.map(lambda kind: {"type": kind})
schemas = plain_schemas | st.dictionaries(texts, json_values, max_size=3)
topics = st.none() | st.lists(names, unique=True, max_size=2).map(tuple)
facts = st.builds(
    ActionFacts,
    st.dictionaries(texts, schemas, max_size=2),
    st.lists(texts, max_size=2).map(tuple),
    topics,
    topics,
)


def conditions(slots: list[str]) -> st.SearchStrategy[Condition]:
    leaf: st.SearchStrategy[Condition] = st.builds(Always, st.booleans())
    if slots:
        leaf = st.builds(Holds, st.sampled_from(slots), st.booleans()) | leaf
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=3).map(tuple).map(Every)
            | st.lists(inner, max_size=3).map(tuple).map(Some)
        ),
        max_leaves=5,
    )


@st.composite
def arguments(draw: st.DrawFn, keys: tuple[str, ...], known: tuple[str, ...]) -> Arguments:
    value: st.SearchStrategy[Argument] = st.builds(Literal, scalars) | st.builds(Unknown, names)
    if known:
        value = st.builds(Local, st.sampled_from(known)) | value
    return tuple((key, draw(value)) for key in draw(st.permutations(keys)))


@st.composite
def recipe_calls(
    draw: st.DrawFn, label: str, known: tuple[str, ...], answers: tuple[str, ...]
) -> Act:
    """A call whose arguments may lead into ``answers``, which were given before it."""
    keys = tuple(draw(st.lists(texts, unique=True, max_size=3)))
    given: list[tuple[str, CallArgument]] = list(draw(arguments(keys, known)))
    each, element = None, ""
    if answers:
        into = st.builds(Path, st.sampled_from(answers), paths.map(lambda path: path.steps))
        if draw(st.booleans()):
            each, element = draw(into), draw(names)
        inside = into if not element else into | paths.map(lambda path: Path(element, path.steps))
        given = [(key, draw(inside) if draw(st.booleans()) else one) for key, one in given]
    return Act(
        label,
        draw(names),
        tuple(given),
        says=draw(texts),
        name=draw(st.just("") | names),
        each=each,
        element=element,
    )


@st.composite
def middle_step(
    draw: st.DrawFn,
    label: str,
    below: str,
    later: list[str],
    known: tuple[str, ...],
    slots: list[str],
    answers: tuple[str, ...],
) -> Step:
    """A step that may fall through to ``below`` or jump to one of ``later``."""
    jump = st.none() | st.just(below)
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return draw(recipe_calls(label, known, answers))
    if kind == 1:
        wants = tuple(draw(st.lists(names, min_size=1, max_size=2)))
        return Ask(label, wants, draw(texts), draw(jump))
    if kind == 2:
        return Do(label, draw(texts), tuple(draw(st.lists(names, max_size=2))), draw(jump))
    if kind == 3:
        schema = draw(st.none() | st.dictionaries(texts, json_values, max_size=3))
        return Emit(label, draw(names), draw(texts), schema, draw(jump))
    other = draw(st.sampled_from(later))
    if kind == 4:
        then, otherwise = draw(st.permutations([below, other]))
        return Branch(label, draw(conditions(slots)), then, otherwise)
    options = [Option(f"o{i}", to, draw(texts)) for i, to in enumerate([below, other])]
    return Choose(label, draw(texts), tuple(draw(st.permutations(options))))


@st.composite
def functions(
    draw: st.DrawFn, name: str, kind: Kind, callees: list[Function], must_call: list[Function]
) -> Function:
    parameters = tuple(draw(st.lists(names, unique=True, max_size=3)))
    called = must_call + draw(
        st.lists(st.sampled_from(callees), max_size=2) if callees else st.just([])
    )
    labels = draw(st.lists(names, unique=True, min_size=len(called) + 3, max_size=len(called) + 5))
    steps: list[Step] = []
    slots: list[str] = []
    for index, callee in enumerate(called):
        slot = f"slot{index}"
        steps.append(
            Check(
                labels[index],
                callee.name,
                draw(arguments(callee.parameters, parameters)),
                slot,
                draw(st.booleans()),
                draw(st.none() | st.just(labels[index + 1])),
                draw(st.none() | st.just(labels[index + 1])),
                draw(texts),
            )
        )
        slots.append(slot)
    last = len(labels) - 1
    for index in range(len(called), last):
        later = labels[index + 1 :]
        answers = tuple(step.answer for step in steps if isinstance(step, Act))
        steps.append(draw(middle_step(labels[index], later[0], later, parameters, slots, answers)))
    if kind is Kind.PROCESS:
        accepts = draw(st.booleans())
        says = draw(texts)
        steps.append(
            CompleteStep(labels[last], says)
            if accepts
            else FailStep(labels[last], says, draw(st.sampled_from(["", "hand_over"])))
        )
    else:
        holds = draw(st.none() | conditions(slots))
        steps.append(ReturnStep(labels[last], holds, draw(texts)))
    fallbacks: list[list[Act]] = []
    for _ in range(draw(st.integers(0, 1))):
        acts: list[Act] = []
        for _ in range(draw(st.integers(1, 2))):
            answers = tuple(act.answer for act in acts)
            acts.append(draw(recipe_calls(draw(names), parameters, answers)))
        fallbacks.append(acts)
    return Function(
        name,
        kind,
        parameters,
        tuple(steps),
        says=draw(texts),
        says_not=draw(texts),
        predicate=draw(st.none() | names),
        fallbacks=tuple(tuple(acts) for acts in fallbacks),
        verdict=draw(st.none() | texts),
        remedy=draw(texts),
        notes=tuple(draw(st.lists(texts, max_size=2))),
        judged_by_model=draw(st.booleans()),
        closed_by=draw(st.none() | recipe_calls("close", parameters, ())),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    rule_names = draw(st.lists(names, unique=True, min_size=1, max_size=4))
    made: list[Function] = []
    for index, name in enumerate(rule_names):
        kind = draw(st.sampled_from([Kind.RULE, Kind.GATE, Kind.GROUP]))
        callees = made if index else []
        made.append(draw(functions(name, kind, callees, [])))
    entry = draw(names.filter(lambda name: name not in rule_names))
    process = draw(functions(entry, Kind.PROCESS, [], made))
    listed = draw(st.permutations([process, *made]))
    guards = [
        Guarded(
            action, roles, len(roles), draw(st.none() | st.integers(1, 10**6)), draw(st.booleans())
        )
        for action in draw(st.lists(names, unique=True, max_size=2))
        for roles in [tuple(draw(st.lists(names, max_size=2)))]
    ]
    return Program(
        entry=entry,
        functions={function.name: function for function in listed},
        source=Source(draw(texts), draw(texts), "", draw(texts)),
        compiler=draw(texts),
        constants=draw(st.dictionaries(names, scalars, max_size=3)),
        guarded=tuple(guards),
        types=draw(st.dictionaries(names, schemas, max_size=2)),
        actions=draw(st.dictionaries(names, facts, max_size=2)),
    )
