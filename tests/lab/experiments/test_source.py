from __future__ import annotations

from sopbench_checkout import NEEDS_SOPBENCH
from sopilot.handbook.model import Handbook
from sopilot.handbook.requirements import leaves
from sopilot.handbook.wording import sentence
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.reference import DOMAINS
from sopilot_lab.sopbench.source import (
    load_tasks,
    offered_actions,
    read_tree,
    singles,
    sopbench_handbook,
)

pytestmark = NEEDS_SOPBENCH


def shared_handbook(domain: str) -> Handbook:
    return sopbench_handbook(domain, shared_upstream())


def test_every_leaf_reads_as_upstream_writes_it() -> None:
    upstream = shared_upstream()
    compared = 0
    for task in load_tasks("sopbench:all"):
        raw = upstream.tasks(task.domain)[task.goal][task.index]
        procedure = task.handbook.procedures[task.goal]
        for key, tree in (
            ("constraints", procedure.requires),
            ("constraints_original", procedure.worded),
        ):
            assert tree is not None
            theirs = upstream.sentences(
                task.domain, list(singles(raw[key])), raw["constraint_parameters"]
            )
            ours = [sentence(task.handbook, leaf) for leaf in leaves(tree)]
            assert ours == theirs
            compared += len(ours)
    assert compared > 8000


def test_the_official_text_holds_every_worded_sentence() -> None:
    upstream = shared_upstream()
    for task in load_tasks("sopbench:all"):
        if task.index:
            continue
        text = upstream.official_text(task.domain, task.goal, task.index)
        worded = task.handbook.procedures[task.goal].worded
        assert worded is not None
        for leaf in leaves(worded):
            assert sentence(task.handbook, leaf) in text.system
        assert text.user == task.user_prompt
        names = {tool["function"]["name"] for tool in text.tools}
        assert names == offered_actions(task.handbook, "official")


def test_handbooks_are_closed() -> None:
    """Everything a handbook names it also declares, and predicates have one kind each."""
    for task in load_tasks("sopbench:all"):
        handbook = task.handbook
        trees = [action.requires for action in handbook.actions.values()]
        trees += [each.requires for each in handbook.procedures.values()]
        for leaf in (leaf for tree in trees for leaf in leaves(tree)):
            predicate = handbook.predicates[leaf.predicate]
            assert [name for name, _ in leaf.arguments] == list(predicate.parameters)
    for domain in DOMAINS:
        shared = shared_handbook(domain)
        for predicate in shared.predicates.values():
            kinds = (predicate.recipes, predicate.established_by, predicate.tool_free)
            assert sum(map(bool, kinds)) == 1
            calls = [call for recipe in predicate.recipes for call in recipe]
            calls += [predicate.established_by] if predicate.established_by else []
            for call in calls:
                inputs = shared.actions[call.action].input_names()
                assert tuple(name for name, _ in call.arguments) == inputs


def test_what_is_not_offered() -> None:
    lacking = {
        domain: sorted(
            action.name for action in shared_handbook(domain).actions.values() if not action.offered
        )
        for domain in DOMAINS
    }
    assert {domain: names for domain, names in lacking.items() if names} == {
        "bank": ["cancel_credit_card", "pay_bill_with_credit_card"],
        "library": ["internal_get_interaction_date"],
    }
    for domain in DOMAINS:
        handbook = shared_handbook(domain)
        more = offered_actions(handbook, "full-state") - offered_actions(handbook, "official")
        assert more == (set() if domain == "hotel" else {"internal_get_database"})


def test_predicates_that_are_actions_verify_themselves() -> None:
    predicate = shared_handbook("university").predicates["internal_check_course_exists"]
    ((call,),) = predicate.recipes
    assert call.action == predicate.name
    assert predicate.verdict == "result"
    # Where the database may be the evidence instead, the value alone is no verdict.
    bank = shared_handbook("bank").predicates["internal_check_username_exist"]
    assert len(bank.recipes) == 2
    assert bank.verdict is None


def test_gates_leave_credentials_to_be_asked_for() -> None:
    gate = shared_handbook("dmv").predicates["logged_in_user"]
    assert gate.is_gate
    assert gate.parameters == ("username",)
    assert gate.established_by is not None
    assert [name for name, _ in gate.established_by.arguments] == ["username", "identification"]


def test_the_answer_is_not_in_a_task() -> None:
    for task in load_tasks("sopbench:bank"):
        raw = shared_upstream().tasks(task.domain)[task.goal][task.index]
        assert not {"action_should_succeed", "directed_action_graph", "initial_database"} & set(raw)
        assert not hasattr(task, "should_succeed")
    verdicts = [
        shared_upstream().scoring(task.domain)[task.goal][task.index]
        for task in load_tasks("sopbench:all")
    ]
    assert 0 < sum(verdicts) < len(verdicts)


def test_the_goal_action_requires_the_tasks_own_tree() -> None:
    (task,) = load_tasks("sopbench:bank/get_loan#3")
    raw = shared_upstream().tasks("bank")["get_loan"][3]["constraints"]
    parameters = {name: each.parameters for name, each in task.handbook.predicates.items()}
    assert task.handbook.actions["get_loan"].requires == read_tree(raw, parameters)
    assert shared_handbook("bank").actions["get_loan"].requires != read_tree(raw, parameters)
