"""τ-bench's airline under the compiled handbook: gold actions, every reservation, recorded runs.

    python benchmarks/airline_desk.py gold [--only TASK …] [--json FILE]
    python benchmarks/airline_desk.py agreement [--every 1] [--sample 60] [--json FILE]
    python benchmarks/airline_desk.py recorded [--json FILE]

`gold` replays every gold action of the fifty tasks, with its reads, through the guard. An action
that isn't licensed must stand in ``WHY``, with why gold and policy disagree, and what stands there
must not be licensed: otherwise it exits 1.

`agreement` compares the handbook with the policy as plain functions (tests/examples/
airline_policy.py), which were written from the policy's text before there was a handbook: every
reservation × cabin × insurance × tier, cancelling for every reason, changing in nine ways with
every payment method, compensating for every flight, adding bags. A sample of cancellations goes
through the whole machine, with guard and audit, as well.

`recorded` audits the 200 recorded GPT-4o runs: findings against the benchmark's own reward, and
every `cancel_reservation` with the grounds that the recorded answers show. The audit reads calls
and answers alone; what users said (``REASONS``) is read from the dialogs by hand.
``airline_read_by_hand.yaml`` has judgements that a person has checked: if the audit now judges one
otherwise, it exits 1.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from campaign import parts

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests" / "examples")]

import airline_policy as policy  # noqa: E402  # found through the paths above
from airline_agreement import LOCAL_NOW, Agreement  # noqa: E402

from airline.checkout import find_checkout, load_data, load_tasks, load_tools  # noqa: E402
from airline.guarded import Attempt, airline_source, attempt, copied  # noqa: E402
from airline.simulator import NOW, AirlineTools  # noqa: E402
from sopilot.audit.report import Report  # noqa: E402
from sopilot.audit.transcript_files import Transcript, read_messages  # noqa: E402
from sopilot.audit.transcript_reading import Reading  # noqa: E402
from sopilot.audit.transcripts import audit_transcript  # noqa: E402
from sopilot.handbook.expressions import judge  # noqa: E402
from sopilot.handbook.model import Handbook  # noqa: E402
from sopilot.handbook.requirements import Leaf, Name  # noqa: E402
from sopilot.handbook.yes_or_no import assent  # noqa: E402

# --- gold actions ---------------------------------------------------------------------

READS = {
    "calculate", "get_reservation_details", "get_user_details", "list_all_airports",
    "search_direct_flight", "search_onestop_flight", "think",
}  # fmt: skip

# The users' statements in these tasks, read from their instructions: the reason of a
# cancellation (others want to change plans), and the subject of a complaint.
STATED = {"1": "health"}
COMPLAINTS = {
    "16": ("compensate_delayed", "HAT039"),
    "45": ("compensate_delayed", ""),
    "46": ("compensate_delayed", ""),
}
_NO_GROUND = (
    "booked more than a day ago, not business, and neither health nor weather is given as the "
    "reason: gold cancels what the policy keeps"
)
_STALE_CABIN = (
    "the upgrade to economy just before leaves `basic_economy` in the record (the tool does not "
    "write the cabin): gold goes by the upgrade, the guard by the record"
)
_NOTHING_SETTLED = (
    "for a delay the policy wants the reservation changed or cancelled first, and gold does neither"
)
# task, number of the action → why gold and policy disagree
WHY: dict[tuple[str, int], str] = {
    ("4", 2): _STALE_CABIN,
    ("5", 2): _STALE_CABIN,
    ("10", 0): "economy without insurance, booked two weeks ago: gold cancels, the policy does not",
    ("16", 1): _NOTHING_SETTLED,
    ("19", 1): "gold flies to JFK in place of LGA: the policy keeps origin and destination",
    ("19", 2): "a regular member has one free bag in economy: gold charges for it",
    ("22", 4): _STALE_CABIN,
    ("23", 4): "a gold member has three free bags in economy: gold charges for two",
    ("26", 0): "both flights are of the days before: the trip was flown, and gold cancels it",
    ("27", 0): "both flights are of the days before: the trip was flown, and gold cancels it",
    ("28", 10): _NO_GROUND,
    ("31", 6): _NO_GROUND,
    ("33", 16): _NO_GROUND,
    ("34", 5): "no insurance, not business, booked two weeks ago: an upgrade is no ground",
    ("34", 6): _NO_GROUND,
    ("45", 2): _NOTHING_SETTLED,
    ("46", 3): _NOTHING_SETTLED,
}


class Replay:
    def __init__(self) -> None:
        home = find_checkout()
        self.source = airline_source()
        self.tools, self.data = load_tools(home), load_data(home)
        self.tasks = load_tasks(home)
        self.rows: list[dict[str, Any]] = []
        self.reads = 0

    async def task(self, number: int) -> None:
        simulation = AirlineTools(self.tools, self.data)
        task = self.tasks[number]
        for at, (name, arguments) in enumerate(task.actions):
            if name in READS:
                self.reads += 1
                simulation.perform(name, arguments)
                continue
            verdict = await self.judged(task.name, task.user_id, simulation, name, arguments)
            self.rows.append({"task": task.name, "at": at, "action": name, **verdict})
            simulation.perform(name, arguments)

    async def judged(
        self, task: str, user: str, simulation: AirlineTools, name: str, gold: dict[str, Any]
    ) -> dict[str, Any]:
        if name == "transfer_to_human_agents":
            # Nothing is held back from a person: a model judges whether it is needed.
            return {"verdict": "not guarded", "procedure": "hand_over"}
        tried: list[tuple[str, Attempt]] = []
        for goal, knows, answers in self.ways(task, user, simulation, name, gold):
            done = await attempt(self.source, copied(simulation), goal, knows, answers)
            tried.append((goal, done))
            if done.licensed:
                break
        goal, done = tried[-1]
        row: dict[str, Any] = {"procedure": goal}
        if done.findings:
            row["findings"] = list(done.findings)
        if name == "cancel_reservation":
            row["reason"] = STATED.get(task, "change of plan")
        if done.made is None:
            broken = {goal: done.broken or (done.reason,) for goal, done in tried}
            return row | {"verdict": "not licensed", "broken": broken}
        other = {key: (done.made[key], gold[key]) for key in gold if done.made[key] != gold[key]}
        if other:
            differences = {
                key: f"policy {ours}, gold {theirs}" for key, (ours, theirs) in other.items()
            }
            return row | {"verdict": "not licensed", "broken": {goal: differences}}
        return row | {"verdict": "licensed"}

    def ways(
        self, task: str, user: str, simulation: AirlineTools, name: str, gold: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
        """The procedures that an action may have been meant as, with what the user knows."""
        arguments = {"user_id": user, **gold}
        if name == "book_reservation":
            del arguments["nonfree_baggages"]
            legs = self.legs(simulation, gold["flights"])
            return [(name, {**arguments, "legs": legs}, {"insurance_asked": gold["insurance"]})]
        if name == "update_reservation_flights":
            legs = self.legs(simulation, gold["flights"])
            return [
                ("change_cabin", arguments, {}),
                ("change_flights", {**arguments, "legs": legs}, {}),
            ]
        if name == "update_reservation_baggages":
            del arguments["nonfree_baggages"]
            return [("add_bags", arguments, {})]
        if name == "update_reservation_passengers":
            return [("change_passengers", arguments, {})]
        if name == "cancel_reservation":
            return [(name, {**arguments, "reason": STATED.get(task, "change of plan")}, {})]
        goal, flight = COMPLAINTS[task]
        del arguments["amount"]
        about = self.complained_of(simulation, user, flight)
        return [(goal, {**arguments, **about}, {})]

    def legs(self, simulation: AirlineTools, flights: list[dict[str, str]]) -> list[dict[str, str]]:
        known = simulation.data["flights"]
        return [
            {
                **flight,
                **{end: known[flight["flight_number"]][end] for end in ("origin", "destination")},
            }
            for flight in flights
        ]

    def complained_of(self, simulation: AirlineTools, user: str, flight: str) -> dict[str, str]:
        """The user's newest reservation with a flight of that number, or with one of today."""
        mine = [
            simulation.data["reservations"][reservation]
            for reservation in simulation.data["users"][user]["reservations"]
        ]
        for reservation in sorted(mine, key=lambda each: str(each["created_at"]), reverse=True):
            for leg in reservation["flights"]:
                if flight in ("", leg["flight_number"]) and leg["date"] <= "2024-05-15":
                    return {
                        "reservation_id": reservation["reservation_id"],
                        "flight_number": leg["flight_number"],
                        "date": leg["date"],
                    }
        return {"reservation_id": mine[-1]["reservation_id"], "flight_number": flight, "date": ""}


def line(row: dict[str, Any]) -> str:
    broken = "; ".join(f"{goal}: {_told(rules)}" for goal, rules in row.get("broken", {}).items())
    return f"{row['task']:>3}  {row['action']:30} {row['verdict']:13} {broken}"


def _told(rules: Any) -> str:
    if isinstance(rules, dict):
        return ", ".join(f"{key}: {value}" for key, value in rules.items())
    return ", ".join(rules)


def gold(only: list[str]) -> dict[str, Any]:
    """Replay the gold actions of all tasks, or of ``only`` those, through the guard."""
    replay = Replay()
    for number in map(int, only) if only else range(len(replay.tasks)):
        asyncio.run(replay.task(number))
    wrong = []
    for row in replay.rows:
        print(line(row), flush=True)
        why = WHY.get((row["task"], row["at"]))
        if (why is None) != (row["verdict"] != "not licensed"):
            wrong.append(row)
        if why is not None:
            row["why"] = why
            print(f"     {why}")
    counts = Counter((row["action"], row["verdict"]) for row in replay.rows)
    verdicts = Counter(row["verdict"] for row in replay.rows)
    return {
        "passed": not wrong,
        "tasks": len(replay.tasks),
        "reads": replay.reads,
        "actions": len(replay.rows),
        "licensed": verdicts["licensed"],
        "not_guarded": verdicts["not guarded"],
        "not_licensed": verdicts["not licensed"],
        "unexplained": len(wrong),
        "by_action": {f"{name}, {verdict}": n for (name, verdict), n in sorted(counts.items())},
        "rows": replay.rows,
    }


# --- every reservation ----------------------------------------------------------------

SHARD = 50


def airline_tools() -> AirlineTools:
    home = find_checkout()
    return AirlineTools(load_tools(home), load_data(home))


def shard(reservations: list[str]) -> tuple[dict[str, int], dict[str, int], list[str]]:
    checked = Agreement(airline_source().handbook, airline_tools())
    for reservation in reservations:
        checked.reservation(reservation)
    tally = checked.tally
    return dict(tally.cases), dict(tally.allowed), tally.differences


async def by_the_machine(count: int) -> tuple[int, int, list[str]]:
    """Cancellations through session, guard and audit: how many, how many licensed, and what
    came out otherwise than the policy has it."""
    source, tools = airline_source(), airline_tools()
    checked = Agreement(source.handbook, tools)
    rng = random.Random(17)
    licensed, wrong = 0, []
    for number in rng.sample(sorted(tools.data["reservations"]), count):
        record = tools.data["reservations"][number]
        case = policy.Case(
            record,
            tools.data["users"][record["user_id"]]["membership"],
            LOCAL_NOW,
            checked.on_sale(policy.segments(record)),
            reason=rng.choice(policy.REASONS),
            says_unflown=rng.random() < 0.5,
        )
        knows = {"user_id": record["user_id"], "reservation_id": number, "reason": case.reason}
        statement = {"said_unflown": "yes" if case.says_unflown else "no"}
        done = await attempt(source, copied(tools), "cancel_reservation", knows, statement)
        licensed += done.licensed
        if done.licensed != policy.may_cancel(case) or done.findings:
            wrong.append(f"{number} {case.reason} {case.says_unflown}: {done}")
    return count, licensed, wrong


def agreement(every: int, sample: int, workers: int) -> dict[str, Any]:
    """Compare handbook and plain functions; ``sample`` cases go through the whole machine."""
    started = time.monotonic()
    reservations = list(json.loads(load_data(find_checkout()))["reservations"])[::every]
    shards = [reservations[at : at + SHARD] for at in range(0, len(reservations), SHARD)]
    cases: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    differences: list[str] = []
    with ProcessPoolExecutor(workers) as pool:
        for made, permitted, problems in pool.map(shard, shards):
            cases.update(made)
            allowed.update(permitted)
            differences += problems
    count, licensed, wrong = asyncio.run(by_the_machine(sample))
    return {
        "passed": not (differences or wrong),
        "reservations": len(reservations),
        "cases": dict(cases),
        "allowed_by_policy": dict(allowed),
        "differences": len(differences),
        "first_differences": differences[:20],
        "by_the_whole_machine": {"cases": count, "licensed": licensed, "differences": wrong},
        "seconds": round(time.monotonic() - started),
    }


# --- recorded runs --------------------------------------------------------------------

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
    """Judge by the policy's grounds, from the values that were read, stale or not."""
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
        rules = {
            str(finding.predicate)
            for finding in report.findings
            if finding.code == "executed-against-condition"
        }
        for rule in sorted(rules):
            kinds.setdefault(f"  {rule}", Counter())[side] += 1
    return {kind: dict(counts) for kind, counts in sorted(kinds.items())}


def recorded() -> dict[str, Any]:
    """Audit the recorded runs."""
    stored = json.loads((find_checkout() / RECORDED).read_text("utf-8"))
    runs = {f"{run['task_id']}.{run['trial']}": run for run in stored}
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
    parts(
        __doc__,
        gold=(gold, {"only": []}),
        agreement=(agreement, {"every": 1, "sample": 60, "workers": 2}),
        recorded=(recorded, {}),
    )
