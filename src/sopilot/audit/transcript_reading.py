"""Requirement trees of a handbook, read by the calls of a transcript.

A leaf is read twice. Was it checked: are the calls of some recipe among the earlier ones, with
agreeing arguments? And is it true: that is the reading of sessions (``leaf_reading``), on the calls
so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sopilot.audit.call_reading import Doubt, read_call
from sopilot.audit.leaf_reading import (
    GATE,
    PART,
    VERDICT,
    LeafReading,
    Moment,
    Unreadable,
    at_place,
)
from sopilot.audit.state import AuditState, SessionCall, standing_at
from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.model import (
    ASK_USER,
    Action,
    ActionCall,
    Handbook,
    Predicate,
    Procedure,
    Recipe,
)
from sopilot.handbook.requirements import (
    NOTHING,
    AnyOf,
    Binding,
    Constant,
    First,
    Leaf,
    Name,
    Path,
    Tree,
    leaves,
    values_of,
)
from sopilot.handbook.wording import denied, fill, template
from sopilot.machine.layout import FunctionLayout, ProgramLayout
from sopilot.machine.replay import Replay
from sopilot.program.model import Act
from sopilot.values.answers import shows_success
from sopilot.values.json import JSON, MISSING, Judge, Missing, agree

Truth = bool | None
LeafTruth = Callable[[Leaf], Truth]


UNKNOWN = "…"


# --- trees ------------------------------------------------------------------------------


def decided(tree: Tree, truth: LeafTruth) -> Truth:
    """The tree's value where unknown leaves may be either."""
    if isinstance(tree, Leaf):
        known = truth(tree)
        return None if known is None else known == tree.wanted
    parts = [decided(child, truth) for child in tree.children]
    deciding = isinstance(tree, AnyOf | First)
    if deciding in parts:
        return deciding
    return None if None in parts else not deciding


def needed_of(tree: Tree, opened: Sequence[Leaf]) -> Sequence[Leaf]:
    """Those of the open leaves without which the tree is false; all, where any would do."""

    def against(item: Leaf) -> LeafTruth:
        return lambda leaf: leaf.wanted != (leaf == item)

    return [leaf for leaf in opened if decided(tree, against(leaf)) is False] or opened


def leaves_behind(handbook: Handbook, tree: Tree) -> tuple[Leaf, ...]:
    """The leaves of a requirement and, after them, those of the actions that check them."""
    result: dict[Leaf, None] = {}
    trees = [tree]
    while trees:
        for leaf in leaves(trees.pop(0)):
            if leaf not in result:
                result[leaf] = None
                recipes = recipes_of(handbook.predicates[leaf.predicate])
                trees += [required_by(handbook, item.action) for way in recipes for item in way]
    return tuple(result)


def required_by(handbook: Handbook, action: str) -> Tree:
    """The requirement of a call; the runtime's own questions need nothing."""
    known = handbook.actions.get(action)
    return NOTHING if known is None else known.requires


def recipes_of(predicate: Predicate) -> tuple[Recipe, ...]:
    """The ways to check a predicate as the handbook writes them. Which tools a foreign agent was
    offered isn't known, so no call of a recipe is waived."""
    for single in (predicate.established_by, predicate.done):
        if single is not None:
            return ((single,),)
    return tuple(recipe for recipe in predicate.recipes if recipe)


# --- was it checked? ----------------------------------------------------------------------


def supporting_calls(
    handbook: Handbook, leaf: Leaf, values: Mapping[str, JSON], made: Sequence[SessionCall]
) -> list[SessionCall] | None:
    """The calls that check the leaf, latest first choice; ``None`` when it was not checked. Empty
    for a leaf that needs no call, and for a question that an agent asks in its own words."""
    predicate = handbook.predicates[leaf.predicate]
    recipes = recipes_of(predicate)
    in_own_words = all(call.action == ASK_USER for recipe in recipes for call in recipe)
    if not recipes or (in_own_words and not any(item.action == ASK_USER for item in made)):
        return []
    subject = values_of(leaf.arguments, values)
    ways = (_supported(recipe, subject, predicate, made) for recipe in recipes)
    return next((calls for calls in ways if calls is not None), None)


def _supported(
    recipe: Recipe,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: Sequence[SessionCall],
) -> list[SessionCall] | None:
    calls: list[SessionCall] = []
    answers: dict[str, JSON] = dict(subject)
    for wanted in recipe:
        own: list[SessionCall] = []
        for scope in _scopes(wanted, answers):
            fitting = (item for item in reversed(made) if item.action == wanted.action)
            latest = next(
                (item for item in fitting if _agrees(wanted, subject, predicate, item, scope)), None
            )
            if latest is None:
                return None
            own.append(latest)
        calls += own
        values = [item.value for item in own]
        answers[wanted.answer] = values if wanted.each is not None else values[0]
    return calls


def _scopes(call: ActionCall, answers: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """The answers that the paths of a call look into, once per element. Of a list that can't be
    read one call is enough."""
    listed = at_place(call.each, answers) if call.each is not None else None
    if not isinstance(listed, list):
        return [answers]
    return [{**answers, call.element: item} for item in listed]


def _agrees(
    call: ActionCall,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: SessionCall,
    scope: Mapping[str, JSON],
) -> bool:
    """A value that isn't known, or stands in an answer that can't be read, agrees with any."""
    for parameter, term in call.arguments:
        wanted: JSON | Missing = None
        if isinstance(term, Constant):
            wanted = term.value
        elif isinstance(term, Path):
            wanted = at_place(term, scope)
        elif term.name in predicate.parameters:
            wanted = subject.get(term.name)
        if wanted is None or wanted is MISSING or parameter not in made.arguments:
            continue
        if not agree(wanted, made.arguments[parameter]):
            return False
    return True


# --- is it true? --------------------------------------------------------------------------

UNPROVEN = frozenset({VERDICT, GATE, PART})
"""A check that was answered, and whose answers don't decide it."""


@dataclass(slots=True)
class Reading:
    """The calls so far, and what they show. ``now`` is the time of the present one, where known."""

    handbook: Handbook
    judge: Judge
    now: str = ""
    calls: list[SessionCall] = field(default_factory=list)
    """``asked_for`` is false for a call without its own prerequisites, which checks nothing."""
    _run: AuditState | None = None
    _layouts: dict[str, tuple[ProgramLayout, FunctionLayout]] = field(default_factory=dict)

    @property
    def run(self) -> AuditState:
        """The session that the calls would be, at the goal actions of the compiled procedures."""
        if self._run is None:
            self._run = self._compiled(self.handbook)
            # Requirements of actions that no procedure asks for are read all the same.
            others = {
                name: Procedure(name, name, action.requires, arguments=_inputs(action))
                for name, action in self.handbook.actions.items()
                if any(leaf.predicate not in self._layouts for leaf in leaves(action.requires))
            }
            if others:
                self._compiled(replace(self.handbook, procedures=others))
        return self._run

    def set_time(self, now: str) -> None:
        self.now = now
        if self._run is not None:
            self._run.clock = now

    def without_time(self) -> Reading:
        return Reading(self.handbook, self.judge, calls=self.calls)

    def _compiled(self, handbook: Handbook) -> AuditState:
        units = compile_handbook(handbook)
        replay = Replay({goal: unit.program for goal, unit in units.items()})
        run = AuditState(replay, self.judge, self.now)
        for program in run.programs.values():
            for layout in program.functions.values():
                if layout.soft:
                    self._layouts.setdefault(layout.function.judges, (program, layout))
        return run

    @contextmanager
    def before(self, call: SessionCall) -> Iterator[None]:
        """Without the answers that came after the answer to ``call``."""
        late = {
            at: item
            for at, item in enumerate(self.calls)
            if item.answer_number > call.answer_number >= 0
        }
        for at, item in late.items():
            self.calls[at] = replace(item, answered=None, ok=False, unknown=False, value=None)
        yield
        for at, item in late.items():
            self.calls[at] = item

    def supporting(self, leaf: Leaf, values: Mapping[str, JSON]) -> list[SessionCall] | None:
        made = [call for call in self.calls if call.asked_for]
        return supporting_calls(self.handbook, leaf, values, made)

    def _telling(self) -> list[SessionCall]:
        """The calls with an answer; a tool may say no by failing with a truth."""
        return [
            call
            for call in self.calls
            if call.asked_for and not call.awaited and (call.ok or isinstance(call.value, bool))
        ]

    def unchecked(self, tree: Tree, values: Mapping[str, JSON]) -> Sequence[Leaf]:
        """The leaves without which nothing was shown; empty when the calls suffice. A leaf that
        was checked counts as met here."""

        def checked(leaf: Leaf) -> Truth:
            return leaf.wanted if self.supporting(leaf, values) is not None else None

        if decided(tree, checked) is True:
            return []
        return needed_of(tree, [leaf for leaf in _each(tree) if checked(leaf) is None])

    def known(self, values: Mapping[str, JSON]) -> LeafTruth:
        """The truth of predicates, each looked up once."""
        cache: dict[Leaf, Truth] = {}

        def known(leaf: Leaf) -> Truth:
            bare = Leaf(leaf.predicate, leaf.arguments)
            if bare not in cache:
                cache[bare] = self.truth(bare, values)
            return cache[bare]

        return known

    def truth(self, leaf: Leaf, values: Mapping[str, JSON]) -> Truth:
        """Whether the calls show the predicate to be true or false."""
        predicate, calls = self.handbook.predicates[leaf.predicate], self.supporting(leaf, values)
        if predicate.done is not None:
            return calls is not None and _happened(calls)
        if calls is None or (predicate.question and not calls):
            return None
        if predicate.is_gate and predicate.verdict is None:
            return _happened(calls, opening=True)
        reading = self.read(leaf, values)
        return reading.holds if reading is not None else None

    def is_unproven(self, leaf: Leaf, values: Mapping[str, JSON]) -> bool:
        """Whether the leaf wasn't checked, or was and its answers don't decide what is wanted."""
        predicate, calls = self.handbook.predicates[leaf.predicate], self.supporting(leaf, values)
        if calls is None:
            return True
        if predicate.done is not None or (predicate.is_gate and predicate.verdict is None):
            return _happened(calls, opening=predicate.is_gate) is None
        if not leaf.wanted or (predicate.question and not calls):
            return False
        if supporting_calls(self.handbook, leaf, values, self._telling()) is None:
            return True
        if predicate.verdict is None:
            return False
        reading = self.read(leaf, values)
        return reading is not None and reading.lack is not None and reading.lack.code in UNPROVEN

    def read(self, leaf: Leaf, values: Mapping[str, JSON]) -> LeafReading | None:
        """The reading of sessions on the latest answers, whatever may have changed them since;
        ``None`` where it can't be read."""
        run = self.run
        if leaf.predicate not in self._layouts:
            return None
        program, layout = self._layouts[leaf.predicate]
        # Without programs nothing is known to change an answer.
        unchanging = AuditState(Replay({}), run.judge, run.clock, session_calls=self._telling())
        moment = Moment(unchanging, standing_at(program, "", values), values)
        try:
            return moment.read(layout, values_of(leaf.arguments, values))
        except Unreadable:
            return None

    def doubts(
        self,
        call: SessionCall,
        goal: str,
        values: Mapping[str, JSON],
        perhaps: Sequence[SessionCall] = (),
    ) -> tuple[Doubt, ...]:
        """The leaves of ``goal`` that the calls so far don't prove for the arguments of ``call``,
        changes included. ``perhaps`` are calls that may have been carried out as well."""
        program = self.run.programs[goal]
        acts = (step for step in program.entry.function.steps if isinstance(step, Act))
        step = next((act for act in acts if act.goal), None)
        if step is None:
            return ()
        sure = {item.seq: item for item in self.calls if not item.heard}
        made = sure | {item.seq: item for item in perhaps}
        self.run.session_calls = [made[seq] for seq in sorted(made)]
        process = standing_at(program, step.label, values)
        reading = read_call(self.run, process, call.action, call.arguments)
        return reading.doubts if reading is not None else ()

    def sentence(self, leaf: Leaf, values: Mapping[str, JSON], *, actual: Truth = None) -> str:
        """The handbook's sentence under the values of a call, as required or as it came out;
        unknown values are left open."""
        predicate = self.handbook.predicates[leaf.predicate]
        known = {
            name: value for name, value in values_of(leaf.arguments, values).items() if value != ""
        }
        holes = dict.fromkeys(predicate.parameters, UNKNOWN)
        words = template(predicate, leaf)
        if actual is not None:
            words = predicate.says if actual else denied(predicate.says, predicate.says_not)
        return fill(words, {**self.handbook.parameters, **holes, **known})


def _happened(calls: Sequence[SessionCall], *, opening: bool = False) -> Truth:
    """Whether a call took effect. Of those that open a gate, the newest answer must show it."""
    made = [call for call in calls if call.ok]
    telling = made[-1:] if opening else made
    if any(not call.unclear and (not opening or shows_success(call.value)) for call in telling):
        return True
    return None if made or any(call.awaited or call.unclear for call in calls) else False


def _inputs(action: Action) -> Binding:
    return tuple((name, Name(name)) for name in action.input_names())


def _each(tree: Tree) -> Iterator[Leaf]:
    return iter(dict.fromkeys(leaves(tree)))
