"""What ``sopilot check`` tells of guarded actions, at the requirement that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from sopilot.cli.main import run
from sopilot.messages.diagnostic import Severity
from sopilot.runner.checks import check_text

DESK = """\
handbook: judged-desk
actions:
  look: {input: {user: string}}
  draw: {input: {user: string}, changes: [lots]}
  wipe: {input: {user: string}, irreversible: true, confirm: false}
  note: {input: {user: string}}
predicates:
  calm(user): {says: "{user} is calm.", verify: look(user), judged_by: model}
  fair(user): {says: "{user} is fair.", verify: look(user)}
  sane(user): {says: "{user} is sane.", verify: arguments}
  sure(user): {says: "{user} is sure.", verify: look(user), verdict: result.sure}
  drawn(user): {says: "{user} was drawn.", verify: draw(user), verdict: result.drawn}
procedures:
  wipe:
    requires: [calm(user), {not: fair(user)}, sane(user), sure(user), drawn(user)]
  note:
    requires: [calm(user), fair(user), sane(user)]
"""


def test_check_says_so_at_the_requirement() -> None:
    found = check_text(DESK, "desk.yaml")
    assert [str(one) for one in found] == [
        "desk.yaml:15:16: note[model-judged]: `wipe` is guarded, and may rest on a model's word "
        "for `calm`",
        "desk.yaml:15:34: warning[unprovable]: `wipe` is guarded, and nobody but a model can judge "
        "`fair`; where that is needed, a person must decide\n"
        "  help: give it a `verdict`, or write `judged_by: model` if a model's word is enough",
        "desk.yaml:15:47: warning[unprovable]: `wipe` is guarded, and nobody but a model can judge "
        "`sane`; where that is needed, a person must decide\n"
        "  help: give it a `verdict`, or write `judged_by: model` if a model's word is enough",
        "desk.yaml:15:71: warning[unprovable]: `wipe` is guarded, and what proves `drawn` is never "
        "fresh: `draw` changes what it reads; where that is needed, a person must decide\n"
        "  help: say what `draw` changes and reads (`changes`, `reads`)",
        "desk.yaml: note[recorded-only]: nothing holds `note`: a call is made and recorded, "
        "checked or not\n"
        "  help: write `irreversible: true` or `approval:` for what must not happen unproven",
    ]
    assert all(one.severity is not Severity.ERROR for one in found)


def test_a_verifier_that_reads_everything_is_named_where_it_is_the_one_taken() -> None:
    book = """\
handbook: wide
actions:
  scan: {full_state: true}
  look: {input: {user: string}}
  note: {input: {user: string}}
predicates:
  known(user): {says: "{user} is known.", verify: scan(), verdict: user in result.known}
procedures:
  note: {requires: known(user)}
"""
    found = [str(one) for one in check_text(book, "wide.yaml") if one.code == "wide-verifier"]
    assert found == [
        "wide.yaml:9:20: note[wide-verifier]: `known` is verified by `scan`, which reads "
        "everything\n  help: name a verifier that reads only what is asked, beside it under `any`"
    ]
    narrower = book.replace("verify: scan()", "verify: {any: [scan(), look(user)]}")
    assert "wide-verifier" not in [one.code for one in check_text(narrower, "wide.yaml")]


SHARED = """\
handbook: bank
actions:
  login: {input: {user: string}, changes: [], state: shared}
  look: {input: {user: string}, state: shared}
  count: {input: {user: string}}
  pay: {input: {user: string}, irreversible: true, confirm: false}
  note: {input: {user: string}}
predicates:
  known(user): {says: "{user} is known.", established_by: login(user)}
  rich(user): {says: "{user} is rich.", verify: look(user), verdict: result.rich}
  sane(user): {says: "{user} is sane.", verify: count(user), verdict: result.sane}
procedures:
  pay: {requires: [known(user), rich(user), sane(user)]}
  note: {requires: rich(user)}
"""


def test_state_that_outlives_a_connection_is_named_where_a_guarded_action_rests_on_it() -> None:
    found = [one for one in check_text(SHARED, "bank.yaml") if one.code == "shared-state"]
    assert [one.message for one in found] == [
        f"`pay` is guarded, and may rest on `{name}` from an earlier connection"
        for name in ("login", "look")
    ]
    assert {one.severity for one in found} == {Severity.NOTE}


def test_explain_names_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = tmp_path / "bank.yaml"
    book.write_text(SHARED, "utf-8")
    assert run(["show", str(book), "--as", "explanation"]) == 0
    said = capsys.readouterr().out
    for name in ("login", "look"):
        assert f"pay may rest on {name} from an earlier connection (state: shared)" in said
    assert said.count("state: shared") == 2
