"""What proven means: the clauses P1–P7 of ``design/proof.md``, and nothing else.

The guard asks here before a guarded action is carried out, and every verdict gets its grade
here. Pure. May import ``vm`` and the ``language`` wing; the audit must not import it: it
reads the trace with clauses of its own, so that the two can contradict each other.
"""

from sopilot.runtime.proof._grade import Grade
from sopilot.runtime.proof._leaf import LeafVerdict, Prover
from sopilot.runtime.proof._licence import Licence, license_call
from sopilot.runtime.proof._returned import grade_of_return

__all__ = [
    "Grade",
    "LeafVerdict",
    "Licence",
    "Prover",
    "grade_of_return",
    "license_call",
]
