"""A handbook of the last release loads again, and means what it meant."""

from __future__ import annotations

from sopilot.language.handbook import read_handbook
from sopilot.language.handbook.upgrading import upgrade_handbook

OLD = """\
handbook: old-desk
actions:
  find_case: {input: {user: string}}
  read_case: {input: {user: string, case_id: string}}
  close: {input: {user: string}}
predicates:
  # Whoever called chose the case.
  settled(user):
    says: The case of {user} is settled.
    verify: {all: [find_case(user), read_case(user)]}
    verdict: results.read_case.state == 'settled'
  quiet(user): {says: "{user} is quiet.", verify: read_case(user, case), verdict: result.quiet}
procedures:
  close: {requires: [settled(user), quiet(user)]}
"""


def test_what_had_no_origin_is_asked_of_the_user() -> None:
    assert read_handbook(OLD)[0] is None
    new = upgrade_handbook(OLD)
    handbook, found = read_handbook(new)
    assert handbook is not None, found
    assert handbook.predicates["settled"].asks == ("case_id",)
    assert handbook.predicates["quiet"].asks == ("case",)
    assert "  # Whoever called chose the case.\n" in new
    assert "    ask: [case_id]\n    verify: {all: [find_case(user), " in new
    assert upgrade_handbook(new) == new


def test_what_cannot_be_mended_stays() -> None:
    broken = OLD.replace("says: The case", "sags: The case")
    assert "sags: The case" in upgrade_handbook(broken)
    assert read_handbook(upgrade_handbook(broken))[0] is None
