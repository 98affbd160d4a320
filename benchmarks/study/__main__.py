"""Every claim of the study beside our figure, with the status that comes of comparing them.

    python benchmarks/study [--write] [--json FILE]

Prints how many claims have which status. `--write` puts the table into docs/study.md. Exits 1 if
a figure differs and nobody said why. Without a SOPBench checkout the claims about it are not
computed, and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from claims import NO_CHECKOUT, Judged, judge
from measured import measured_claims
from printed import printed_claims

from sopilot.lab.bench import find_checkout
from sopilot.language.diagnostics import UserMistake

PAGE = Path(__file__).resolve().parents[2] / "docs" / "study.md"
BEGIN = "<!-- python benchmarks/study --write -->"
END = "<!-- end -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/study.md")
    parser.add_argument("--json", type=Path, help="also write the claims there")
    arguments = parser.parse_args()
    found = all_judged()
    counts = Counter(status_word(one.status) for one in found)
    for status, count in counts.most_common():
        print(f"{count:>4}  {status}")
    for one in found:
        if not one.explained:
            print(f"unexplained: {one.claim.where}, {one.claim.what}: {one.claim.paper} there, "
                  f"{one.ours} here", file=sys.stderr)  # fmt: skip
    whole = all(one.explained and one.status != NO_CHECKOUT for one in found)
    if arguments.json:
        rows = [
            {"where": one.claim.where, "what": one.claim.what, "paper": one.claim.paper,
             "ours": one.ours, "command": one.claim.command, "status": one.status}
            for one in found
        ]  # fmt: skip
        figures = {"claims": len(rows), "statuses": dict(counts), "rows": rows}
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        arguments.json.write_text(text + "\n", "utf-8")
    if arguments.write and whole:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page = f"{before}{BEGIN}\n{table(found)}\n{END}{after}"
        PAGE.write_text(page, "utf-8")
    return 0 if whole else 1


def all_judged() -> list[Judged]:
    try:
        find_checkout()
        checkout = True
    except UserMistake:
        checkout = False
    return [judge(claim, checkout=checkout) for claim in (*printed_claims(), *measured_claims())]


def status_word(status: str) -> str:
    return "differs because …" if status.startswith("differs because") else status


def table(found: Sequence[Judged]) -> str:
    lines = ["| where | claim | study | ours | command | status |", "|---|---|---|---|---|---|"]
    for one in found:
        claim = one.claim
        command = f"`{claim.command}`" if claim.command not in ("", "arithmetic") else claim.command
        cells = (claim.where, claim.what, claim.paper, one.ours, command or "–", one.status)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
