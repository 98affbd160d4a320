"""What the lens saw, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from sopilot.values.text import table
from sopilot_lab.lens.report import Summary


def summary_lines(summary: Summary) -> Iterator[str]:
    rows = [
        (
            line.region,
            line.presentation,
            line.moments,
            f"{100 * line.length_share:.1f}%",
            f"{100 * line.attention_share:.1f}%",
            f"{line.parity:.2f}",
        )
        for line in summary.lines
    ]
    header = ("region", "presented", "moments", "length", "attention", "parity")
    yield table(rows, header)
    yield (
        f"\n{100 * summary.outside:.0f}% of the attention is on the template's own tokens and "
        "left out."
    )
    yield "\nChange of the right move's log-probability without …"
    changed = [(name, n, f"{change:+.2f}") for name, (n, change) in summary.removed.items()]
    yield table(changed, ("region", "moments", "nats"))
