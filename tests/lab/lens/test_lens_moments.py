"""The requests of a session, made again from its trace alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.protocols import ModelRequest
from sopilot_lab.lens.moments import Context, Piece, ReadMoment, Region, Turn, spread, write

Recorded = Callable[[str], tuple[list[ReadMoment], list[ModelRequest]]]


def flattened(context: Context) -> str:
    return "\n".join("".join(p.text for p in turn.pieces) for turn in context.turns)


@pytest.mark.parametrize(
    "arm", ["pg", "pg-paper", "fused", "full-cursor", "flat", "flat-protocol", "flat-state"]
)
def test_a_request_is_made_again_word_for_word(recorded: Recorded, arm: str) -> None:
    moments, asked = recorded(arm)
    assert len(moments) == len(asked) > 5
    for moment, request in zip(moments, asked, strict=True):
        told = flattened(moment.own)
        for message in request.messages:
            assert message.content in told
            for call in message.tool_calls:
                assert f'"tool": "{call.name}"' in told


def test_regions_are_what_they_are_called(recorded: Recorded) -> None:
    for arm, frame, program in (
        ("pg", True, False),
        ("full-cursor", True, True),
        ("flat", False, True),
        ("flat-state", True, True),
    ):
        moments, _ = recorded(arm)
        last = moments[-1].own
        assert last.has(Region.FRAME) is frame, arm
        assert last.has(Region.PROGRAM) is program, arm
        assert last.has(Region.TOOLS)
        assert last.has(Region.DIALOG)


def test_a_clean_presentation_keeps_the_frame_and_the_users_words_alone(
    recorded: Recorded,
) -> None:
    moments, _ = recorded("pg")
    late = moments[-2]
    frames = [
        [p for turn in context.turns for p in turn.pieces if p.region is Region.FRAME]
        for context in (late.own, late.clean)
    ]
    assert frames[0] == frames[1] != []
    roles = [t.role for t in late.clean.turns if t.pieces[0].region is Region.DIALOG]
    assert roles == ["user"]
    assert len(flattened(late.clean)) < len(flattened(late.own))


def test_the_right_move_is_the_one_a_faultless_session_made(recorded: Recorded) -> None:
    moments, _ = recorded("pg")
    assert moments[0].move is not None
    assert '"operation": "start", "goal": "transfer"' in moments[0].move
    moves = [moment.move for moment in moments]
    assert any(move == '{"tool": "transfer"' for move in moves)
    assert any(move and '"operation": "return", "holds": true' in move for move in moves)
    # Only in the paper's own arm is a call the model's to write.
    written, _ = recorded("pg-paper")
    assert any(moment.move and '"operation": "call"' in moment.move for moment in written)
    made, _ = recorded("flat")
    assert any(moment.move == '{"tool": "transfer"' for moment in made)


def test_moments_are_spread_over_the_session(recorded: Recorded) -> None:
    moments, _ = recorded("pg")
    few = spread(moments, 3)
    assert len(few) == 3
    assert [one.number for one in few] == sorted({one.number for one in few})
    assert spread(moments, 10_000) == [one for one in moments if one.move is not None]


texts = st.text(st.characters(codec="utf-8", exclude_characters="<>"), min_size=1, max_size=20)
contexts = st.lists(
    st.builds(
        lambda role, pieces: Turn(role, tuple(Piece(r, t) for r, t in pieces)),
        st.sampled_from(["system", "user", "assistant"]),
        st.lists(st.tuples(st.sampled_from(list(Region)), texts), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=5,
).map(lambda turns: Context(tuple(turns)))


@given(contexts)
@settings(deadline=None)
def test_every_character_is_found_in_its_own_region(context: Context) -> None:
    def template(messages: object) -> str:
        assert isinstance(messages, list)
        return "".join(f"<{m['role']}>{m['content']}</>" for m in messages)

    written = write(context, template)
    for region in Region:
        meant = "".join(p.text for turn in context.turns for p in turn.pieces if p.region is region)
        found = "".join(written.text[a:b] for a, b, r in written.spans if r is region)
        assert "".join(found.split()) == "".join(meant.split())
    covered = sum(b - a for a, b, _ in written.spans)
    markers = sum(len(f"<{turn.role}></>") for turn in context.turns)
    assert covered + markers == len(written.text)


@given(contexts)
@settings(deadline=None)
def test_removing_nothing_changes_nothing_and_removing_all_leaves_nothing(
    context: Context,
) -> None:
    assert context.without() == context
    assert context.without(*Region).turns == ()
    for region in Region:
        assert not context.without(region).has(region)
