"""What reads as something else than a yes is none: nothing that cannot be undone rests on it."""

from __future__ import annotations

import pytest

from sopilot.language.handbook.assent import assent

ASKED = 'Your booking b-1 will be cancelled for good. booking: "b-1"'


@pytest.mark.parametrize(
    "said",
    [
        "Please correct this",
        "correct it",
        "Correct the booking, please",
        "go ahead and cancel the cancellation",
        "ok\u20e0",  # a sign that forbids, around it
        "y\u0336",  # struck out
        "yes\u0338",
        "ok \u202eon\u202c",  # shown as `ok no`
        "\u2066yes\u2069",
    ],
    ids=ascii,
)
def test_no_yes(said: str) -> None:
    assert assent(said, ASKED) is None


@pytest.mark.parametrize(
    "said",
    [
        "yes", "That is correct.", "Yes, correct, please cancel the booking.", "ｙｅｓ", "✔️ yes",
        "👍🏽 ok", "Confirmed, I confirm it.", "ok, cancel b-1",
    ],
)  # fmt: skip
def test_a_yes(said: str) -> None:
    assert assent(said, ASKED) == "yes"
