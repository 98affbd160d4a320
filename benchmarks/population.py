"""Scripted subjects to try the verdict on: the reference executor misbehaving.

What each one does wrong, and where, is written in its name; whether paging harms or helps it
is measured by running every case, not assumed. They are no language models: what a check finds
out about a real one stands behind its own figures only.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sopilot.agent.reference.judging import PredicateJudge
from sopilot.program.model import Program
from sopilot.protocols import Model, ModelReply, ModelRequest
from sopilot.tasks.task import Task
from sopilot.views.moves import Shown
from sopilot_lab.experiments.entrants import Contestant, Party
from sopilot_lab.experiments.misbehaviour import SWITCHES, Misbehaving, Misbehaviour
from sopilot_lab.experiments.run_folder import RecordedRun
from sopilot_lab.experiments.trial import TrialRunner
from sopilot_lab.qualification.paging_decision import Verdict, decide
from sopilot_lab.qualification.plan import (
    RehearsedCases,
    arm_configuration,
    kind_of,
    planned,
    run_budgets,
)
from sopilot_lab.qualification.probe import Cursor, ProbeGrade, grade, spread
from sopilot_lab.qualification.rule import FLAT, OFFICIAL, PAGED, PROSE
from sopilot_lab.sopbench.tasks import OwnReference, own_references
from sopilot_lab.statistics.outcomes import TaskKind

LONG = 15_000
"""Characters: more than any paged request of the bundled desks, less than any with a whole
handbook in it."""
SIMULATED_ARMS = (OFFICIAL, PROSE, FLAT, PAGED)


@dataclass(frozen=True, slots=True)
class Subject:
    """``anywhere`` holds for every arm but those in ``by_arm``."""

    name: str
    says: str
    anywhere: Misbehaviour = field(default_factory=Misbehaviour)
    by_arm: Mapping[str, Misbehaviour] = field(default_factory=dict)
    sense: float = 1.0
    """The share of the probe's questions that it answers rightly."""

    def behaves(self, arm: str) -> bool:
        """Nothing can go wrong under this arm, whatever the seed: the run is the reference
        executor's, and need not be made again."""
        misbehaviour = self.by_arm.get(arm, self.anywhere)
        if not any(getattr(misbehaviour, switch) for switch in SWITCHES):
            return True
        paged = arm == PAGED
        return (misbehaviour.only_when_paged and not paged) or (
            misbehaviour.only_when_long >= LONG and paged
        )

    def model(self, case: Task, arm: str, seed: int) -> Model:
        # Every run has its own luck: texts that mean the same are read anew. One luck for all
        # cases would make every seed another subject, paged well or badly as a whole.
        own = zlib.crc32(f"{seed} {arm} {case.key}".encode())
        misbehaviour = replace(self.by_arm.get(arm, self.anywhere), seed=own)
        reference = Misbehaving(case.reader, misbehaviour, name=self.name)
        if arm in (OFFICIAL, PROSE):
            return ReadsProse(reference, case.briefing.programs)
        return reference

    def answer(self, cursor: Cursor, chance: random.Random) -> str:
        """Answer a question of the probe with the right step or, without sense, a wrong step."""
        operation, name = min(cursor.licensed)
        right = chance.random() < self.sense
        return json.dumps(
            {
                "function": cursor.function,
                "step": cursor.step if right else f"after {cursor.step}",
                "results": dict(cursor.results),
                "callers": list(cursor.callers),
                "next": {"operation": operation, "name": name},
            }
        )


class ReadsProse:
    """The reference executor, which can't read prose, with the programs that the prose tells."""

    def __init__(self, reference: Model, programs: Mapping[str, Program]) -> None:
        self._reference, self._programs = reference, programs

    @property
    def name(self) -> str:
        return self._reference.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        assert isinstance(request.shown, Shown)
        shown = replace(request.shown, programs=self._programs)
        return await self._reference.complete(replace(request, shown=shown))


SUBJECTS: Sequence[Subject] = (
    Subject("disciplined", "does what the program says, however it is shown"),
    Subject(
        "slips-rarely",
        "skips one check in two thousand, however it is shown",
        Misbehaviour(skip_check=0.0005),
    ),
    Subject(
        "looks-again-everywhere",
        "now and then calls a tool after the goal, however it is shown",
        Misbehaviour(over_verify=0.05),
    ),
    Subject(
        "careless-everywhere",
        "skips checks, however it is shown",
        Misbehaviour(skip_check=0.03),
    ),
    Subject(
        "guesses-a-little-when-paged",
        "returns a few verdicts without evidence, only when paged",
        Misbehaviour(return_without_evidence=0.04, only_when_paged=True),
    ),
    Subject("cannot-say-where", "does everything right, and cannot say where it stands", sense=0.1),
    Subject(
        "gives-up-everywhere",
        "gives up at the first check or soon after, however it is shown",
        Misbehaviour(refuse_wrongly=0.8),
    ),
    Subject(
        "over-verifies-paged",
        "goes on calling tools after the goal, only when paged",
        Misbehaviour(over_verify=0.5, only_when_paged=True),
    ),
    Subject(
        "forgets-the-frame",
        "calls tools that have nothing to do with the frame, only when paged",
        Misbehaviour(ignore_frame=0.25, only_when_paged=True),
    ),
    Subject(
        "guesses-when-paged",
        "returns verdicts without evidence, only when paged",
        Misbehaviour(return_without_evidence=0.06, only_when_paged=True),
    ),
    Subject(
        "refuses-too-much",
        "gives up without a reason, at every check that it is about to make",
        Misbehaviour(refuse_wrongly=0.05),
    ),
    Subject(
        "skips-when-long",
        "skips checks when the text is long",
        Misbehaviour(skip_check=0.08, only_when_long=LONG),
    ),
    Subject(
        "careless-less-when-paged",
        "skips checks everywhere, and fewer of them when paged",
        Misbehaviour(skip_check=0.10),
        by_arm={PAGED: Misbehaviour(skip_check=0.01)},
    ),
    Subject(
        "careless-more-when-paged",
        "skips checks everywhere, and guesses as well when paged",
        Misbehaviour(skip_check=0.03),
        by_arm={PAGED: Misbehaviour(skip_check=0.03, return_without_evidence=0.02)},
    ),
    Subject(
        "guesses-when-long",
        "returns verdicts without evidence when the text is long",
        Misbehaviour(return_without_evidence=0.08, only_when_long=LONG),
    ),
    Subject(
        "skips-official-text",
        "skips checks of the official text alone",
        by_arm={OFFICIAL: Misbehaviour(skip_check=0.06)},
    ),
    Subject(
        "skips-when-long-over-verifies",
        "skips checks when the text is long, and goes on after the goal when paged",
        Misbehaviour(skip_check=0.05, only_when_long=LONG),
        by_arm={PAGED: Misbehaviour(over_verify=0.5)},
    ),
)


class Laboratory:
    """Runs subjects on cases. Runs that no seed can change are made once."""

    def __init__(self, cases: Sequence[Task], rehearsal: RehearsedCases) -> None:
        self._cases = own_references(cases)
        own = {
            str(each): replace(case, budgets=run_budgets(rehearsal.turns[str(each)]))
            for each, case in self._cases.items()
        }
        self._playing: tuple[Subject, int] = (SUBJECTS[0], 0)

        def play(who: Contestant, reader: PredicateJudge, about: Mapping[str, str]) -> Model:
            subject, seed = self._playing
            return subject.model(own[about["task"]], about["arm"], seed)

        self._runners = {
            arm: TrialRunner(
                arm_configuration("subject", arm),
                None,
                Party(Contestant("subject"), own=own),
                play=play,
            )
            for arm in SIMULATED_ARMS
        }
        self._behaved: dict[tuple[OwnReference, str], RecordedRun] = {}
        self._questions = spread(rehearsal.cursors)

    async def run(self, subject: Subject, case: OwnReference, arm: str, seed: int) -> RecordedRun:
        if subject.behaves(arm) and (case, arm) in self._behaved:
            return self._behaved[case, arm]
        self._playing = subject, seed
        runner = self._runners[arm]
        record = (await runner.run(case)).record
        executes = kind_of(self._cases[case]) is TaskKind.EXECUTE
        run = RecordedRun(record, runner.configuration, executes)
        if subject.behaves(arm):
            self._behaved[case, arm] = run
        return run

    async def check(self, subject: Subject, *, seed: int, count: int) -> tuple[Verdict, int]:
        """One whole check on ``count`` cases drawn by the seed, and the requests it used."""
        drawn = list(self._cases.values())
        random.Random(seed).shuffle(drawn)
        plan = own_references(planned(drawn, count))
        runs = [await self.run(subject, case, arm, seed) for case in plan for arm in SIMULATED_ARMS]
        used = sum(run.record.attempts for run in runs)
        return decide(subject.name, runs, self.grades(subject, seed), planned=len(plan)), used

    def grades(self, subject: Subject, seed: int) -> list[ProbeGrade]:
        """The probe: as many questions as a check asks."""
        chance = random.Random(seed)
        return [grade(question, subject.answer(question, chance)) for question in self._questions]

    async def truth(self, subject: Subject, seeds: Sequence[int]) -> dict[str, list[RecordedRun]]:
        """Every case under ``flat`` and ``pg`` with every seed: what the subject really does."""
        return {
            arm: [
                await self.run(subject, case, arm, seed) for seed in seeds for case in self._cases
            ]
            for arm in (FLAT, PAGED)
        }
