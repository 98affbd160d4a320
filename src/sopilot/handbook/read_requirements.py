"""Requirement trees from nodes."""

from __future__ import annotations

from collections.abc import Mapping

from sopilot.handbook.fields import describe, missing, unknown, wrong
from sopilot.handbook.grammar import TREE_OPERATORS
from sopilot.handbook.nodes import ListNode, MapNode, Node, ScalarNode
from sopilot.handbook.read_calls import Scope, bind, read_call
from sopilot.handbook.requirements import (
    NOTHING,
    OPERATORS,
    All,
    AnyOf,
    First,
    InOrder,
    Leaf,
    Tree,
    every_otherwise,
    negate,
    substitute,
)
from sopilot.messages.diagnostic import DiagnosticCollector, did_you_mean

_LISTS: dict[str, type] = {word: kind for kind, word in OPERATORS.items()}

_ELSEWHERE = {
    "and": "all",
    "or": "any",
    "chain": "in_order",
    "sequence": "in_order",
    "gate": "first",
    "one_of": "any",
    "none": "not",
}
"""Operators of other languages; the nearest spelling would often be the wrong one."""


def read_requirement(node: Node, scope: Scope) -> Tree:
    """The value of ``requires``: a tree, or a bare list that means ``all``."""
    if isinstance(node, ListNode):
        return All(tuple(_tree(item, scope) for item in node.items))
    return _tree(node, scope)


def _tree(node: Node, scope: Scope) -> Tree:
    if isinstance(node, MapNode):
        return _operator(node, scope)
    if isinstance(node, ListNode):
        help = "name the operator: `all: [...]` or `any: [...]`"
        wrong(scope.report, node, "a requirement", "`predicate(arguments)` or one operator", help)
        return NOTHING
    return _leaf(node, scope)


def _leaf(node: ScalarNode, scope: Scope) -> Tree:
    report, signatures = scope.report, scope.signatures
    call = read_call(report, node, "a requirement", "logged_in(username)")
    if call is None:
        return NOTHING
    named = signatures.requirements.get(call.name)
    if named is not None:
        bound = bind(node, call, named.parameters, scope, complete=True)
        return substitute(named.tree, dict(bound))
    parameters = signatures.predicates.get(call.name)
    if parameters is None:
        if call.name not in signatures.broken:
            unknown(report, node, "predicate", call.name, signatures.predicates)
        return NOTHING
    return Leaf(call.name, bind(node, call, parameters, scope, complete=True))


def _operator(node: MapNode, scope: Scope) -> Tree:
    report = scope.report
    results = {key.text: value for key, value in node.pairs}
    if "when" in results and results.keys() <= {"when", "then"}:
        return _when(node, results, scope)
    if "requires" in results and results.keys() <= {"requires", "otherwise"}:
        return _refused(node, results, scope)
    for key, value in node.pairs:
        if key.text not in TREE_OPERATORS:
            if isinstance(value, ListNode):
                read_requirement(value, scope)  # for its own mistakes
            meant = _ELSEWHERE.get(key.text.lower())
            help = f"did you mean `{meant}`?" if meant else did_you_mean(key.text, TREE_OPERATORS)
            if "(" in key.text or key.text in scope.signatures.predicates:
                help = "write a predicate without a colon after it"
            report.error("unknown-operator", f"there is no operator `{key.text}`", key, help)
            return NOTHING
    if len(node.pairs) != 1:
        names = ", ".join(f"`{key.text}`" for key, _ in node.pairs)
        message = f"a requirement has one operator, not {names}" if names else "no operator here"
        help = "join them under `all`, `any`, `in_order` or `first`, each with its own dash"
        report.error("two-operators" if names else "empty-operator", message, node, help)
        return NOTHING
    ((key, value),) = node.pairs
    if key.text == "not":
        before = report.errors
        wanted = _tree(value, scope)
        _refuses_nothing(report, value, wanted, "`not` reverses it")
        negated = negate(wanted)
        # An unreadable part stands as nothing, which isn't the author's mistake.
        if report.errors == before and _is_hopeless(negated):
            message = "`not` has an empty list, so it could never be true"
            report.error("empty-operator", message, value)
            return NOTHING
        return negated
    if not isinstance(value, ListNode):
        message = f"`{key.text}` must be a list of requirements, found {describe(value)}"
        report.error("wrong-type", message, value)
        return NOTHING
    if not value.items and key.text in ("any", "first"):
        message = f"`{key.text}` has no option, so it could never be true"
        report.error("empty-operator", message, value)
        return NOTHING
    children = tuple(_tree(item, scope) for item in value.items)
    # An unmet option isn't a refusal yet: another option may hold.
    options = {"any": len(children), "first": len(children) - 1}.get(key.text, 0)
    for item, child in list(zip(value.items, children, strict=True))[:options]:
        _refuses_nothing(report, item, child, f"another option of `{key.text}` may be true")
    tree: Tree = _LISTS[key.text](children)
    return tree


def _when(node: MapNode, nodes: Mapping[str, Node], scope: Scope) -> Tree:
    """``{when: A, then: B}``: not A, or else B; A is looked at first."""
    if "then" not in nodes:
        missing(scope.report, node, "then", "`when`")
        return NOTHING
    condition = _tree(nodes["when"], scope)
    _refuses_nothing(scope.report, nodes["when"], condition, "`when` only asks")
    then = read_requirement(nodes["then"], scope)
    return First((negate(condition), then))


def _refused(node: MapNode, nodes: Mapping[str, Node], scope: Scope) -> Tree:
    """``{requires: A, otherwise: X}``: A; where it is the reason of a refusal, X follows."""
    tree = read_requirement(nodes["requires"], scope)
    if "otherwise" not in nodes:
        missing(scope.report, node, "otherwise", "`requires` inside a requirement")
        return tree
    follows = nodes["otherwise"]
    if not isinstance(follows, ScalarNode) or not isinstance(follows.value, str):
        wrong(
            scope.report, follows, "`otherwise`", "the name of a procedure, or words for the user"
        )
        return tree
    return InOrder((tree,), follows.value)


def _refuses_nothing(report: DiagnosticCollector, node: Node, tree: Tree, because: str) -> None:
    if every_otherwise(tree):
        message = f"`otherwise` has no effect here, because nothing is refused: {because}"
        help = "put it around the whole operator, or on the procedure"
        report.error("otherwise-unused", message, node, help)


def _is_hopeless(tree: Tree) -> bool:
    """Whether an `any` or `first` somewhere in it has no option."""
    if isinstance(tree, Leaf):
        return False
    if not tree.children:
        return isinstance(tree, AnyOf | First)
    return any(_is_hopeless(child) for child in tree.children)
