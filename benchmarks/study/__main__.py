"""Every figure of the study beside ours, with the status that comes of comparing them.

    python benchmarks/study [--only WHERE] [--write] [--json FILE]

Prints how many claims have which status, and with `--only` the claims of one place of the paper
(`tab:models`, `sec:threshold`). `--write` puts the table into docs/research/study.md. Exits 1 if a
figure differs and no reason is given. Without a SOPBench checkout the claims about it are not
computed, and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import NO_CHECKOUT, Judged, judge
from measured import measured_claims
from printed import printed_claims

from sopilot.messages.errors import UserMistake
from sopilot_lab.sopbench.checkout import find_checkout

PAGE = Path(__file__).resolve().parents[2] / "docs" / "research" / "study.md"
BEGIN = "<!-- python benchmarks/study --write -->"
END = "<!-- end -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="claims whose place begins so")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/research/study.md"
    )
    parser.add_argument("--json", type=Path, help="also write the claims there")
    arguments = parser.parse_args()
    judged = all_judged(arguments.only)
    if arguments.only:
        print(table(judged))
    counts = Counter(status_word(each.status) for each in judged)
    for status, count in counts.most_common():
        print(f"{count:>4}  {status}")
    for each in judged:
        if not each.explained:
            print(f"unexplained: {each.claim.where}, {each.claim.what}: {each.claim.paper} there, "
                  f"{each.ours} here", file=sys.stderr)  # fmt: skip
    if arguments.only:
        return 0 if judged and all(each.explained for each in judged) else 1
    whole = all(each.explained and each.status != NO_CHECKOUT for each in judged)
    if arguments.json:
        rows = [
            {"where": each.claim.where, "what": each.claim.what, "paper": each.claim.paper,
             "ours": each.ours, "command": each.claim.shown_command, "status": each.status}
            for each in judged
        ]  # fmt: skip
        figures = {"claims": len(rows), "statuses": dict(counts), "rows": rows}
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        arguments.json.write_text(text + "\n", "utf-8")
    if arguments.write and whole:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page = f"{before}{BEGIN}\n{table(judged)}\n{END}{after}"
        PAGE.write_text(page, "utf-8")
    return 0 if whole else 1


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
    sys.exit(main())
