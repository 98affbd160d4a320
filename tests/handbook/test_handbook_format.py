from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_handbooks import handbooks

from sopilot.handbook.formatter import format_handbook
from sopilot.handbook.model import Handbook
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.writer import write_handbook
from sopilot.messages.errors import UserMistake

BANK = (Path(__file__).parent / "valid" / "bank_desk.yaml").read_text(encoding="utf-8")

MESSY = """

# top


handbook:   x
parameters: { k: 1 , "l" :  2 }   # c
actions:
      # about a
      a:
            input:   {x: string,
     y: string
     }
            says: |
                  two
                    lines

                  more
      b :
          says: 'multi

            line' # end
          # dangling
      c: {says: 'plain' }
      d: {input: {x: string, y: string}}
predicates:
   p(x,y):
      says:    words
        that go on
      verify:
       all:
       - a( x,  y )
       -   any:   [d(x,y),b( )]
procedures:
  a:
    requires:
    -   all:
        - p(x, y)
        # inner
        -    p(y,x)
    -   not:  p(x, x)
        # z
"""

TIDY = """# top

handbook: x
parameters: {k: 1, "l": 2}  # c
actions:
  # about a
  a:
    input: {x: string,
        y: string
      }
    says: |
          two
            lines

          more
  b:
    says: 'multi

      line'  # end
    # dangling
  c: {says: "plain"}
  d: {input: {x: string, y: string}}
predicates:
  p(x,y):
    says: words
      that go on
    verify:
      all:
        - a( x,  y )
        - any: [d(x, y), b( )]
procedures:
  a:
    requires:
      - all:
          - p(x, y)
          # inner
          - p(y,x)
      - not: p(x, x)
      # z
"""


def test_layout() -> None:
    assert format_handbook(MESSY) == TIDY
    assert format_handbook(TIDY) == TIDY
    assert load_handbook(TIDY) == load_handbook(MESSY)


def test_comments_and_order_survive() -> None:
    tidy = format_handbook(BANK)
    comments = [line.split("#", 1)[1] for line in BANK.split("\n") if "#" in line]
    assert [line.split("#", 1)[1] for line in tidy.split("\n") if "#" in line] == comments
    assert load_handbook(tidy) == load_handbook(BANK)
    assert list(load_handbook(tidy).actions) == list(load_handbook(BANK).actions)
    assert format_handbook(tidy) == tidy


def test_windows_line_breaks_become_plain_ones() -> None:
    assert format_handbook(BANK.replace("\n", "\r\n")) == format_handbook(BANK)


def test_what_is_not_yaml_is_refused() -> None:
    with pytest.raises(UserMistake) as caught:
        format_handbook("handbook: [", "desk.yaml")
    assert caught.value.diagnostics[0].place.source == "desk.yaml"


def _mess(text: str, dice: random.Random) -> str:
    """The same document in a careless hand: wider indentation, gaps, comments, blank lines."""
    factor = dice.choice([1, 2, 3])
    lines: list[str] = []
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        indent = " " * ((len(line) - len(bare)) * factor)
        if dice.random() < 0.2:
            lines.append(dice.choice(["", "   ", "# note", indent + "# note: x", "      # far"]))
        # What stands behind a dash goes on in later lines, in the same column.
        if bare.startswith("- "):
            bare = "-" + " " * (2 * factor - 1) + bare[2:]
        if ": " in bare and '"' not in bare and not bare.startswith("- "):
            key, value = bare.split(": ", 1)
            bare = f"{key}{dice.choice(['', ' '])}:{dice.choice([' ', '   '])}{value}"
        lines.append(indent + bare + dice.choice(["", "", "  ", "  # why"]) if bare else "")
    return "\n".join(lines)


@settings(deadline=None, max_examples=40)
@given(handbooks(), st.integers(0, 10**6))
def test_formatting_keeps_the_meaning(handbook: Handbook, seed: int) -> None:
    messy = _mess(write_handbook(handbook), random.Random(seed))
    tidy = format_handbook(messy)
    assert load_handbook(tidy) == load_handbook(messy)
    assert format_handbook(tidy) == tidy
    assert not any(line.endswith((" ", "\t")) for line in tidy.split("\n") if '"' not in line)


PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "\n  ", "\n    ", " ", "# c", "[", "]", "{", "}", ", ", "'", '"', "|",
     ">", "|+\n", "? ", ": ", "\n\n", "---\n", "...\n", "\t", "é", "|2", ">-", "x: y", "\\", "\n- "]
)  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(st.lists(PIECES, max_size=25).map(lambda pieces: "k: " + "".join(pieces)))
@example("a:\n- |2\n   x\n\n\n- b")
@example("a: |+\n  x\n\n\nb: c\n")
@example("? a\n: - b\n  - c\n")
@example("k:\n- - a\n  - b\n-   - c\n    - d: |\n       e\n      f: g\n")
def test_any_yaml_keeps_its_content(text: str) -> None:
    """The formatter compares contents itself, so an ``InternalBug`` here is the failure."""
    try:
        tidy = format_handbook(text)
    except UserMistake:
        return
    assert format_handbook(tidy) == tidy
