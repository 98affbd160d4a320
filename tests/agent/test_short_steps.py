"""What a model need not write under `fused`, and that it means the same as written out."""

from __future__ import annotations

import json

import pytest
from desk_runs import ScriptedModel, calls, played

from sopilot.agent.dialog import told_in_one
from sopilot.agent.reference.reading import stated_in
from sopilot.protocols import ModelReply
from sopilot.trace.events import Amend, Complete, Fail, Return, Start
from sopilot.views.step_tool import parse_step, parse_steps


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"start": "pay"}, [(Start("pay"), "")]),
        ({"start": "pay", "arguments": {"a": 1}}, [(Start("pay", {"a": 1}), "")]),
        ({"amend": {"a": 2}}, [(Amend({"a": 2}), "")]),
        ({"holds": False}, [(Return(False), "")]),
        ({"true": "1 3", "false": "2"}, [(Return(h), n) for n, h in _ROW]
         if (_ROW := [("1", True), ("2", False), ("3", True)]) else []),
        ({"true": [1, 2]}, [(Return(True), "1"), (Return(True), "2")]),
        ({"undecided": "1"}, [(Return(undecided=True), "1")]),
        ({"false": "1", "fail": True}, [(Return(False), "1"), (Fail(), "")]),
        ({"complete": True, "fail": False, "start": ""}, [(Complete(), "")]),
        ({"operation": "return", "holds": True, "function": "r(x)"}, [(Return(True), "r")]),
    ],
)  # fmt: skip
def test_fields_say_which_operation_is_meant(written: dict[str, object], meant: object) -> None:
    found = parse_steps(written)
    assert isinstance(found, tuple)
    assert [tuple(one) for one in found] == meant


@pytest.mark.parametrize("written", [{}, {"fail": False}, {"true": {"1": 2}}, {"true": [True]}])
def test_what_says_nothing_is_answered(written: dict[str, object]) -> None:
    assert isinstance(parse_steps(written), str)


@pytest.mark.parametrize(
    ("evidence", "cited"),
    [
        ("#38, #41", ("#38", "#41")),
        (["#38 and #41"], ("#38", "#41")),
        ([38, "#38"], ("#38",)),
        ("read_account, read_limit", ("read_account", "read_limit")),
    ],
)
def test_evidence_as_text_is_read(evidence: object, cited: tuple[str, ...]) -> None:
    found = parse_step({"operation": "return", "holds": True, "evidence": evidence})
    assert isinstance(found, Return)
    assert found.evidence == cited


def test_evidence_that_cannot_be_read_is_refused_with_the_right_form() -> None:
    found = parse_step({"operation": "return", "holds": True, "evidence": "see: above!"})
    assert found == 'return: `evidence` must cite results as `#12`, not "see: above!"'


def test_values_that_the_user_stated_by_name() -> None:
    text = 'Hello.\namount: 50\nname: "Ann"\nwhy: because\n  unit : 3\nlist: [1, 2]'
    assert stated_in(text) == {"amount": 50, "name": "Ann", "list": [1, 2]}


def test_the_answer_to_several_operations_tells_how_far_it_came() -> None:
    assert told_in_one("", "Done: return.") == "Done: return."
    assert told_in_one("Done: return.", "Done: fail.") == "Done: fail."
    assert told_in_one("Done: return.", "Nothing was done: x.").startswith("Done: return. Nothing")


def test_a_citation_of_nothing_is_answered_and_binds_nothing() -> None:
    model = ScriptedModel(
        [
            calls(("pg_program_step", json.dumps({"operation": "start", "goal": "issue_card"}))),
            calls(
                (
                    "pg_program_step",
                    json.dumps({"operation": "call", "arguments": {"username": "anna"}}),
                )
            ),
            calls(
                (
                    "pg_program_step",
                    json.dumps({"operation": "return", "holds": True, "evidence": "#999"}),
                )
            ),
            ModelReply("I stop here."),
        ]
    )
    run = played("bank", "card-first", "pg-paper", model=model)
    problems = [note["problem"] for note in run.notes("malformed_step")]
    assert any("there is no result" in str(problem) for problem in problems)
    assert "return" not in run.kinds()


@pytest.mark.parametrize("task", ["transfer-rent-share", "dispute-no-password"])
def test_what_is_left_out_is_in_the_trace(task: str) -> None:
    """The calls that `fused` writes are shorter; what was called is the same."""
    fused, paged = played("bank", task, "fused"), played("bank", task, "pg")
    made = [
        [
            (one.payload["action"], one.payload["arguments"])
            for one in run.session.own_events
            if one.kind == "domain_call"
        ]
        for run in (fused, paged)
    ]
    assert made[0] == made[1]
    starts = [
        one.payload["arguments"]
        for run in (fused, paged)
        for one in run.session.own_events
        if one.kind == "start"
    ]
    assert starts[0] == starts[-1]
    written = [
        arguments
        for note in fused.notes("model_request")
        for _, _, arguments in note.get("calls", ())  # type: ignore[attr-defined]
    ]
    assert sum(map(len, written)) < 200
