"""The handbook's objects, as a reader or a program builds them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sopilot.handbook.grammar import Translated
from sopilot.handbook.requirements import NOTHING, Binding, CallBinding, Constant, Name, Path, Tree

ASK_USER = "ask_user"
CONFIRM = "confirm_with_user"

PROCEDURE = "procedure"
"""The argument of a confirmation that names whose words the user was shown."""

BUILT_IN = (ASK_USER, CONFIRM)
"""Calls that the machine itself carries out, by asking the user."""

_OWN = {ASK_USER: re.compile("question_*"), CONFIRM: re.compile("(action|procedure)_*")}


def asked_about(question: str, name: str) -> str:
    """The name of a value in a question of the runtime: the words that say which
    question it is are taken."""
    return f"{name}_" if _OWN[question].fullmatch(name) else name


def values_asked_about(question: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of such a question by their own names, without what says which it is."""
    return {
        key[:-1] if _OWN[question].fullmatch(key) else key: value
        for key, value in arguments.items()
        if not _OWN[question].fullmatch(key) or key.endswith("_")
    }


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an action. ``schema`` is its full JSON Schema where the type alone is not.
    A ``secret`` one stands in clear in nothing that is kept or shown."""

    name: str
    type: str = "string"
    says: str = ""
    required: bool = True
    schema: Mapping[str, object] | None = None
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Approval:
    """The approvals that a call needs before it runs: ``needed`` out of ``roles``."""

    roles: tuple[str, ...]
    needed: int = 1
    expires_seconds: int | None = None
    when: str | None = None
    """Only calls for which this expression over their arguments holds, or is undecided."""


@dataclass(frozen=True, slots=True)
class Action:
    """A tool. ``full_state`` marks one that reads everything at once.

    ``changes`` and ``reads`` are topics, ``None`` where the author says nothing;
    ``recheck`` makes the machine read its licence again just before the call;
    ``confirm`` is what the user is told before it is carried out, and must say yes to;
    empty text says that nobody is asked. ``not_found`` is an expression over the ``result``
    of a call that failed: where it holds, that is an answer and no failure. ``secrets`` are
    fields of its answers that stand in clear nowhere.
    """

    name: str
    inputs: tuple[Input, ...] = ()
    says: str = ""
    requires: Tree = NOTHING
    irreversible: bool = False
    approval: Approval | None = None
    full_state: bool = False
    offered: bool = True
    read_only: bool = False
    changes: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None
    recheck: bool = False
    confirm: str | None = None
    not_found: str | None = None
    secrets: tuple[str, ...] = ()
    shared: bool = False
    """Its answers, and the gates that it opens, hold for every connection to its server."""
    tool: str = ""
    """The tool behind it, ``TOOL`` or ``SERVER:TOOL``, if its name isn't the action's."""

    @property
    def is_guarded(self) -> bool:
        return self.irreversible or self.approval is not None or bool(self.confirm)

    def input_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.inputs)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A call inside a recipe. Names are the predicate's parameters or what it asks the
    user for; paths lead into earlier answers of the recipe.

    ``name`` is what its answer is called, the action's name without one. With
    ``each`` the call is made for every element of a list, under the name ``element``.
    """

    action: str
    arguments: CallBinding = ()
    name: str = ""
    each: Path | None = None
    element: str = ""

    @property
    def answer(self) -> str:
        return self.name or self.action


Recipe = tuple[ActionCall, ...]
"""One way to verify: every call of it is made."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Something that holds or does not.

    Exactly one of: ``recipes`` (equivalent ways to verify it), ``established_by``
    (a gate: the action makes it true, over several turns), or ``tool_free``
    (judged from its arguments and the dialog alone).
    ``says`` and ``says_not`` are templates over the parameters and the
    handbook's constants. ``verdict`` is an expression a machine can judge.
    ``remedy`` tells a refused user what could be done next; ``customer_message`` is all that a
    customer may be told where a request is refused for it. ``asks`` are values of
    its recipes that only the user has. ``judged_by_model`` lets a guarded action
    rest on a model's word; ``closed_by`` shuts a gate again. ``done`` is a call whose
    success in this session makes it true: nobody makes it for the check. ``question`` is
    what the user is asked, whose answer is the evidence; it serves one guarded call unless it is
    ``reusable``. A gate that sets the ``principal`` is open for one customer at a time.

    ``made`` ones come from a procedure: ``computes`` names the argument that ``value``
    gives, ``optional`` the parameters that may be without one.
    """

    name: str
    parameters: tuple[str, ...] = ()
    says: str = ""
    says_not: str = ""
    recipes: tuple[Recipe, ...] = ()
    established_by: ActionCall | None = None
    tool_free: bool = False
    verdict: str | None = None
    remedy: str = ""
    asks: tuple[str, ...] = ()
    judged_by_model: bool = False
    closed_by: ActionCall | None = None
    done: ActionCall | None = None
    question: str = ""
    reusable: bool = False
    principal: bool = False
    made: bool = False
    computes: str = ""
    value: str | None = None
    optional: tuple[str, ...] = ()
    holds_for: tuple[Mapping[str, Any], ...] = ()
    fails_for: tuple[Mapping[str, Any], ...] = ()
    customer_message: str = ""

    @property
    def is_gate(self) -> bool:
        return self.established_by is not None


@dataclass(frozen=True, slots=True)
class Computed:
    """An argument that the machine computes: ``value`` over the answers of one of ``recipes``,
    the procedure's names and the handbook's parameters."""

    name: str
    value: str
    recipes: tuple[Recipe, ...] = ()
    uses: tuple[str, ...] = ()
    """The procedure's names that it depends on."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A goal: ``action`` may run with ``arguments`` once ``requires`` holds.

    ``worded`` is the tree whose wording is shown as the official text when it
    differs from the tree that is compiled. ``inputs`` are names of its own, beside those of
    the action; ``computed`` arguments nobody passes; ``confirm`` is the action's, said
    otherwise here. ``otherwise`` is what follows where it is refused: another procedure,
    or words.
    """

    name: str
    action: str
    requires: Tree = NOTHING
    says: str = ""
    arguments: Binding = ()
    worded: Tree | None = None
    inputs: tuple[Input, ...] = ()
    computed: tuple[Computed, ...] = ()
    confirm: str | None = None
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Handbook:
    """``parameters`` are constants, or tables of them. ``predicates`` hold what procedures make
    (see ``Predicate.made``), too."""

    name: str
    says: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    procedures: Mapping[str, Procedure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = {
            made_predicate.name: made_predicate
            for procedure in self.procedures.values()
            if procedure.action in self.actions
            for made_predicate in made_predicates(procedure, self.actions[procedure.action])
        }
        if made:
            object.__setattr__(self, "predicates", {**self.predicates, **made})

    def offering(self, names: Collection[str]) -> Handbook:
        """The same for whoever is offered these actions alone: no text names another."""
        actions = {
            name: replace(action, offered=action.offered and name in names)
            for name, action in self.actions.items()
        }
        return replace(self, actions=actions)


def computed_name(procedure: Procedure, computed: Computed) -> str:
    return f"{procedure.name}_{computed.name}_is_computed"


def confirmed_name(procedure: Procedure) -> str:
    return f"{procedure.name}_is_confirmed"


def confirmation(procedure: Procedure, action: Action) -> str | None:
    """The question to the user, ``None`` where nobody is asked."""
    return (action.confirm if procedure.confirm is None else procedure.confirm) or None


def made_predicates(procedure: Procedure, action: Action) -> list[Predicate]:
    results = [
        Predicate(
            computed_name(procedure, item),
            (item.name, *(name for name in item.uses if name != item.name)),
            says=Translated(
                {
                    "en": f"The {item.name} is exactly: {_braced(item.value)}.",
                    "zh": f"{item.name} 恰为：{_braced(item.value)}。",
                }
            ),
            recipes=item.recipes,
            tool_free=not item.recipes,
            verdict=f"{item.name} == ({item.value})",
            made=True,
            computes=item.name,
            value=item.value,
        )
        for item in procedure.computed
    ]
    message = confirmation(procedure, action)
    if message is not None:
        results.append(_confirmed(procedure, action, message))
    return results


def confirmed_subject(procedure: Procedure, action: Action) -> dict[str, str]:
    """The subject of a confirmation, beside the values: another procedure of the same action may
    tell the user something else."""
    about = {"action": action.name}
    return about if procedure.name == action.name else {**about, PROCEDURE: procedure.name}


def _confirmed(procedure: Procedure, action: Action, text: str) -> Predicate:
    arguments = dict(procedure.arguments)
    terms = [(item.name, arguments.get(item.name, Name(item.name))) for item in action.inputs]
    optional = {item.name for item in action.inputs if not item.required}
    names = dict.fromkeys(term.name for _, term in terms if isinstance(term, Name))
    about = [(key, Constant(name)) for key, name in confirmed_subject(procedure, action).items()]
    shown = [(asked_about(CONFIRM, name), term) for name, term in terms]
    call = ActionCall(CONFIRM, (*about, *shown))
    return Predicate(
        confirmed_name(procedure),
        tuple(names),
        says=Translated(
            {
                "en": f"The user has said yes to exactly this call of {action.name}.",
                "zh": f"用户已对 {action.name} 的这一次调用明确表示同意。",
            }
        ),
        recipes=((call,),),
        verdict="result.answer == 'yes'",
        question=text,
        made=True,
        optional=tuple(
            term.name for name, term in terms if name in optional and isinstance(term, Name)
        ),
    )


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def asking(predicate: Predicate) -> Predicate:
    """The predicate that is verified by asking the user: its question, its recipe, and that a
    yes makes it true where it says nothing else."""
    terms = tuple((asked_about(ASK_USER, name), Name(name)) for name in predicate.parameters)
    call = ActionCall(ASK_USER, (("question", Constant(predicate.name)), *terms))
    verdict = predicate.verdict
    if verdict is None and not predicate.judged_by_model:
        verdict = "result.answer == 'yes'"
    return replace(predicate, recipes=((call,),), verdict=verdict)
