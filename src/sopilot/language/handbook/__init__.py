"""What an SOP is.

Owns requirement trees, predicates, actions, procedures and the handbook that
holds them, the YAML reader with positions, and the reference meaning of a
tree. Pure. May import ``diagnostics`` only.
"""

from sopilot.language.handbook._format import format_handbook
from sopilot.language.handbook._kinds import OPERATORS
from sopilot.language.handbook._model import (
    ASK_USER,
    BUILT_IN,
    CONFIRM,
    PROCEDURE,
    Action,
    ActionCall,
    Approval,
    Computed,
    Handbook,
    Input,
    Predicate,
    Procedure,
    Recipe,
    asked_about,
    confirmation,
    confirmed_subject,
    values_asked_about,
)
from sopilot.language.handbook._reader import load_handbook, read_handbook
from sopilot.language.handbook._schema import handbook_schema, published_schema
from sopilot.language.handbook._tree import (
    NOTHING,
    All,
    AnyOf,
    Binding,
    CallBinding,
    Constant,
    First,
    InOrder,
    Leaf,
    Name,
    Origin,
    Path,
    Scalar,
    Term,
    Tree,
    leaves,
    names_in,
    negate,
    plain_binding,
    substitute,
    substitute_binding,
)
from sopilot.language.handbook._writer import write_handbook
from sopilot.language.handbook.cel import (
    VerdictError,
    VerdictProblem,
    compute,
    free_names,
    judge,
    parse_verdict,
)
from sopilot.language.handbook.codec import handbook_hash, handbook_to_json
from sopilot.language.handbook.meaning import meaning
from sopilot.language.handbook.obligations import obligations
from sopilot.language.handbook.wording import placeholders, sentence

__all__ = [
    "ASK_USER",
    "BUILT_IN",
    "CONFIRM",
    "NOTHING",
    "OPERATORS",
    "PROCEDURE",
    "Action",
    "ActionCall",
    "All",
    "AnyOf",
    "Approval",
    "Binding",
    "CallBinding",
    "Computed",
    "Constant",
    "First",
    "Handbook",
    "InOrder",
    "Input",
    "Leaf",
    "Name",
    "Origin",
    "Path",
    "Predicate",
    "Procedure",
    "Recipe",
    "Scalar",
    "Term",
    "Tree",
    "VerdictError",
    "VerdictProblem",
    "asked_about",
    "compute",
    "confirmation",
    "confirmed_subject",
    "format_handbook",
    "free_names",
    "handbook_hash",
    "handbook_schema",
    "handbook_to_json",
    "judge",
    "leaves",
    "load_handbook",
    "meaning",
    "names_in",
    "negate",
    "obligations",
    "parse_verdict",
    "placeholders",
    "plain_binding",
    "published_schema",
    "read_handbook",
    "sentence",
    "substitute",
    "substitute_binding",
    "values_asked_about",
    "write_handbook",
]
