from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.sopbench.reach import ActionGraph

GRAPH: dict[str, Any] = {
    "nodes": [["goal", {"u": "u"}], "and", ["login", {"u": "u"}], "or", ["read", {}], ["dump", {}]],
    "connections": [[0, 1], [1, 2], [1, 3], [3, 4], [3, 5], [4, 2]],
}


def test_one_way_for_every_choice_the_goal_last_and_needs_first() -> None:
    graph = ActionGraph.of(GRAPH)
    named = [[graph.call(node).action for node in way] for way in graph.ways(10).ways]
    assert not graph.ways(10).cut
    assert sorted(named) == [["login", "dump", "goal"], ["login", "read", "goal"]]


def test_the_limit_holds() -> None:
    ways = ActionGraph.of(GRAPH).ways(1)
    assert len(ways.ways) == 1
    assert ways.cut
    assert not ActionGraph.of(GRAPH).ways(2).cut


def many_ways(pairs: int) -> dict[str, Any]:
    """The goal needs one of two for each of the pairs."""
    nodes: list[Any] = [["goal", {}], "and"]
    connections = [[0, 1]]
    for pair in range(pairs):
        place = len(nodes)
        nodes += ["or", [f"a{pair}", {}], [f"b{pair}", {}]]
        connections += [[1, place], [place, place + 1], [place, place + 2]]
    return {"nodes": nodes, "connections": connections}


def test_a_cut_is_told_where_it_was_made() -> None:
    whole = ActionGraph.of(many_ways(8)).ways(256)
    assert (len(whole.ways), whole.cut) == (256, False)
    assert ActionGraph.of(many_ways(9)).ways(256).cut
    below = many_ways(9)
    below["nodes"] = [["above", {}], *below["nodes"]]
    below["connections"] = [[0, 1], *([a + 1, b + 1] for a, b in below["connections"])]
    assert ActionGraph.of(below).ways(256).cut


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Acyclic: a connection leads to a later node; operators always lead somewhere."""
    size = draw(st.integers(1, 8))
    kinds = ["call", *draw(st.lists(st.sampled_from(["call", "and", "or"]), min_size=size - 1,
                                    max_size=size - 1))]  # fmt: skip
    kinds[-1] = "call"
    nodes = [[f"a{place}", {}] if kind == "call" else kind for place, kind in enumerate(kinds)]
    connections = []
    for place, kind in enumerate(kinds[:-1]):
        later = st.integers(place + 1, size - 1)
        most = 1 if kind == "call" else 3
        targets = draw(st.lists(later, min_size=int(kind != "call"), max_size=most, unique=True))
        connections += [[place, target] for target in targets]
    return {"nodes": nodes, "connections": connections}


@given(graphs())
@settings(deadline=None, max_examples=200)
def test_every_call_of_a_way_has_what_it_needs_before_it(graph: dict[str, Any]) -> None:
    made = ActionGraph.of(graph)

    def satisfied(node: int, done: set[int]) -> bool:
        kind, below = made.nodes[node], made.needs.get(node, ())
        if kind == "or":
            return any(satisfied(each, done) for each in below)
        if kind == "and":
            return all(satisfied(each, done) for each in below)
        return node in done

    ways = made.ways(64).ways
    assert ways
    for way in ways:
        assert way[-1] == 0
        assert len(set(way)) == len(way)
        done: set[int] = set()
        for node in way:
            assert all(satisfied(each, done) for each in made.needs.get(node, ()))
            done.add(node)
