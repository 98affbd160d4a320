"""A shard on Inspect AI (extra ``bench``): its logs, viewer and limits around our loop.

Our loop is the solver, the official evaluator the scorer. The transcript shows
every frame, operation, call and finding as it happens.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from sopilot.lab.bench._inspect_model import inspect_message
from sopilot.lab.bench._run_folder import RecordWriter, RunFolder
from sopilot.lab.bench._shard import MOST_ATTEMPTS, Seen, Shard, keep
from sopilot.lab.bench._trial import Trial, TrialRunner
from sopilot.lab.bench.record import BenchRecord
from sopilot.lab.bench.reference import TaskReference
from sopilot.lab.bench.sopbench_process import Upstream
from sopilot.language.diagnostics import SopilotError
from sopilot.runtime.agent import Progress

_SHOWN_RESULT = 4_000
_SOURCES = {
    "step": "operation",
    "call": "domain call",
    "result": "domain result",
    "held": "held call",
}


def run_in_inspect(shard: Shard, upstream: Upstream, seen: Seen) -> int:
    """How many tasks have no record afterwards."""
    folder = RunFolder.open(shard.folder)
    runner = TrialRunner(shard.configuration, upstream, keep_traces=shard.keep_traces)
    judged: dict[str, BenchRecord] = {}
    stopped: list[SopilotError] = []
    with folder.writer() as writer:
        made = _task(shard, runner, folder, writer, seen, judged, stopped)
        inspect_eval(
            made,
            model="none/none",
            log_dir=str(folder.logs),
            log_format="eval",
            log_realtime=False,  # our own records survive a kill; this saves a database a run
            log_buffer=1,
            max_samples=shard.at_once,
            display="none",
            fail_on_error=True,  # what escapes a run concerns all of them
            metadata={
                "fingerprint": shard.configuration.fingerprint,
                **shard.configuration.as_json(),
            },
        )
    if stopped:
        raise stopped[0]
    return len(shard.references) - len(judged)


def _task(
    shard: Shard,
    runner: TrialRunner,
    folder: RunFolder,
    writer: RecordWriter,
    seen: Seen,
    judged: dict[str, BenchRecord],
    stopped: list[SopilotError],
) -> Task:
    references = {_sample_id(each): each for each in shard.references}
    configuration = shard.configuration

    @solver
    def sopilot_loop() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            reference = references[str(state.sample_id)]
            for _ in range(MOST_ATTEMPTS):
                try:
                    trial = await _watched(runner, reference)
                except SopilotError as error:
                    stopped.append(error)
                    raise
                keep(trial, folder, writer, seen)
                if not trial.record.discarded:
                    judged[str(state.sample_id)] = trial.record
                    _tell(state, trial)
                    return state
            return state

        return solve

    @scorer(metrics=[accuracy(), stderr()])
    def official_evaluator() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            record = judged.get(str(state.sample_id))
            if record is None:
                return Score.unscored(explanation="the infrastructure broke every run")
            return Score(
                value="C" if record.passed else "I",
                answer=record.ending,
                explanation=_explained(record),
                metadata=record.as_json(),
            )

        return score

    @task(name=f"sopbench_{configuration.arm}_{configuration.tools}".replace("-", "_"))
    def sopbench() -> Task:
        samples = [
            Sample(
                id=_sample_id(each),
                input=f"{each}",
                target="the official evaluator",
                metadata={"domain": each.domain, "goal": each.goal},
            )
            for each in shard.references
        ]
        return Task(
            dataset=MemoryDataset(samples, name="SOPBench"),
            solver=sopilot_loop(),
            scorer=official_evaluator(),
        )

    return sopbench()


def _sample_id(reference: TaskReference) -> str:
    """The viewer puts it into an address, where `/` and `#` mean something else."""
    return f"{reference.domain}.{reference.goal}.{reference.index}"


async def _watched(runner: TrialRunner, reference: TaskReference) -> Trial:
    """One run, every step of it in the transcript."""
    async with span("run"):
        trial = await runner.run(reference, watch=_show)
    async with span("audit"):
        for finding in trial.findings:
            transcript().info(dict[str, Any](finding.as_json()), source="finding")
        if not trial.findings:
            transcript().info("The audit has nothing to say.", source="findings")
    return trial


def _show(progress: Progress) -> None:
    if progress.kind == "request":
        if progress.slot:
            transcript().info(_fenced(progress.slot), source="frame")
        return
    text = progress.text
    if len(text) > _SHOWN_RESULT:
        text = f"{text[:_SHOWN_RESULT]}…"
    transcript().info(_fenced(text), source=_SOURCES.get(progress.kind, progress.kind))


def _fenced(text: str) -> str:
    """Markdown would swallow a program's indentation."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _tell(state: TaskState, trial: Trial) -> None:
    if trial.result is not None:
        state.messages = [inspect_message(each) for each in trial.result.messages]
    state.output.completion = trial.record.reason or trial.record.ending
    state.completed = True


def _explained(record: BenchRecord) -> str:
    verdict = record.verdict or {}
    lines = [f"- {key}: {value}" for key, value in verdict.items()]
    found = ", ".join(f"{code} ×{count}" for code, count in (record.findings or {}).items())
    return "\n".join([*lines, f"- findings: {found or 'none'}", f"- R2: {record.r2}"])
