"""Every name of a recipe has an origin, and one meaning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.call_syntax import parse_call, parse_each
from sopilot.handbook.grammar import SyntaxProblem
from sopilot.handbook.model import ActionCall, Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Constant, Name, Path
from sopilot.handbook.writer import handbook_hash, write_handbook
from sopilot.messages.errors import UserMistake

TRAVEL = """\
handbook: travel-desk
parameters: {most: 3}
actions:
  read_booking: {input: {booking: string}}
  read_leg: {input: {number: string, most: integer}}
  read_voucher: {input: {voucher: string}, read_only: true, reads: [vouchers]}
  cancel: {input: {booking: string}, irreversible: true, recheck: true, changes: [bookings]}
predicates:
  refundable(booking):
    says: Every leg of {booking} can be refunded.
    verify:
      all:
        - {call: read_booking(booking), name: journey}
        - {call: read_leg(leg, most), for_each: journey.legs as leg, name: legs}
        - {call: "read_leg(journey.legs[0].number, 1)", name: first_leg}
    verdict: results.legs.all(one, one.refundable) && result.open
  vouched(booking):
    says: A voucher covers {booking}.
    verify: read_voucher(voucher)
    ask: voucher
    verdict: result.booking == booking
procedures:
  cancel: {requires: [refundable(booking), vouched(booking)]}
"""


def _recipe(handbook: Handbook, predicate: str) -> tuple[ActionCall, ...]:
    return handbook.predicates[predicate].recipes[0]


def test_each_origin_is_what_it_says() -> None:
    handbook = load_handbook(TRAVEL)
    booking, legs, first = _recipe(handbook, "refundable")
    assert booking == ActionCall("read_booking", (("booking", Name("booking")),), "journey")
    assert legs.each == Path("journey", ("legs",))
    assert legs.element == "leg"
    # A bare name that is the element is a place in it; the handbook's parameter is its value.
    assert legs.arguments == (("number", Path("leg")), ("most", Constant(3)))
    assert dict(first.arguments)["number"] == Path("journey", ("legs", 0, "number"))
    (voucher,) = _recipe(handbook, "vouched")
    assert voucher.arguments == (("voucher", Name("voucher")),)
    assert handbook.predicates["vouched"].asks == ("voucher",)
    assert load_handbook(write_handbook(handbook)) == handbook


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b", Path("a", ("b",))),
        ("a[0].b[12]", Path("a", (0, "b", 12))),
        ("a.null", Path("a", ("null",))),
    ],
)
def test_paths_read_and_print_alike(text: str, path: Path) -> None:
    (argument,) = parse_call(f"f({text})").arguments
    assert argument.term == path
    assert str(path) == text


@pytest.mark.parametrize("text", ["f(a.)", "f(a[b])", "f(a[-1])", "f(a[1234567])", "f('a'.b)"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_call(text)


@pytest.mark.parametrize("text", ["a.b", "a.b as", "as", "3 as x", "a.b as x y", "a.b in x", ""])
def test_what_is_no_list_with_its_element_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_each(text)


def test_a_list_may_be_the_whole_answer() -> None:
    assert parse_each(" list_legs as leg ") == (Path("list_legs"), "leg")


def test_a_handbook_built_by_code_needs_origins_too() -> None:
    handbook = load_handbook(TRAVEL)
    vouched = replace(handbook.predicates["vouched"], asks=())
    predicates = {**handbook.predicates, "vouched": vouched}
    with pytest.raises(UserMistake) as caught:
        compile_handbook(replace(handbook, predicates=predicates))
    (found,) = caught.value.diagnostics
    assert found.code == "no-origin"
    assert found.place.path == "predicates.vouched"
    assert "`voucher` has no origin" in found.message
    assert "`ask`" in found.help


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("journey", "booked"),
        ("journey.legs[0]", "journey.legs[1]"),
        (", read_only: true", ""),
        (", recheck: true", ""),
        (", changes: [bookings]", ""),
        (", changes: [bookings]", ", changes: []"),
        (", reads: [vouchers]", ""),
    ],
)
def test_the_hash_sees_every_one_of_them(old: str, new: str) -> None:
    changed = handbook_hash(load_handbook(TRAVEL.replace(old, new)))
    assert changed != handbook_hash(load_handbook(TRAVEL))


def test_a_field_at_its_default_leaves_no_mark_on_the_hash() -> None:
    plain = TRAVEL.replace(", read_only: true", "").replace(", recheck: true", "")
    said = TRAVEL.replace("read_only: true", "read_only: false").replace(
        "recheck: true", "recheck: false"
    )
    assert handbook_hash(load_handbook(said)) == handbook_hash(load_handbook(plain))
