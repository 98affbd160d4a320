"""The program artifact: YAML out, YAML in, and its hash.

A program can be written by hand in the same form::

    sopilot_program: 1
    entry: close_ticket
    functions:
      close_ticket:
        kind: process                      # process, group, gate or rule
        parameters: [ticket]
        steps:
          - step: open                     # the label
            call: ticket_open              # or branch, choose, act, ask, do, emit,
            with: {ticket: $ticket}        #    return, complete, fail
            bind: is_open                  # the slot that holds the result
            unmet: refuse                  # without `met` and `unmet`: the next step
          - step: close
            act: close_ticket
            with: {ticket: $ticket, note: "?note"}
            goal: true
          - step: done
            complete: The ticket is closed.
          - step: refuse
            fail: Say that the ticket is not open.
            starts: hand_over              # the goal that follows, if one does
      ticket_open:
        kind: rule
        parameters: [ticket]
        predicate: ticket_open
        steps:
          - {step: read, act: read_ticket, with: {id: $ticket}}
          - {step: judge, return: null}    # null: judged from the evidence

``$name`` is a value of the function, ``$call.key`` a place in an earlier answer of the
recipe (``$call.`` all of it), ``?name`` one that must be found out, ``$$`` and ``??``
stand for a text that starts with the sign. An ``act`` may ``name`` its answer and be
made ``for_each: call.list as element``. A condition is a slot,
``not slot``, ``true``, ``false``, ``{all: […]}`` or ``{any: […]}``.
"""

from __future__ import annotations

import hashlib

from sopilot.language.program._loader import program_from_yaml
from sopilot.language.program._writer import program_to_yaml
from sopilot.language.program.model import Program

__all__ = ["program_from_yaml", "program_hash", "program_to_yaml"]


def program_hash(program: Program) -> str:
    """SHA-256 of the artifact's bytes: two programs share it only if they are written alike."""
    return hashlib.sha256(program_to_yaml(program).encode()).hexdigest()
