"""Share of attention over share of length, per layer and head. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sopilot.messages.errors import InternalBug
from sopilot_lab.lens.moments import Region

Grid = tuple[tuple[float, ...], ...]
"""One value per layer and head."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Shares of the request's own tokens. Many heads rest on the template's tokens when they look
    at nothing, so those count only in ``outside``."""

    tokens: Mapping[Region, int]
    shares: Mapping[Region, Grid]
    outside: float

    def length_share(self, region: Region) -> float | None:
        whole = sum(self.tokens.values())
        return self.tokens[region] / whole if self.tokens.get(region) else None

    def share(self, region: Region) -> float | None:
        """Mean over layers and heads."""
        if not self.tokens.get(region):
            return None
        values = [value for row in self.shares[region] for value in row]
        return sum(values) / len(values)

    def parity(self, region: Region) -> float | None:
        """1 is attention in proportion to length; ``None`` where the region is absent."""
        length, share = self.length_share(region), self.share(region)
        return None if length is None or share is None else share / length

    def parity_grid(self, region: Region) -> Grid | None:
        length = self.length_share(region)
        if length is None:
            return None
        return tuple(tuple(value / length for value in row) for row in self.shares[region])


def attention_of(
    regions: Sequence[Region | None], masses: Sequence[Sequence[Mapping[Region | None, float]]]
) -> Attention:
    """``regions`` names every token of the request; ``masses`` has for each layer and head the
    attention that fell on each region, ``None`` standing for all else."""
    tokens = {region: sum(item is region for item in regions) for region in Region}
    if not any(tokens.values()):
        raise InternalBug("a request without a real token")
    shares: dict[Region, Grid] = {}
    real = [[sum(head.get(r, 0.0) for r in Region) for head in layer] for layer in masses]
    for region in Region:
        shares[region] = tuple(
            tuple(
                head.get(region, 0.0) / whole if whole > 0 else 0.0
                for head, whole in zip(layer, wholes, strict=True)
            )
            for layer, wholes in zip(masses, real, strict=True)
        )
    heads = [head for layer in masses for head in layer]
    on_all = sum(sum(head.values()) for head in heads)
    outside = sum(head.get(None, 0.0) for head in heads) / on_all if on_all > 0 else 0.0
    return Attention(tokens, shares, outside)
