"""The programs of a session as its store keeps them."""

from __future__ import annotations

import pytest

from small_desks import AnsweringTools, programs_of
from sopilot.machine.program_set import ProgramSet
from sopilot.messages.errors import StoreCorrupt
from sopilot.session.opening import open_session
from sopilot.stores.memory import MemoryStore
from sopilot.trace.events import CLOCK, Start

BOOK = """
handbook: library
actions:
  read_loan: {input: {book: string}, read_only: true}
  renew: {input: {book: string, days: number}, irreversible: true, confirm: false}
predicates:
  due(book): {says: due, verify: read_loan(book), verdict: result.until > now}
procedures:
  renew: {requires: due(book)}
"""


WITHOUT_NOW = BOOK.replace("> now", "> 0")
ASKS_PEOPLE = WITHOUT_NOW.replace("confirm: false", "approval: {roles: [clerk], when: WHEN}")


@pytest.mark.parametrize(
    ("handbook", "looks"),
    [
        (BOOK, True),
        (f"parameters: {{now: 5}}{BOOK}", False),
        (f"parameters: {{x: 5}}{BOOK}", True),
        (WITHOUT_NOW, False),
        (ASKS_PEOPLE.replace("WHEN", "days > 3"), False),
        (ASKS_PEOPLE.replace("WHEN", "days > now"), True),
    ],
)
async def test_a_session_looks_at_the_clock_unless_now_is_something_else(
    handbook: str, looks: bool
) -> None:
    programs = ProgramSet(programs_of(handbook))
    tools = AnsweringTools(lambda *_: {"until": 9})
    session = await open_session(MemoryStore(), programs, tools=tools)
    await session.operate(Start("renew", {"book": "emma"}))
    assert any(event.note == CLOCK for event in session.own_events) is looks


def test_a_stored_program_that_was_changed_is_not_run() -> None:
    programs = ProgramSet(programs_of(BOOK))
    (digest,) = programs.hashes.values()
    read = ProgramSet.from_texts(programs.hashes, programs.texts)
    assert (read.programs, read.hashes, read.texts) == (
        programs.programs,
        programs.hashes,
        programs.texts,
    )
    for texts in ({digest: programs.texts[digest].replace("> now", "> 0")}, {}):
        with pytest.raises(StoreCorrupt, match="`renew`"):
            ProgramSet.from_texts(programs.hashes, texts)
