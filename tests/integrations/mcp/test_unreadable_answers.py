"""Whether a line of a server that is no message was meant as an answer: then nobody waits on."""

from __future__ import annotations

import mcp_types as types
import pytest
from pydantic import ValidationError

from sopilot.integrations.mcp.kept_connection import _answers

DEEP = '{"a":' * 3_000 + "1" + "}" * 3_000


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (f'{{"jsonrpc":"2.0","id":7,"result":{DEEP}}}', True),
        ('{"jsonrpc":"1.0","id":7,"result":{}}', True),
        (DEEP, False),
        ("listening on port 8080", False),
    ],
    ids=["too deep", "of another version", "printed, and deep", "printed"],
)
def test_what_was_meant_as_an_answer(line: str, meant: bool) -> None:
    with pytest.raises(ValidationError) as problem:
        types.jsonrpc_message_adapter.validate_json(line)
    assert _answers(problem.value) is meant
