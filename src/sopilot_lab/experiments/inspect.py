"""A shard on Inspect AI (extra ``bench``): its logs, viewer and limits around our loop.

Our loop is the solver, the official evaluator the scorer. The transcript shows
every frame, operation, call and finding as it happens.

A model of Inspect's model layer behind our interface: ``--model inspect:openai/gpt-4o``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo, ToolParams
from inspect_ai.util import span
from tenacity import RetryError

from sopilot.agent.result import Progress
from sopilot.agent.retries import CONTEXT, ProviderError
from sopilot.messages.errors import RunEnded, SopilotError, UserMistake
from sopilot.models.http import RETRYABLE
from sopilot.models.wire import FILTERED, LONGEST_SHOWN, check_served, usable
from sopilot.protocols import (
    Message,
    ModelReply,
    ModelRequest,
    Served,
    ToolCall,
    ToolSchema,
    Usage,
    inputs_of,
    required_of,
)
from sopilot.values.json import JSON
from sopilot_lab.experiments.run_folder import BenchRecord, RunFolder
from sopilot_lab.experiments.sweep import Seen, Shard, Standing, run_and_record
from sopilot_lab.experiments.trial import Reference, Trial, TrialRunner
from sopilot_lab.sopbench.process import Upstream

_STOPPED = {"content_filter": FILTERED, "max_tokens": "length", "model_length": CONTEXT}


class InspectModel:
    """Retries are the loop's: Inspect's own are switched off. Given ``served``, an answer of
    any other model is a failure of the provider."""

    def __init__(self, name: str, *, served: str | None = None) -> None:
        try:
            self._model = get_model(name)
        except Exception as error:  # a key, a library or a provider that is not there
            message = getattr(error, "message", None) or error
            raise UserMistake(f"`inspect:{name}` cannot be used: {message}") from error
        self._served = served
        self.name = f"inspect:{name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        try:
            output = await self._model.generate(
                [inspect_message(each) for each in request.messages],
                tools=[_tool(each) for each in request.tools],
                config=GenerateConfig(
                    temperature=request.temperature,
                    seed=request.seed,
                    max_tokens=request.reply_tokens,
                    timeout=max(1, int(request.timeout_seconds)),
                    max_retries=0,
                ),
            )
            return self._read(output)
        except ProviderError:
            raise
        except Exception as error:  # a page of HTML fails in a library's inside, anyhow
            raise _failure(error) from error

    def _read(self, output: ModelOutput) -> ModelReply:
        usage = output.usage
        reason = _STOPPED.get(output.stop_reason, output.stop_reason)
        reply = ModelReply(
            output.message.text,
            _calls(output.message.tool_calls or ()),
            Usage(
                usage.input_tokens if usage else 0,
                (usage.input_tokens_cache_read or 0) if usage else 0,
                usage.output_tokens if usage else 0,
                (usage.reasoning_tokens or 0) if usage else 0,
            ),
            Served(finish_reason=reason, model=output.model),
        )
        if reason == CONTEXT:
            raise ProviderError("the request is too long", kind=CONTEXT, retryable=False)
        return check_served(usable(reply), self._served)


def _failure(error: Exception) -> ProviderError:
    """The failure by the endpoint's status, if the library reports it."""
    whole = error.last_attempt.exception() if isinstance(error, RetryError) else error
    status = getattr(whole, "status_code", None)
    message = f"{type(whole).__name__}: {str(whole)[:LONGEST_SHOWN]}"
    if isinstance(status, int) and status >= 400:
        passing = status >= 500 or status in RETRYABLE
        return ProviderError(message, kind=f"http-{status}", retryable=passing)
    late = "timeout" in type(whole).__name__.lower()
    return ProviderError(message, kind="timeout" if late else "provider")


def _arguments(text: str) -> dict[str, JSON]:
    """The model's arguments as an object, which is all that Inspect takes."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}


def _calls(calls: Sequence[InspectToolCall]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(call.id, call.function, json.dumps(call.arguments, ensure_ascii=False))
        for call in calls
    )


def _tool(tool: ToolSchema) -> ToolInfo:
    parameters = ToolParams.model_validate(
        {
            "type": "object",
            "properties": dict(inputs_of(tool)),
            "required": list(required_of(tool)),
        }
    )
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


def inspect_message(message: Message) -> ChatMessage:
    if message.role == "user":
        return ChatMessageUser(content=message.content)
    if message.role == "tool":
        return ChatMessageTool(
            content=message.content, tool_call_id=message.tool_call_id, function=message.name
        )
    if message.role == "assistant":
        calls = [
            InspectToolCall(id=call.id, function=call.name, arguments=_arguments(call.arguments))
            for call in message.tool_calls
        ]
        return ChatMessageAssistant(content=message.content, tool_calls=calls or None)
    return ChatMessageSystem(content=message.content)


_SHOWN_RESULT = 4_000
_SOURCES = {
    "step": "operation",
    "call": "domain call",
    "result": "domain result",
    "held": "held call",
}


def run_in_inspect(shard: Shard, upstream: Upstream | None, seen: Seen) -> None:
    folder = RunFolder.open(shard.folder)
    runner = TrialRunner(shard.configuration, upstream, shard.party)
    stopped: list[SopilotError] = []
    with folder.writer() as writer:
        standing = Standing(shard, runner, folder, writer, seen)
        made = _task(shard, runner, standing, stopped)
        (log,) = inspect_eval(
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
    if log.status == "cancelled":
        raise KeyboardInterrupt
    if log.status == "error":
        raise RunEnded(f"Inspect: {log.error.message if log.error else 'no reason given'}")


def _task(
    shard: Shard,
    runner: TrialRunner,
    standing: Standing,
    stopped: list[SopilotError],
) -> Task:
    references = {_sample_id(each): each for each in shard.references}
    judged: dict[str, BenchRecord] = {}
    configuration = shard.configuration

    @solver
    def sopilot_loop() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            reference = references[str(state.sample_id)]
            try:
                trial = await run_and_record(
                    reference, standing, lambda item: _watched(runner, item)
                )
            except SopilotError as error:
                stopped.append(error)
                raise
            if trial is not None:
                judged[str(state.sample_id)] = trial.record
                _tell(state, trial)
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


def _sample_id(reference: Reference) -> str:
    """The viewer puts it into an address, where `/` and `#` mean something else."""
    return str(reference).rpartition(":")[2].replace("/", ".").replace("#", ".")


async def _watched(runner: TrialRunner, reference: Reference) -> Trial:
    """One run, every step of it in the transcript."""
    async with span("run"):
        trial = await runner.run(reference, watch=_show)
    async with span("audit"):
        for finding in trial.findings:
            transcript().info(dict[str, Any](finding.as_json()), source="finding")
        if not trial.findings:
            transcript().info("The audit has no findings.", source="findings")
    return trial


def _show(progress: Progress) -> None:
    if progress.kind == "request":
        if progress.frame_text:
            transcript().info(_fenced(progress.frame_text), source="frame")
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
    join = ", ".join(f"{code} ×{count}" for code, count in (record.findings or {}).items())
    return "\n".join([*lines, f"- findings: {join or 'none'}", f"- R2: {record.r2}"])
