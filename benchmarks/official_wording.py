"""The official arms against SOPBench's own text, on all of its tasks.

    python benchmarks/official_wording.py [--domain NAME] [--json FILE]

Exits 1 unless every text is upstream's byte for byte and every sentence corresponds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.wording_check import check_official


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", default="all")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    upstream = shared_upstream()
    found = check_official(select_tasks(arguments.domain, upstream), "official", upstream)
    figures = found.as_json() | {"upstream_commit": upstream.checkout.commit}
    print(json.dumps(figures, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
