"""What a list of calls proves about a requirement tree, in three values.

Each leaf is looked up twice: was it checked at all (some recipe of its predicate
has every call of it among the calls made), and what is known of its truth.

What the calls of a transcript prove about a leaf, where nobody else knows its truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sopilot.audit.leaf_reading import at_place
from sopilot.audit.transcript_files import TranscriptCall
from sopilot.handbook.model import ASK_USER, ActionCall, Handbook, Predicate, Recipe
from sopilot.handbook.requirements import NOTHING, AnyOf, Constant, First, Leaf, Path, Tree, leaves
from sopilot.handbook.wording import fill, template
from sopilot.messages.errors import SopilotError
from sopilot.values.json import JSON, MISSING, Judge, Missing, agree

Truth = bool | None


LeafTruth = Callable[[Leaf], Truth]


def leaf_values(leaf: Leaf, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The predicate's parameters under the values of the call that needs the leaf."""
    result: dict[str, JSON] = {}
    for parameter, term in leaf.arguments:
        if isinstance(term, Constant):
            result[parameter] = term.value
        elif term.name in values:
            result[parameter] = values[term.name]
    return result


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


def required_by(handbook: Handbook, action: str) -> Tree:
    """What a call needs; the machine's own questions need nothing."""
    known = handbook.actions.get(action)
    return NOTHING if known is None else known.requires


def recipes_of(predicate: Predicate) -> tuple[Recipe, ...]:
    """The ways to check a predicate as the SOP writes them: which tools a foreign agent was
    offered is not known, so no call of a recipe is let off."""
    if predicate.established_by is not None:
        return ((predicate.established_by,),)
    if predicate.done is not None:
        return ((predicate.done,),)
    return tuple(recipe for recipe in predicate.recipes if recipe)


Support = list[tuple[ActionCall, list[TranscriptCall]]]
"""Each call of a recipe with the calls that it stands for: one, or one an element."""


def support(
    handbook: Handbook, leaf: Leaf, values: Mapping[str, JSON], made: Sequence[TranscriptCall]
) -> Support | None:
    """The calls that check the leaf, latest first choice; ``None`` when it was not checked.
    Empty for a leaf that needs no call, and for what an agent asks in its own words."""
    predicate = handbook.predicates[leaf.predicate]
    recipes = recipes_of(predicate)
    if not recipes or _asked_in_other_words(recipes, made):
        return []
    subject = leaf_values(leaf, values)
    result = (_supported(recipe, subject, predicate, made) for recipe in recipes)
    return next((item for item in result if item is not None), None)


def _asked_in_other_words(recipes: tuple[Recipe, ...], made: Sequence[TranscriptCall]) -> bool:
    """Whether the user is to be asked, and the agent was none that asks by the machine's call."""
    asks = all(call.action == ASK_USER for recipe in recipes for call in recipe)
    return asks and not any(item.action == ASK_USER for item in made)


def supporting_calls(
    handbook: Handbook, leaf: Leaf, values: Mapping[str, JSON], made: Sequence[TranscriptCall]
) -> list[TranscriptCall] | None:
    result = support(handbook, leaf, values, made)
    return None if result is None else [call for _, calls in result for call in calls]


def _supported(
    recipe: Recipe,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: Sequence[TranscriptCall],
) -> Support | None:
    rows: Support = []
    answers: dict[str, JSON] = dict(subject)
    for call in recipe:
        transcript_calls: list[TranscriptCall] = []
        for scope in _scopes(call, answers):
            latest = _latest(call, subject, predicate, made, scope)
            if latest is None:
                return None
            transcript_calls.append(latest)
        rows.append((call, transcript_calls))
        values = [item.value for item in transcript_calls]
        answers[call.answer] = values if call.each is not None else values[0]
    return rows


def _scopes(call: ActionCall, answers: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """What the paths of a call look into, once an element. Of a list that nobody can read one
    call is enough."""
    if call.each is None:
        return [answers]
    listed = at_place(call.each, answers)
    if not isinstance(listed, list):
        return [answers]
    return [{**answers, call.element: item} for item in listed]


def _latest(
    call: ActionCall,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: Sequence[TranscriptCall],
    scope: Mapping[str, JSON],
) -> TranscriptCall | None:
    for item in reversed(made):
        if item.action == call.action and _agrees(
            call, subject, predicate, item.arguments or {}, scope
        ):
            return item
    return None


def _agrees(
    call: ActionCall,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    arguments: Mapping[str, JSON],
    scope: Mapping[str, JSON],
) -> bool:
    for parameter, term in call.arguments:
        if isinstance(term, Constant):
            wanted: JSON | Missing = term.value
        elif isinstance(term, Path):
            wanted = at_place(term, scope)  # an answer that nobody can read says nothing
        elif term.name in predicate.parameters and term.name in subject:
            wanted = subject[term.name]
        else:
            continue
        if wanted is None or wanted is MISSING or parameter not in arguments:
            continue
        if not agree(wanted, arguments[parameter]):
            return False
    return True


def unchecked_leaves(
    handbook: Handbook, tree: Tree, values: Mapping[str, JSON], made: Sequence[TranscriptCall]
) -> list[Leaf]:
    """The leaves without which nothing was shown; empty when the calls suffice.

    A leaf that was checked is taken as met here: whether it is, is another question.
    """

    def checked(leaf: Leaf) -> Truth:
        result = supporting_calls(handbook, leaf, values, made)
        return leaf.wanted if result is not None else None

    if decided(tree, checked) is True:
        return []
    return needed_of(
        tree, [fromkey for fromkey in dict.fromkeys(leaves(tree)) if checked(fromkey) is None]
    )


def needed_of(tree: Tree, opened: list[Leaf]) -> list[Leaf]:
    """Those of the open leaves without which the tree is false; all, where any would do."""

    def against(item: Leaf) -> LeafTruth:
        return lambda leaf: leaf.wanted != (leaf == item)

    needed = [leaf for leaf in opened if decided(tree, against(leaf)) is False]
    return needed or opened


TruthAt = Callable[[int, str, Mapping[str, JSON]], bool | None]
"""What is known of a predicate when call number ``index`` was made: (index, predicate,
parameters) → truth, ``None`` where nobody knows."""


UNKNOWN = "…"


@dataclass(slots=True)
class Proof:
    """``made`` are the calls so far that can show something; ``now`` is when all of it was,
    where somebody knows."""

    handbook: Handbook
    machine: Judge | None = None
    oracle: TruthAt | None = None
    now: str = ""
    made: list[TranscriptCall] = field(default_factory=list)

    def calls(self, leaf: Leaf, values: Mapping[str, JSON]) -> list[TranscriptCall] | None:
        return supporting_calls(self.handbook, leaf, values, self.made)

    def known(self, index: int, values: Mapping[str, JSON]) -> Callable[[Leaf], Truth]:
        """The truth of predicates, each looked up once."""
        cache: dict[Leaf, Truth] = {}

        def known(leaf: Leaf) -> Truth:
            bare = Leaf(leaf.predicate, leaf.arguments)
            if bare not in cache:
                cache[bare] = self._truth(index, bare, values)
            return cache[bare]

        return known

    def is_unproven(self, leaf: Leaf, values: Mapping[str, JSON]) -> bool:
        """Whether the leaf was checked and nothing came of it: calls that failed or were never
        answered, or answers that its machine verdict cannot be evaluated on."""
        calls = self.calls(leaf, values)
        if self.oracle is not None or calls is None or any(call.by_tool for call in calls):
            return False
        predicate = self.handbook.predicates[leaf.predicate]
        if predicate.done is not None or (predicate.question and not calls):
            return False
        if predicate.is_gate and predicate.verdict is None:
            return not all(call.answered for call in calls)
        telling = self._telling(leaf, values)
        if telling is None:
            return True
        return self._judged_by_machine(predicate, leaf, values) and (
            self._verdict(predicate, leaf, values, telling) is None
        )

    def is_unmade(self, leaf: Leaf, values: Mapping[str, JSON]) -> bool:
        """Whether no way to check the leaf was gone: only where its other ways come out false
        does that matter."""
        return self.oracle is None and self.calls(leaf, values) is None

    def sentence(self, leaf: Leaf, values: Mapping[str, JSON], *, found: bool | None = None) -> str:
        """The SOP's sentence under the values of a call, as it requires it or as it was
        ``found``; what is not known is left open."""
        predicate = self.handbook.predicates[leaf.predicate]
        known = {name: value for name, value in leaf_values(leaf, values).items() if value != ""}
        holes = dict.fromkeys(predicate.parameters, UNKNOWN)
        if found is None:
            words = template(predicate, leaf)
        elif found:
            words = predicate.says
        else:
            words = predicate.says_not or f"It is not the case that: {predicate.says}"
        return fill(words, {**self.handbook.parameters, **holes, **known})

    # --- truth -----------------------------------------------------------------------

    def _truth(self, index: int, leaf: Leaf, values: Mapping[str, JSON]) -> Truth:
        if self.oracle is not None:
            return self.oracle(index, leaf.predicate, leaf_values(leaf, values))
        predicate = self.handbook.predicates[leaf.predicate]
        calls = self.calls(leaf, values)
        if predicate.done is not None:
            return calls is not None and any(call.ok for call in calls)
        if calls is None or (predicate.question and not calls):
            return None
        if predicate.is_gate and predicate.verdict is None:
            answered = all(call.answered for call in calls)
            return any(call.ok for call in calls) if answered else None
        telling = self._telling(leaf, values)
        if telling is None or not self._judged_by_machine(predicate, leaf, values):
            return None
        return self._verdict(predicate, leaf, values, telling)

    def _telling(self, leaf: Leaf, values: Mapping[str, JSON]) -> Support | None:
        messages = [
            item
            for item in self.made
            if item.answered and (item.ok or isinstance(item.value, bool))
        ]
        return support(self.handbook, leaf, values, messages)

    def _judged_by_machine(
        self, predicate: Predicate, leaf: Leaf, values: Mapping[str, JSON]
    ) -> bool:
        if predicate.verdict is None or self.machine is None:
            return False
        needed = set(predicate.parameters) - set(predicate.optional)
        return leaf_values(leaf, values).keys() >= needed

    def _verdict(
        self,
        predicate: Predicate,
        leaf: Leaf,
        values: Mapping[str, JSON],
        telling: Support,
    ) -> Truth:
        assert self.machine is not None
        assert predicate.verdict is not None
        variables: dict[str, JSON] = {**self.handbook.parameters, **leaf_values(leaf, values)}
        answers = {
            call.answer: [item.value for item in result]
            if call.each is not None
            else result[0].value
            for call, result in telling
        }
        variables["results"] = answers
        variables["result"] = answers[telling[-1][0].answer] if telling else None
        if self.now:
            variables.setdefault("now", self.now)
        try:
            return self.machine(predicate.verdict, variables)
        except SopilotError:
            return None
