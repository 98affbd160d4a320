"""Random handbooks with awkward wording, for the renderings."""

from __future__ import annotations

from hypothesis import strategies as st

from sopilot.handbook.model import Action, ActionCall, Handbook, Input, Predicate, Procedure
from sopilot.handbook.requirements import (
    All,
    AnyOf,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Term,
    Tree,
)

INPUTS = ("user", "amount")
WORDINGS = st.sampled_from(
    [
        "The user {v} is known.",
        "ALL of these conditions must be met:",
        "• {v}",
        "must be true; unmet → refuse",
        '{limit} is "the" **limit** — for {v}; {{not a name}}',
        "余额足够：{v}。",
        "None",
        "> act: call the tool",
        "x",
    ]
) | st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)

_terms: st.SearchStrategy[Term] = st.sampled_from(
    [Name("user"), Name("amount"), Constant(3), Constant('a "quoted" text'), Constant(None)]
)


@st.composite
def handbooks(draw: st.DrawFn) -> Handbook:
    inputs = tuple(Input(name) for name in INPUTS)
    actions = {
        "goal": Action("goal", inputs, says=draw(WORDINGS)),
        "login": Action("login", (Input("v"), Input("pin"))),
        "read_all": Action("read_all", full_state=True),
    }
    predicates = {
        "open": Predicate(
            "open",
            ("v",),
            says=draw(WORDINGS),
            established_by=ActionCall("login", (("v", Name("v")),)),
        )
    }
    for number in range(draw(st.integers(1, 5))):
        name = f"p{number}"
        look = f"look{number}"
        gate = Leaf("open", (("v", Name("v")),))
        guarded = draw(st.booleans())
        actions[look] = Action(
            look, (Input("v"), Input("w")), requires=gate if guarded else All(())
        )
        one = (ActionCall(look, (("v", Name("v")),)),)
        other = (ActionCall("read_all"),)
        recipes = draw(st.sampled_from([(one,), (one, other), ()]))
        predicates[name] = Predicate(
            name,
            ("v",),
            says=draw(WORDINGS),
            says_not=draw(st.just("") | WORDINGS),
            recipes=recipes,
            tool_free=not recipes,
        )
    leaf = st.builds(
        Leaf,
        st.sampled_from(sorted(predicates)),
        _terms.map(lambda term: (("v", term),)),
        st.booleans(),
    ).filter(lambda one: one.wanted or one.predicate != "open")

    def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        several = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return st.one_of(*(st.builds(kind, several) for kind in (All, AnyOf, InOrder, First)))

    trees: st.SearchStrategy[Tree] = st.recursive(leaf, grown, max_leaves=14)
    return Handbook(
        "random",
        parameters={"limit": 5},
        actions=actions,
        predicates=predicates,
        procedures={"goal": Procedure("goal", "goal", draw(trees), worded=draw(st.none() | trees))},
    )
