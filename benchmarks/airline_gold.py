"""Every gold action of τ-bench's fifty airline tasks, replayed with its reads through the guard.

    python benchmarks/airline_gold.py [--json FILE]

Prints a row for every gold action that changes something (or hands over): licensed, or the rule
that it breaks. What is not licensed must stand in ``WHY``, with why gold and policy disagree, and
what stands there must not be licensed: otherwise the command exits 1.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from campaign import main

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from airline.checkout import find_checkout, load_data, load_tasks, load_tools  # noqa: E402
from airline.guarded import Attempt, airline_source, attempt, copied  # noqa: E402
from airline.simulator import AirlineTools  # noqa: E402

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
    (
        "34",
        5,
    ): "no insurance, not business, booked two weeks ago: an upgrade to economy is no ground",
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


def measure(only: list[str]) -> dict[str, Any]:
    """All tasks, or only those with these numbers."""
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


if __name__ == "__main__":
    main(__doc__, measure, only=[])
