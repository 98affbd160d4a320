"""What a naive handbook leaves out: each gets a warning that names the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
from called_commands import call

from sopilot.messages.diagnostic import Diagnostic
from sopilot.runner.checks import check_text

NAIVE = """\
handbook: naive
actions:
  login: {input: {user: string, password: string}}
  read_trip: {input: {trip: string}}
  read_leg: {input: {leg: string}}
  cancel: {input: {user: string, trip: string}, irreversible: true}
predicates:
  known(user): {says: "{user} is known.", established_by: login(user, password)}
  unflown(trip):
    says: No leg of {trip} was flown.
    verify: {all: [read_trip(trip), "read_leg(leg=read_trip.legs[0].id)"]}
    verdict: "!result.flown"
procedures:
  cancel: {requires: [known(user), unflown(trip)]}
"""


def test_a_naive_handbook_is_told_the_cures() -> None:
    found = {one.code: one for one in check_text(NAIVE, "naive.yaml")}
    assert set(found) == {"looks-secret", "one-element", "unconfirmed"}
    assert found["looks-secret"].help == "write `secret: true`"
    assert "for_each: read_trip.legs as one" in found["one-element"].help
    assert "`confirm:` and what the user is told" in found["unconfirmed"].help
    assert all(one.place.line > 0 for one in found.values())


def test_a_name_that_nothing_gives_is_an_error_with_its_cure() -> None:
    wrong = NAIVE.replace('"read_leg(leg=read_trip.legs[0].id)"', "read_leg(leg_id)")
    codes = [one.code for one in check_text(wrong, "naive.yaml") if one.severity == "error"]
    assert codes == ["no-origin"]


TRAPS = """\
handbook: traps
actions:
  login: {input: {user: string, password: {type: string, secret: true}}}
  logout: {input: {user: string}}
  read_payee: {input: {payee: {type: string, secret: true}}}
  read_account: {input: {user: string}}
  pay: {input: {user: string, payee: string}, irreversible: true, confirm: "Pay {payee}?"}
predicates:
  known(user): {says: "{user} is known.", established_by: login(user, password)}
  open(user): {says: "{user} is open.", verify: read_account(user), verdict: result.open}
  good(payee): {says: "{payee} is good.", verify: read_payee(payee), verdict: result.good}
procedures:
  pay: {requires: [known(user), open(user), good(payee)]}
  read_account: {requires: known(user)}
"""


def test_each_trap_is_told_with_place_cause_and_cure() -> None:
    told = {one.code: one for one in check_text(TRAPS, "traps.yaml")}
    hidden, reader, gate = told["hidden-input"], told["reader-is-goal"], told["gate-left-open"]
    assert (hidden.place.line, reader.place.line, gate.place.line) == (7, 14, 9)
    assert "`payee` of `pay` is hidden from the person who approves" in hidden.message
    assert "another name" in hidden.help
    assert "`read_account` verifies `open` and is what `read_account` is for" in reader.message
    assert "`read_only: true` on `read_account`" in reader.help
    assert gate.message == "`known` stays open after `logout`, which seems to end it"
    assert (hidden.severity, reader.severity, gate.severity) == ("warning", "warning", "note")


@pytest.mark.parametrize(
    ("code", "cured"),
    [
        ("hidden-input", TRAPS.replace("{payee: {type: string, secret: true}}", "{payee: string}")),
        ("hidden-input", TRAPS.replace("payee: string}", "payee: {type: string, secret: true}}")),
        ("reader-is-goal", TRAPS.replace("}\n  pay", ", read_only: true}\n  pay")),
        ("gate-left-open", TRAPS.replace("password)}", "password), closed_by: logout(user)}")),
    ],
)  # fmt: skip
def test_a_cured_trap_is_told_no_more(code: str, cured: str) -> None:
    assert cured != TRAPS
    codes = {one.code for one in check_text(cured, "traps.yaml")}
    assert code not in codes
    assert not any(one.severity == "error" for one in check_text(cured, "traps.yaml"))


STUCK = """\
handbook: stuck
actions:
  read_limit: {input: {user: string, kind: {type: string, required: false}}}
  read_kind: {input: {user: string, kind: string}}
  pay:
    input: {user: string, amount: number, fee: {type: number, required: false}}
    irreversible: true
    confirm: false
predicates:
  ok(user, kind): {says: ok, verify: "read_limit(user, kind)", verdict: result.ok}
  strict(user, kind): {says: ok, verify: "read_kind(user, kind)", verdict: result.ok}
  fine(user): {says: ok, verify: read_limit(user), verdict: result.ok}
  small(fee): {says: "The fee is small.", verify: arguments, verdict: "fee < 5"}
procedures:
  pay: {requires: fine(user)}
"""


def _unprovable(text: str) -> list[Diagnostic]:
    found = check_text(text, "stuck.yaml")
    assert not [one for one in found if one.severity == "error"]
    return [one for one in found if one.code == "unprovable"]


COMPUTED = """arguments: {amount: {verify: read_limit(user), value: "%s"}}, requires: fine(user)"""


@pytest.mark.parametrize(
    ("before", "after", "why", "cure"),
    [
        (
            "{requires: fine(user)}",
            '{requires: "strict(user, null)"}',
            "`strict` is required of `null`, which is no value for `kind`",
            "say in its verdict what that means (`kind == null || …`), and give `kind` to no input "
            "that is required",
        ),
        (
            "read_limit(user), verdict",
            '"read_kind(user, kind=null)", verdict',
            "`fine` calls `read_kind` with `null` for `kind`",
            "make `kind` of `read_kind` optional",
        ),
        (
            "fine(user)}",
            "[fine(user), small(fee)]}",
            "`small` needs `fee`, which a call of `pay` may leave out",
            "make `fee` of `pay` required, or say what holds without it (`fee == null`)",
        ),
        (
            "requires: fine(user)",
            COMPUTED % "10 * hours_between(result.due, now)",
            "`amount` is computed from `now`: it is another value before the call is made",
            "count in whole units of time, as in `round(days_between(x, now), 0)`",
        ),
        (
            "requires: fine(user)",
            COMPUTED % "fee * result.rate",
            "a computed argument needs `fee`, which a call of `pay` may leave out",
            "make `fee` of `pay` required, or say what holds without it (`fee == null`)",
        ),
    ],
)
def test_a_requirement_that_is_never_proven_is_told_with_its_cure(
    before: str, after: str, why: str, cure: str
) -> None:
    assert _unprovable(STUCK) == []
    assert before in STUCK
    (told,) = _unprovable(STUCK.replace(before, after))
    assert told.message == f"`pay` is guarded, and {why}; then a person must decide"
    assert told.help == cure
    assert told.place.line > 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{requires: fine(user)}", '{requires: "ok(user, null)"}'),
        ("read_limit(user), verdict", '"read_limit(user, kind=null)", verdict'),
        ("fine(user)}", "[fine(user), slight(fee)]}"),
        ("requires: fine(user)", COMPUTED % "fee == null ? 1 : fee * result.rate"),
    ],
)
def test_what_has_a_meaning_without_a_value_is_provable(before: str, after: str) -> None:
    """Attacks on it: tests/proof/test_no_value.py."""
    slight = '  slight(fee): {says: s, verify: arguments, verdict: "fee == null || fee < 5"}\n'
    text = STUCK.replace("procedures:", slight + "procedures:")
    assert before in text
    assert _unprovable(text.replace(before, after)) == []


@pytest.mark.parametrize(
    "steady",
    [
        "10 * round(days_between(result.due, now), 0)",
        "timestamp(now) > timestamp(result.due) ? 10 : 0",
        "day(now) == result.due ? result.now : 1",
    ],
)
def test_a_value_that_only_looks_at_the_time_is_no_moving_one(steady: str) -> None:
    text = STUCK.replace("requires: fine(user)", COMPUTED % steady)
    assert _unprovable(text) == []


KEYWORDS = """\
handbook: k
actions:
  read_a: {input: {user: string}}
  pay:
    input:
      user: {type: string, schema: {type: string, pattern: "^u", title: User}}
      amount: {type: number, schema: {type: number, minimum: 0, multipleOf: 0.01}}
      legs: {type: array, schema: {type: array, items: {type: string, format: date}}}
    irreversible: true
    confirm: false
predicates:
  known(user): {says: known, verify: read_a(user), verdict: result.known}
procedures:
  pay: {requires: known(user)}
"""


def test_a_keyword_that_nobody_holds_a_guarded_call_to_is_told() -> None:
    found = check_text(KEYWORDS, "k.yaml")
    told = [(one.code, one.message.split("`")[1], one.place.line) for one in found]
    assert told == [("unread-keyword", "multipleOf", 7), ("unread-keyword", "format", 8)]
    assert "verify: arguments" in found[0].help
    loose = KEYWORDS.replace("irreversible: true\n    confirm: false", "says: Pays.")
    assert "unread-keyword" not in [one.code for one in check_text(loose, "k.yaml")]


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


def test_a_guarded_action_that_nothing_can_prove_is_told_at_the_requirement() -> None:
    told = [(one.place.line, one.place.column, one.code) for one in check_text(DESK, "desk.yaml")]
    assert told == [
        (15, 16, "model-judged"),
        (15, 34, "unprovable"),
        (15, 47, "unprovable"),
        (15, 71, "unprovable"),
        (0, 0, "recorded-only"),
    ]


WIDE = """\
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


def test_a_verifier_that_reads_everything_is_named_if_it_is_the_one_taken() -> None:
    (told,) = [one for one in check_text(WIDE, "wide.yaml") if one.code == "wide-verifier"]
    assert (told.place.line, told.severity) == (9, "note")
    narrower = WIDE.replace("verify: scan()", "verify: {any: [scan(), look(user)]}")
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


def test_state_that_outlives_a_connection_is_named_by_check_and_explanation(tmp_path: Path) -> None:
    found = [one for one in check_text(SHARED, "bank.yaml") if one.code == "shared-state"]
    assert [one.message.split("`")[3] for one in found] == ["login", "look"]
    (tmp_path / "bank.yaml").write_text(SHARED, "utf-8")
    shown = call("show", str(tmp_path / "bank.yaml"), "--as", "explanation").stdout
    for name in ("login", "look"):
        assert f"pay may rest on {name} from an earlier connection (state: shared)" in shown
    assert shown.count("state: shared") == 2
