"""Figures 1 and 2: columns of real text, in frames as wide as the page."""

from __future__ import annotations

import re
from itertools import pairwise

from artifact_figures import WIDTH, boxes, wrap


def test_lines_keep_their_indent_and_fit() -> None:
    assert wrap("  a long line that goes on", 14) == ["  a long line", "    that goes", "    on"]
    assert wrap("", 14) == [""]


def test_columns_stand_side_by_side_within_the_page() -> None:
    picture = boxes("p", [("one", ["a"] * 3), ("two", ["word " * 40]), ("three", ["<b>"])])
    text = picture.as_file()
    found = re.findall(r'x="([\d.]+)"[^>]* width="([\d.]+)"', text)
    frames = [(float(left), float(width)) for left, width in found]
    assert len(frames) == 3
    for (left, width), (right, _) in pairwise(frames):
        assert left + width < right
    assert frames[-1][0] + frames[-1][1] <= WIDTH
    assert "&lt;b&gt;" in text
    assert text.count("<polygon") == 2
