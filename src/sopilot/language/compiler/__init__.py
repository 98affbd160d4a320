"""Handbook to program.

One pass a file, the passes listed in order in ``pipeline``. Deterministic and
free of language models. Pure. May import ``diagnostics``, ``handbook`` and
``program``.
"""

from sopilot.language.compiler._judges import Unprovable, judged_by_model, unprovable
from sopilot.language.compiler._optional import left_out, optional_parameters
from sopilot.language.compiler._pipeline import (
    Compiled,
    Compiler,
    Explanation,
    compile_handbook,
    compile_procedure,
)
from sopilot.language.compiler._unopened import Unopened

__all__ = [
    "Compiled",
    "Compiler",
    "Explanation",
    "Unopened",
    "Unprovable",
    "compile_handbook",
    "compile_procedure",
    "judged_by_model",
    "left_out",
    "optional_parameters",
    "unprovable",
]
