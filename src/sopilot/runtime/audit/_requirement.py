"""What a list of calls proves about a requirement tree, in three values.

Each leaf is looked up twice: was it checked at all (some recipe of its predicate
has every call of it among the calls made), and what is known of its truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sopilot.language.handbook import (
    ASK_USER,
    NOTHING,
    ActionCall,
    AnyOf,
    Constant,
    First,
    Handbook,
    Leaf,
    Path,
    Predicate,
    Recipe,
    Tree,
    leaves,
)
from sopilot.runtime.audit._acceptance import Truth
from sopilot.runtime.audit._linked_calls import at_place
from sopilot.runtime.audit.transcript import TranscriptCall
from sopilot.runtime.vm.values import JSON, MISSING, Missing, agree

LeafTruth = Callable[[Leaf], Truth]


def leaf_values(leaf: Leaf, values: Mapping[str, JSON]) -> dict[str, JSON]:
    """The predicate's parameters under the values of the call that needs the leaf."""
    found: dict[str, JSON] = {}
    for parameter, term in leaf.arguments:
        if isinstance(term, Constant):
            found[parameter] = term.value
        elif term.name in values:
            found[parameter] = values[term.name]
    return found


def leaves_behind(handbook: Handbook, tree: Tree) -> tuple[Leaf, ...]:
    """The leaves of a requirement and, after them, those of the actions that check them."""
    found: dict[Leaf, None] = {}
    trees = [tree]
    while trees:
        for leaf in leaves(trees.pop(0)):
            if leaf not in found:
                found[leaf] = None
                recipes = recipes_of(handbook.predicates[leaf.predicate])
                trees += [required_by(handbook, one.action) for way in recipes for one in way]
    return tuple(found)


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
    found = (_supported(recipe, subject, predicate, made) for recipe in recipes)
    return next((one for one in found if one is not None), None)


def _asked_in_other_words(recipes: tuple[Recipe, ...], made: Sequence[TranscriptCall]) -> bool:
    """Whether the user is to be asked, and the agent was none that asks by the machine's call."""
    asks = all(call.action == ASK_USER for recipe in recipes for call in recipe)
    return asks and not any(one.action == ASK_USER for one in made)


def supporting_calls(
    handbook: Handbook, leaf: Leaf, values: Mapping[str, JSON], made: Sequence[TranscriptCall]
) -> list[TranscriptCall] | None:
    found = support(handbook, leaf, values, made)
    return None if found is None else [one for _, calls in found for one in calls]


def _supported(
    recipe: Recipe,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: Sequence[TranscriptCall],
) -> Support | None:
    rows: Support = []
    answers: dict[str, JSON] = dict(subject)
    for call in recipe:
        found: list[TranscriptCall] = []
        for scope in _scopes(call, answers):
            one = _latest(call, subject, predicate, made, scope)
            if one is None:
                return None
            found.append(one)
        rows.append((call, found))
        told = [one.value for one in found]
        answers[call.answer] = told if call.each is not None else told[0]
    return rows


def _scopes(call: ActionCall, answers: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """What the paths of a call look into, once an element. Of a list that nobody can read one
    call is enough."""
    if call.each is None:
        return [answers]
    listed = at_place(call.each, answers)
    if not isinstance(listed, list):
        return [answers]
    return [{**answers, call.element: one} for one in listed]


def _latest(
    call: ActionCall,
    subject: Mapping[str, JSON],
    predicate: Predicate,
    made: Sequence[TranscriptCall],
    scope: Mapping[str, JSON],
) -> TranscriptCall | None:
    for one in reversed(made):
        if one.action == call.action and _agrees(
            call, subject, predicate, one.arguments or {}, scope
        ):
            return one
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
        found = supporting_calls(handbook, leaf, values, made)
        return leaf.wanted if found is not None else None

    if decided(tree, checked) is True:
        return []
    return needed_of(tree, [one for one in dict.fromkeys(leaves(tree)) if checked(one) is None])


def needed_of(tree: Tree, opened: list[Leaf]) -> list[Leaf]:
    """Those of the open leaves without which the tree is false; all, where any would do."""

    def against(one: Leaf) -> LeafTruth:
        return lambda leaf: leaf.wanted != (leaf == one)

    needed = [leaf for leaf in opened if decided(tree, against(leaf)) is False]
    return needed or opened
