"""The official arms against SOPBench's own text, on all of its tasks.

    python benchmarks/official_wording.py [--domain NAME] [--json FILE]

Exits 1 unless every text is upstream's byte for byte and every sentence corresponds.
"""

from __future__ import annotations

from typing import Any

from campaign import main
from sopilot_lab.experiments.selection import select_tasks
from sopilot_lab.sopbench.process import shared_upstream
from sopilot_lab.sopbench.wording import check_official


def measure(domain: str) -> dict[str, Any]:
    upstream = shared_upstream()
    report = check_official(select_tasks(domain, upstream), "official", upstream)
    commit = upstream.checkout.commit
    return {"passed": report.holds, **report.as_json(), "upstream_commit": commit}


if __name__ == "__main__":
    main(__doc__, measure, domain="all")
