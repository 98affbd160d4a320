"""Lines for operators: one for each thing that happened, with what it is about and its cause."""

from __future__ import annotations

import json
import logging
import sys

from sopilot.integrations.logs import LOG, _Lines, _Text, about


def test_a_line_says_what_it_is_about() -> None:
    with about(request="r-1"), about(session="s-1"):
        record = LOG.makeRecord(LOG.name, 30, "f", 1, "two\nlines", (), None)
        line = json.loads(_Lines().format(record))
    assert (line["request"], line["session"], line["level"]) == ("r-1", "s-1", "warning")
    assert "\n" not in _Lines().format(record)


def test_an_error_brings_its_cause_and_place_on_the_same_line() -> None:
    try:
        raise ExceptionGroup("several", [ExceptionGroup("more", [OSError("no\nway")])])
    except ExceptionGroup as group:
        inner = group.exceptions[0].exceptions[0]  # type: ignore[attr-defined]  # a group
        try:
            raise inner
        except OSError:
            pass
        error = LOG.makeRecord("uvicorn", logging.ERROR, "f", 1, "Broken\n", (), sys.exc_info())
    line = json.loads(_Lines().format(error))
    assert (line["message"], line["level"]) == ("Broken", "error")
    assert line["problem"].startswith("OSError: no")
    assert line["place"].startswith("test_log_lines.py:")
    text = _Text().format(error)
    assert text.startswith("Broken: OSError: no")
    assert "\n" not in text
