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
    """The name of a value in a question of the runtime. A name that the question uses itself
    gets an underscore."""
    return f"{name}_" if _OWN[question].fullmatch(name) else name


def values_asked_about(question: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values in such a question, by their own names."""
    return {
        key[:-1] if _OWN[question].fullmatch(key) else key: value
        for key, value in arguments.items()
        if not _OWN[question].fullmatch(key) or key.endswith("_")
    }


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an action. ``schema`` is its full JSON Schema if the type isn't enough.
    The value of a ``secret`` input is never stored or shown in clear."""

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
    """Only calls for which this expression over their arguments is true or undecided."""


@dataclass(frozen=True, slots=True)
class Action:
    """A tool. ``full_state`` marks one that reads everything at once.

    ``changes`` and ``reads`` are topics, ``None`` if the author doesn't list them.
    ``recheck`` makes the machine read its licence again just before the call. ``confirm`` is
    the text that the user must say yes to before the call; empty text asks nobody.
    ``not_found`` is an expression over the ``result`` of a failed call: if it is true, the
    failure is an answer. ``not_done`` is one over the ``result`` that a guarded call's tool reports
    as an error: if it is true, the call wasn't carried out; else its outcome is unknown.
    ``secrets`` are fields of its answers that are never shown in clear.
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
    not_done: str | None = None
    secrets: tuple[str, ...] = ()
    shared: bool = False
    """Its answers, and the gates that it opens, count for every connection to its server."""
    tool: str = ""
    """The tool behind it, ``TOOL`` or ``SERVER:TOOL``, if its name isn't the action's."""

    @property
    def is_guarded(self) -> bool:
        return self.irreversible or self.approval is not None or bool(self.confirm)

    def input_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.inputs)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A call inside a recipe. Names are the predicate's parameters or values that only the
    user has; paths lead into earlier answers of the recipe.

    ``name`` names its answer; the default is the action's name. With ``each`` the call is
    made for every element of a list, under the name ``element``.
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
    """Something that is true or false.

    Exactly one of: ``recipes`` (equivalent ways to verify it), ``established_by``
    (a gate: the action makes it true, over several turns), or ``tool_free``
    (judged from its arguments and the dialog alone).
    ``says`` and ``says_not`` are templates over the parameters and the
    handbook's constants. ``verdict`` is an expression a machine can judge.
    ``remedy`` tells a refused user the next steps; ``customer_message`` is the only text that a
    customer sees of a refusal. ``asks`` are values of its recipes that only the user has.
    ``judged_by_model`` lets a guarded action rest on a model's word; ``closed_by`` shuts a gate
    again. ``done`` is a call whose success in this session makes it true; no check makes this
    call. The user's answer to ``question`` is evidence for one guarded call, or for several if
    it is ``reusable``. A gate that sets the ``principal`` is open for one customer at a time.

    A predicate that is ``made`` comes from a procedure: ``computes`` names the argument that
    ``value`` gives, ``optional`` the parameters that may have no value.
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
    """A goal: ``action`` may run with ``arguments`` once ``requires`` is true.

    ``worded`` is the tree whose wording is shown as the official text when it
    differs from the tree that is compiled. ``inputs`` are names beside those of the action;
    the machine computes the ``computed`` arguments; ``confirm`` replaces the action's text.
    ``otherwise`` follows a refusal: another procedure, or a text.
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
    """``parameters`` are constants, or tables of them. ``predicates`` include those that
    procedures make (see ``Predicate.made``)."""

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
        """The handbook for an executor that is offered only these actions."""
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
    """The question to the user; ``None`` if the procedure asks for no confirmation."""
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
    """The predicate with the recipe that asks the user its question. Without a verdict of its
    own, a yes makes it true."""
    terms = tuple((asked_about(ASK_USER, name), Name(name)) for name in predicate.parameters)
    call = ActionCall(ASK_USER, (("question", Constant(predicate.name)), *terms))
    verdict = predicate.verdict
    if verdict is None and not predicate.judged_by_model:
        verdict = "result.answer == 'yes'"
    return replace(predicate, recipes=((call,),), verdict=verdict)
