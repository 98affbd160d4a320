"""What fuzzing found to reach something new, and what it once broke: read again every day."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from fuzz_readers import READERS

CORPUS = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("name", READERS)
def test_nothing_but_its_own_errors_escapes_from_a_reader(name: str) -> None:
    found = json.loads((CORPUS / f"{name}.json").read_text("ascii"))
    assert found
    for one in found:
        READERS[name].read(base64.b64decode(one))
