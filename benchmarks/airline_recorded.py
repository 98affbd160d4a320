"""The 200 recorded GPT-4o runs of τ-bench's airline, audited by the handbook.

    python benchmarks/airline_recorded.py [--json FILE]

A table of findings against the benchmark's own reward, and every `cancel_reservation` with the
grounds that the recorded answers show. The audit reads calls and answers alone; what users told
(``REASONS``) is read from the dialogs by hand. ``airline_read_by_hand.yaml`` has judgements that
a person has checked: one that the audit now judges otherwise makes this exit 1.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from campaign import main

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from airline.checkout import find_checkout  # noqa: E402
from airline.guarded import airline_source  # noqa: E402
from airline.simulator import NOW  # noqa: E402
from sopilot.audit.report import Report  # noqa: E402
from sopilot.audit.transcript_files import (  # noqa: E402
    Transcript,
    read_messages,
)
from sopilot.audit.transcript_reading import Reading  # noqa: E402
from sopilot.audit.transcripts import audit_transcript  # noqa: E402
from sopilot.handbook.consent import assent  # noqa: E402
from sopilot.handbook.expressions import judge  # noqa: E402
from sopilot.handbook.model import Handbook  # noqa: E402
from sopilot.handbook.requirements import (  # noqa: E402
    Leaf,
    Name,
)

RECORDED = "historical_trajectories/gpt-4o-airline.json"
REASONS = {"1.1": "health"}
"""Run → the reason that its user gives for cancelling. All others change plans, or name none."""
GROUNDS = ("just_booked", "in_business", "insured", "ahead", "in_force")


def audited(
    handbook: Handbook, name: str, messages: list[dict[str, Any]]
) -> tuple[Transcript, Report]:
    effects = frozenset(procedure.action for procedure in handbook.procedures.values())
    transcript = read_messages(messages, effects=effects)
    statements = {"reason": REASONS.get(name, "change of plan")}
    users = [call for call in transcript.calls if call.action == "get_user_details" and call.ok]
    if users and users[-1].arguments:
        statements["user_id"] = users[-1].arguments["user_id"]
    transcript = replace(transcript, values=statements, now=NOW)
    return transcript, audit_transcript(handbook, transcript, goal=None, judge=judge)


def cancellations(
    handbook: Handbook, name: str, transcript: Transcript, report: Report, run: dict[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for call in transcript.calls:
        if call.action != "cancel_reservation":
            continue
        reading = Reading(handbook, judge, now=NOW)
        reading.calls.extend(earlier for earlier in transcript.calls if earlier.seq < call.seq)
        values = dict(call.arguments)
        known = reading.known(values)
        shown = {
            ground: known(Leaf(ground, (("reservation_id", Name("reservation_id")),)))
            for ground in GROUNDS
        }
        findings = [finding for finding in report.findings if finding.seq == call.seq]
        rows.append(
            {
                "run": name,
                "reservation": values.get("reservation_id"),
                "reason": REASONS.get(name, "change of plan"),
                "grounds": shown,
                "findings": sorted({finding.code for finding in findings}),
                "judgement": judgement(shown, call.ok, [finding.code for finding in findings]),
                "last_word": last_word(run["traj"], call.message),
                "reward": run["reward"],
            }
        )
    return rows


def judgement(shown: dict[str, bool | None], ok: bool, codes: list[str]) -> str:
    """By the grounds of the policy, on what was read; that it was read before another change
    stands among the findings."""
    codes = [code for code in codes if code != "evidence-stale"]
    if not ok:
        return "turned away by the tool"
    if "executed-against-condition" in codes:
        return (
            "against the policy: flown"
            if shown["ahead"] is False
            else "against the policy: no ground"
        )
    if codes and shown["ahead"] is False:
        return "flown by its dates, and nothing shown against it"
    if codes:
        return "not checked"
    if shown["just_booked"]:
        return "allowed: booked within a day"
    if shown["in_business"]:
        return "allowed: business"
    return "allowed: insured, for the reason given"


def last_word(messages: list[dict[str, Any]], before: int) -> str:
    """The user's last message before the call, read as a confirmation."""
    words = read_messages(messages[:before]).user_messages
    return str(assent(words[-1].text)) if words else "nothing"


def read_by_hand() -> dict[tuple[str, int], tuple[str, str, str]]:
    """(run, number of the cancellation in it) → the judgement, right or wrong, and why."""
    text = (ROOT / "benchmarks" / "airline_read_by_hand.yaml").read_text("utf-8")
    return {
        (run, number): (action, how, why) for run, number, action, how, why in yaml.safe_load(text)
    }


def table(runs: dict[str, dict[str, Any]], reports: dict[str, Report]) -> dict[str, Any]:
    kinds: dict[str, Counter[str]] = {}
    for name, report in reports.items():
        side = "reward 1" if runs[name]["reward"] == 1 else "reward 0"
        for code in sorted({finding.code for finding in report.findings}) or ["nothing found"]:
            kinds.setdefault(code, Counter())[side] += 1
        broken = {finding.code for finding in report.findings} & {"executed-against-condition"}
        if broken:
            rules = {
                finding.predicate
                for finding in report.findings
                if finding.code == "executed-against-condition"
            }
            for rule in sorted(str(rule) for rule in rules):
                kinds.setdefault(f"  {rule}", Counter())[side] += 1
    return {kind: dict(counts) for kind, counts in sorted(kinds.items())}


def measure() -> dict[str, Any]:
    recorded = json.loads((find_checkout() / RECORDED).read_text("utf-8"))
    runs = {f"{run['task_id']}.{run['trial']}": run for run in recorded}
    handbook = airline_source().handbook
    # Whether the user said yes stands in a column of its own.
    plain = {name: replace(action, confirm=None) for name, action in handbook.actions.items()}
    unasked = replace(handbook, actions=plain)
    reports: dict[str, Report] = {}
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        transcript, reports[name] = audited(handbook, name, run["traj"])
        _, grounds = audited(unasked, name, run["traj"])
        rows += cancellations(unasked, name, transcript, grounds, run)
    findings = table(runs, reports)
    print(f"{'sessions with':45} reward 1  reward 0")
    for kind, counts in findings.items():
        print(f"{kind:45} {counts.get('reward 1', 0):8}  {counts.get('reward 0', 0):8}")
    numbers: Counter[str] = Counter()
    by_hand = read_by_hand()
    wrong = []
    for row in rows:
        number = numbers[row["run"]]
        numbers[row["run"]] += 1
        read = by_hand.get((row["run"], number))
        if read is not None:
            row["read_by_hand"], row["note"] = read[1:]
            if read[0] != row["judgement"]:
                wrong.append(row)
                print(f"read by hand as `{read[0]}`:")
        shown = f"{row['run']:>5} {row['reservation']} {row['judgement']:48}"
        line = f"yes={row['last_word']:5} reward {row['reward']:.0f}"
        print(f"{shown} {line}  {row.get('read_by_hand', '')}")
    judged = Counter(row["judgement"] for row in rows)
    return {
        "passed": not wrong,
        "runs": len(runs),
        "reward_1": sum(run["reward"] == 1 for run in runs.values()),
        "clean": sum(report.clean is True for report in reports.values()),
        "not_judged": sum(report.clean is None for report in reports.values()),
        "findings_against_reward": findings,
        "cancellations": len(rows),
        "judgements": dict(judged),
        "confirmed": sum(row["last_word"] == "yes" for row in rows),
        "read_by_hand": dict(Counter(row["read_by_hand"] for row in rows if "read_by_hand" in row)),
        "rows": rows,
    }


if __name__ == "__main__":
    main(__doc__, measure)
