from __future__ import annotations

from collections.abc import Iterator

import pytest
from tiny import tiny_upstream

from sopilot_lab.sopbench.process import Upstream


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    """The checkout in miniature."""
    opened = tiny_upstream()
    yield opened
    opened.close()
