"""The tasks that a discipline check runs: of every example, or of a handbook of one's own."""

from __future__ import annotations

from sopilot.runner.sources import ExampleSource, open_source
from sopilot.tasks.example_tasks import example_tasks
from sopilot.tasks.examples.example import bundled_names
from sopilot.tasks.scenario_tasks import scenario_task
from sopilot.tasks.task import Task
from sopilot_lab.qualification.plan import checkable


def check_cases(source: str | None, scenarios: str | None, *, whole: bool) -> list[Task]:
    found: list[Task] = []
    for name in bundled_names() if source is None else (source,):
        opened = open_source(name)
        if isinstance(opened, ExampleSource) and scenarios is None:
            # The natural audit (R2) counts the calls after the goal; they must not count twice.
            found += example_tasks(opened.example, opened.briefing(), late_calls_fail=False)
            continue
        cure = "a check needs cases: write scenarios (see `sopilot new`), or name --scenarios"
        path = opened.existing_scenarios(scenarios, cure)
        briefing = opened.briefing()
        found += [scenario_task(one, briefing) for one in opened.scenarios(path)]
    return checkable(found, whole_handbook=whole)
