"""Marks for tests that read a SOPBench checkout: skipped, with the command, where none is."""

from __future__ import annotations

import pytest

from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import SNAPSHOT, checkout_home, fetch_command, find_checkout


def _reason() -> str:
    try:
        checkout = find_checkout()
    except UserMistake:
        return f"no SOPBench checkout; get one with: {fetch_command(checkout_home())}"
    if checkout.commit is not None and not checkout.commit.startswith(SNAPSHOT):
        return f"SOPBench is at {checkout.commit[:7]}; {fetch_command(checkout.path)}"
    return ""


MISSING = _reason()
NEEDS_SOPBENCH = [pytest.mark.sopbench, pytest.mark.skipif(bool(MISSING), reason=MISSING)]
