"""What a naive handbook leaves out: each gets a warning that names the cure."""

from __future__ import annotations

from sopilot.doors.sources.checking import check_text

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
