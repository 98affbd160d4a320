from __future__ import annotations

import time

from sopilot.handbook.formatter import format_handbook
from sopilot.handbook.reader import load_handbook, read_handbook
from sopilot.handbook.writer import handbook_hash


def large(lines: int) -> str:
    parts = ["handbook: large", "actions:"]
    count = (lines - 5) // 10
    for at in range(count):
        parts.append(f"  read_{at}: {{input: {{user: string, amount: number}}}}")
        parts.append(f"  act_{at}: {{input: {{user: string, amount: number}}}}")
    parts.append("predicates:")
    for at in range(count):
        parts.append(f"  holds_{at}(user, amount):")
        parts.append(f"    says: The account of {{user}} covers {{amount}} by rule {at}.")
        parts.append(f"    verify: read_{at}(user, amount)")
        parts.append(f"    verdict: result.balance >= amount + {at}")
    parts.append("procedures:")
    for at in range(count):
        parts.append(f"  act_{at}:")
        parts.append("    requires:")
        parts.append(f"      - any: [holds_{at}(user, amount), holds_{at // 2}(user, amount)]")
        parts.append(f"      - not: holds_{at // 3}(user, 3)")
    return "\n".join(parts) + "\n"


def test_four_thousand_lines_read_in_seconds() -> None:
    text = large(4_000)
    start = time.process_time()
    handbook = load_handbook(text)
    handbook_hash(handbook)
    format_handbook(text)
    assert time.process_time() - start < 9
    assert len(handbook.procedures) > 390


def test_a_long_line_is_not_quadratic() -> None:
    text = "handbook: x\nsays: " + "word " * 300_000 + "\n"
    start = time.process_time()
    read_handbook(text)
    assert time.process_time() - start < 3
