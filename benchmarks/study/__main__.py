"""Every figure of the study beside ours, with the status that comes of comparing them.

    python benchmarks/study [--only WHERE] [--write] [--json FILE]

Prints how many claims have which status, and with `--only` the claims of one place of the paper
(`tab:models`, `sec:threshold`). `--write` puts the table into docs/research/study.md. Exits 1 if a
figure differs and no reason is given. Without a SOPBench checkout the claims about it are not
computed, and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import NO_CHECKOUT, Judged, judge
from measured import measured_claims
from printed import printed_claims

from campaign import main
from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import find_checkout

PAGE = Path(__file__).resolve().parents[2] / "docs" / "research" / "study.md"
BEGIN = "<!-- python benchmarks/study --write -->"
END = "<!-- end -->"


def measure(only: str, write: bool) -> dict[str, Any]:
    """Judge the claims whose place begins with ``only``; write the page if they are all of them."""
    judged = all_judged(only)
    if only:
        print(table(judged))
    for each in judged:
        if not each.explained:
            print(f"unexplained: {each.claim.where}, {each.claim.what}: {each.claim.paper} there, "
                  f"{each.ours} here", file=sys.stderr)  # fmt: skip
    explained = bool(judged) and all(each.explained for each in judged)
    passed = explained and (bool(only) or all(each.status != NO_CHECKOUT for each in judged))
    if write and passed and not only:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{table(judged)}\n{END}{after}", "utf-8")
    rows = [
        {"where": each.claim.where, "what": each.claim.what, "paper": each.claim.paper,
         "ours": each.ours, "command": each.claim.shown_command, "status": each.status}
        for each in judged
    ]  # fmt: skip
    statuses = Counter(status_word(each.status) for each in judged)
    return {
        "passed": passed,
        "claims": len(rows),
        "statuses": dict(statuses.most_common()),
        "rows": rows,
    }


def all_judged(only: str = "") -> list[Judged]:
    try:
        find_checkout()
        checkout = True
    except UserMistake:
        checkout = False
    claims = (*printed_claims(), *measured_claims())
    return [judge(each, checkout=checkout) for each in claims if each.where.startswith(only)]


def status_word(status: str) -> str:
    for word in ("differs because", "stale", "missing"):
        if status.startswith(word):
            return f"{word} …"
    return status


def table(judged: Sequence[Judged]) -> str:
    lines = ["| where | claim | study | ours | command | status |", "|---|---|---|---|---|---|"]
    for each in judged:
        claim, command = each.claim, each.claim.shown_command
        shown = command if command == "–" else f"`{command}`"
        cells = (claim.where, claim.what, claim.paper, each.ours, shown, each.status)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(__doc__, measure, only="", write=False)
