"""Shares and parity, from sums written down."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot_lab.lens.attention import attention_of
from sopilot_lab.lens.moments import Region

places = st.lists(st.sampled_from([*Region, None]), min_size=1, max_size=60).filter(
    lambda found: any(found)
)


@given(places)
@settings(deadline=None)
def test_uniform_attention_is_at_parity(regions: list[Region | None]) -> None:
    names = (*Region, None)
    head = {name: sum(one is name for one in regions) / len(regions) for name in names}
    found = attention_of(regions, [[head, head], [head, head]])
    for region in Region:
        parity = found.parity(region)
        assert parity is None if region not in regions else parity == pytest.approx(1.0)
    assert found.outside == pytest.approx(regions.count(None) / len(regions))


@given(
    places,
    st.lists(
        st.lists(st.floats(0.001, 1), min_size=len(Region) + 1, max_size=len(Region) + 1),
        min_size=1,
        max_size=4,
    ),
)
@settings(deadline=None)
def test_shares_sum_to_one(regions: list[Region | None], heads: list[list[float]]) -> None:
    names = (*Region, None)
    masses = [[dict(zip(names, head, strict=True)) for head in heads]]
    found = attention_of(regions, masses)
    for head in range(len(heads)):
        assert sum(found.shares[r][0][head] for r in Region) == pytest.approx(1.0)


def test_parity_by_hand() -> None:
    regions = [None, Region.FRAME, Region.DIALOG, Region.DIALOG, Region.DIALOG]
    masses: list[list[dict[Region | None, float]]] = [
        [{None: 0.5, Region.FRAME: 0.25, Region.DIALOG: 0.25}],
        [{None: 0.8, Region.FRAME: 0.0, Region.DIALOG: 0.2}],
    ]
    found = attention_of(regions, masses)
    assert found.length_share(Region.FRAME) == 0.25
    assert found.parity_grid(Region.FRAME) == ((2.0,), (0.0,))
    assert found.parity(Region.FRAME) == 1.0
    assert found.parity(Region.PROGRAM) is None
    assert found.outside == pytest.approx(0.65)
