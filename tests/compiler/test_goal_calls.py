"""What a procedure calls, under which names, which gates stay shut; key order is no matter."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import Compiled, compile_handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import Binding, Constant, Leaf
from sopilot.program.codec import program_to_yaml
from sopilot.program.model import Act, Argument, CallArgument, Check, Local
from sopilot.values.schema import violation

HEAD = """\
handbook: calls
actions:
  send: {input: {user: string, to: string, amount: number}, requires: known(user)}
  look: {input: {user: string}}
  peek: {input: {user: string}}
predicates:
  known(user): {says: "{user} is known.", verify: look(user)}
  small(amount): {says: "{amount} is small.", verify: arguments}
"""


def compiled(text: str) -> dict[str, Compiled]:
    return compile_handbook(load_handbook(text))


def goal(one: Compiled) -> dict[str, CallArgument]:
    (act,) = (s for s in entry(one) if isinstance(s, Act) and s.goal)
    return dict(act.arguments)


def entry(one: Compiled) -> tuple[object, ...]:
    return one.program.functions[one.program.entry].steps


def checked(one: Compiled) -> list[tuple[str, dict[str, Argument]]]:
    """(predicate, arguments) of the entry's checks."""
    functions = one.program.functions
    return [
        (functions[s.function].predicate or "", dict(s.arguments))
        for s in entry(one)
        if isinstance(s, Check)
    ]


def test_inputs_that_the_action_line_does_not_mention_are_still_passed() -> None:
    one = compiled(HEAD + "procedures:\n  send_one: {action: send(amount=1)}\n")["send_one"]
    assert goal(one) == {"user": Local("user"), "to": Local("to"), "amount": Constant(1)}
    assert one.program.functions["send_one"].parameters == ("user", "to")
    # What the action itself requires is about the user who is passed.
    assert checked(one) == [("known", {"user": Local("user")})]


def test_an_input_that_is_fixed_or_renamed_is_that_under_requires_too() -> None:
    text = HEAD + (
        "procedures:\n"
        "  send_one:\n"
        "    action: send(amount=1, to=friend)\n"
        "    requires: [small(amount), known(to)]\n"
    )
    one = compiled(text)["send_one"]
    assert goal(one) == {"user": Local("user"), "to": Local("friend"), "amount": Constant(1)}
    assert checked(one) == [
        ("known", {"user": Local("user")}),
        ("small", {"amount": Constant(1)}),
        ("known", {"user": Local("friend")}),
    ]


NAMESAKES = """\
handbook: namesakes
actions:
  send: {input: {user: string}}
  stop: {input: {user: string}}
  look: {input: {user: string}}
  peek: {input: {user: string}}
predicates:
  send(user): {says: "{user} may send.", verify: look(user)}
  verify_send(user): {says: "{user} is verified.", verify: peek(user)}
  all_of_send_verify_send(user): {says: "{user} has both.", verify: peek(user)}
procedures:
  send: {requires: [send(user), verify_send(user), all_of_send_verify_send(user)]}
  stop: {requires: [verify_send(user), send(user)]}
"""


def test_predicates_named_like_the_goal_and_its_namesake_are_all_checked() -> None:
    programs = compiled(NAMESAKES)
    user = {"user": Local("user")}
    assert checked(programs["send"]) == [
        ("send", user),
        ("verify_send", user),
        ("all_of_send_verify_send", user),
    ]
    # The name that the first procedure gave to `send` is another predicate's here.
    assert checked(programs["stop"]) == [("verify_send", user), ("send", user)]
    for one in programs.values():
        verifiers = {
            function.predicate: step.action
            for function in one.program.functions.values()
            for step in function.steps
            if isinstance(step, Act) and not step.goal
        }
        assert verifiers["send"] == "look"
        assert verifiers["verify_send"] == "peek"


SHUT = """\
handbook: shut
actions:
  login: {input: {user: string}, requires: [not: logged_in(user), not: locked(user)]}
  issue: {input: {user: string}}
  read: {input: {user: string}, requires: logged_in(user)}
  peek: {input: {user: string}, requires: {any: [logged_in(user), has_token(user)]}}
  look: {input: {user: string}}
  close: {input: {user: string}}
  greet: {input: {user: string}}
predicates:
  logged_in(user): {says: "{user} is in.", established_by: login(user)}
  has_token(user): {says: "{user} has a token.", established_by: issue(user)}
  locked(user): {says: "{user} is locked.", verify: look(user)}
  covered(user): {says: "{user} is covered.", verify: read(user)}
  seen(user): {says: "{user} is seen.", verify: peek(user)}
procedures:
  close: {requires: covered(user)}
  greet: {requires: seen(user)}
"""


def test_a_gate_that_must_be_shut_is_not_opened_to_find_that_out() -> None:
    one = compiled(SHUT)["close"]
    assert [predicate for predicate, _ in checked(one)] == ["logged_in", "covered"]
    assert [guard.leaf.wanted for guard in one.explanation.guards] == [True]


def test_what_opening_a_gate_requires_besides_gates_is_reported() -> None:
    unchecked = compiled(SHUT)["close"].explanation.unchecked
    assert [(action, leaf.predicate, leaf.wanted) for action, leaf in unchecked] == [
        ("login", "locked", False)
    ]


def test_gates_of_which_one_is_enough_are_reported_since_nobody_opens_them() -> None:
    one = compiled(SHUT)["greet"]
    assert [predicate for predicate, _ in checked(one)] == ["seen"]
    assert [(action, leaf) for action, leaf in one.explanation.unchecked] == [
        ("peek", Leaf("logged_in", seen(one))),
        ("peek", Leaf("has_token", seen(one))),
    ]


def seen(one: Compiled) -> Binding:
    """The arguments of the only check, as the tree has them."""
    assert isinstance(one.explanation.tree, Leaf)
    return one.explanation.tree.arguments


KEYS = """\
handbook: keys
parameters: {least: 1, most: 9}
actions:
  wipe: {input: {user: string}, irreversible: true}
  close: {input: {user: string}, irreversible: true}
  look: {input: {user: string}}
predicates:
  open(user): {says: "{user} is open since {most}.", verify: look(user)}
  calm(user): {says: "{user} is calm since {least}.", verify: arguments}
procedures:
  close: {requires: {any: [open(user), calm(user)]}}
  wipe: {requires: [calm(user), open(user)]}
"""
OTHER_KEYS = """\
procedures:
  wipe: {requires: [calm(user), open(user)]}
  close: {requires: {any: [open(user), calm(user)]}}
predicates:
  calm(user): {verify: arguments, says: "{user} is calm since {least}."}
  open(user): {verify: look(user), says: "{user} is open since {most}."}
actions:
  look: {input: {user: string}}
  close: {irreversible: true, input: {user: string}}
  wipe: {irreversible: true, input: {user: string}}
parameters: {most: 9, least: 1}
handbook: keys
"""


def test_same_bytes_under_every_key_order() -> None:
    one, other = compiled(KEYS), compiled(OTHER_KEYS)
    for name in ("close", "wipe"):
        assert program_to_yaml(one[name].program) == program_to_yaml(other[name].program)


@pytest.mark.parametrize(
    ("schema", "fitting", "unfit"),
    [
        ("{enum: [1, 2]}", 2, 3),  # the values say what they are
        ("{type: integer}", 2, "2"),
        ("{minLength: 2}", "ab", 2),  # a text where nothing else is said
    ],
)
def test_a_value_is_held_to_the_schema_of_its_input(
    schema: str, fitting: object, unfit: object
) -> None:
    text = f"""
handbook: values
actions: {{pay: {{input: {{amount: {{schema: {schema}}}}}}}}}
procedures: {{pay: {{}}}}
"""
    types = dict(compiled(text)["pay"].program.types)
    assert violation(fitting, types["amount"], "amount") is None
    assert violation(unfit, types["amount"], "amount")
