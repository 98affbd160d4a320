"""Inputs of an audit, sessions, trace files and transcripts, and how each is judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sopilot.audit.audit import audit_trace, judge_chain
from sopilot.audit.findings import Finding, NotJudged, Unjudgeable
from sopilot.audit.report import Report, batch, not_judged, simply_clean
from sopilot.audit.text import about_lines, render_batch_text, render_text
from sopilot.audit.timeline import Seal, about_session, entries_of
from sopilot.audit.transcript_files import Transcript, read_messages, success_first_outcome
from sopilot.audit.transcripts import audit_transcript, audit_untracked
from sopilot.compiler.action_facts import secret_names
from sopilot.files.text import read_text
from sopilot.handbook.expressions import judge
from sopilot.handbook.model import Handbook
from sopilot.machine.program_set import ProgramSet
from sopilot.machine.replay import program_changes
from sopilot.machine.secrets import SecretPlaces, has_all_contents, shown_events
from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import TraceError, UserMistake, mistake
from sopilot.program.model import Program
from sopilot.records.audits import stored_verdict
from sopilot.records.loading import export_trace
from sopilot.records.privacy import load_policy
from sopilot.records.store import SessionRecord, Store
from sopilot.runner.same_programs import others
from sopilot.runner.sources import compile_source, sopbench
from sopilot.runner.store_access import StoreAccess
from sopilot.trace.events import Event
from sopilot.trace.files import Problem, TraceFile, as_recorded, read_trace, verify_trace
from sopilot.trace.redaction import MASK, SecretTexts, mask, secrets_under, without_names
from sopilot.values.json import JSON, parts_of
from sopilot.values.text import Lines
from sopilot.views.catalogue import VIEWS

_DIALOG_TOOLS = frozenset({"exit_conversation", "n/a", "na", "none", "null"})


@dataclass(frozen=True, slots=True)
class Audited:
    """A report, with what its page shows beside it: the events, or the transcript. ``stored``: the
    session is in a store, where ``seal`` is the newest that covers it."""

    name: str
    report: Report
    events: Sequence[Event] = ()
    transcript: Transcript | None = None
    seal: Seal | None = None
    stored: bool = False


@dataclass(frozen=True, slots=True)
class TraceInput:
    """``handbook`` replaces programs that the trace lacks, and judges a session without a machine;
    ``goal`` is the user's. ``named``: the caller says that it ran by this handbook, so the
    programs that ran must be the handbook's.

    ``missing``: why contents of the session are missing; ``None`` if all are there. ``stored`` is
    the verdict of an audit that had them."""

    trace: TraceFile
    handbook: str | None
    ended: bool
    goal: str | None = None
    named: bool = False
    missing: Unjudgeable | None = Unjudgeable.NOT_IN_TRACE
    stored: Report | None = None
    in_store: bool = False
    seal: Seal | None = None

    def verify(self) -> list[Problem]:
        return verify_trace(self.trace)

    def audit(self) -> list[Audited]:
        """Report tampering with the file, too; then neither its payloads nor its programs count."""
        if self.missing is Unjudgeable.PRUNED:
            gone = not_judged(NotJudged(self.missing), self.trace.session_id)
            return [Audited(self._name, self.stored or gone)]
        problems = [item for item in self.verify() if item.code != "broken-chain"]
        if not problems:
            return [self._with_seal(self._judged())]
        touched = [
            Finding(
                "tampering", problem.index or 0, problem.message, details={"check": problem.code}
            )
            for problem in problems
        ]
        try:
            audited = replace(self, trace=as_recorded(self.trace))._judged()
        except UserMistake:
            missing = NotJudged(Unjudgeable.NO_PROGRAM)
            empty = audit_trace(
                {}, (), session_id=self.trace.session_id, chain=self.trace.events
            ).without_verdict(missing)
            audited = Audited(self._name, empty, [sealed.event for sealed in self.trace.events])
        report = audited.report.with_findings(touched)
        return [self._with_seal(replace(audited, report=report))]

    def _with_seal(self, audited: Audited) -> Audited:
        return replace(audited, seal=self.seal, stored=self.in_store)

    def _judged(self) -> Audited:
        trace = self.trace
        first = self._programs(trace.programs)
        places = SecretPlaces(ProgramSet(first))
        whole: list[Event] = shown_events(trace.events, trace.payloads, places)
        view = VIEWS.get(str(trace.about.get("view")))
        if self.missing is not None and not has_all_contents(trace.events, trace.payloads, places):
            report = self._without_contents(whole, self.missing)
            return Audited(self._name, report, whole)
        if view is not None and not view.machine:
            return self._untracked(whole)
        changes = {index: self._programs(hashes) for index, hashes in program_changes(whole)}
        report = audit_trace(
            first,
            whole,
            session_id=trace.session_id,
            judge=judge,
            changes=changes,
            ended=self.ended,
            # The chain is over the events as they were sealed; these may be restored ones.
            chain=trace.events,
        )
        if self.named and self.handbook is not None:
            strange = others(self.handbook, {0: first, **changes})
            report = report.with_findings(strange) if strange else report
        return Audited(self._name, report, whole)

    @property
    def _name(self) -> str:
        named = str(self.trace.about.get("handbook") or "")
        return named or ", ".join(self.trace.programs) or "session"

    def _without_contents(self, whole: list[Event], reason: Unjudgeable) -> Report:
        """The stored verdict, if there is one; the chain is checked here."""
        broken, unbroken = judge_chain(self.trace.events, self.trace.session_id, None)
        findings = [broken] if broken is not None else []
        if self.stored is None:
            return not_judged(
                NotJudged(reason), self.trace.session_id, chain=unbroken, findings=findings
            )
        card = replace(self.stored.score_card, chain=unbroken)
        stored = replace(self.stored, score_card=card)
        return stored.with_findings(findings) if findings else stored

    def _untracked(self, whole: list[Event]) -> Audited:
        if self.handbook is None:
            raise UserMistake(
                "the session's view didn't track the position: name the handbook to judge it by "
                "with --handbook"
            )
        units = compile_source(self.handbook, goal=self.goal)
        goal = self.goal or (units[0].procedure.name if len(units) == 1 else None)
        report = audit_untracked(
            units[0].handbook,
            whole,
            goal=goal,
            chain=self.trace.events,
            session_id=self.trace.session_id,
            judge=judge,
        )
        return Audited(goal or self._name, report, whole)

    def _programs(self, hashes: Mapping[str, str]) -> dict[str, Program]:
        texts = self.trace.program_texts
        if all(isinstance(digest, str) and digest in texts for digest in hashes.values()):
            return ProgramSet.from_texts(hashes, texts).programs
        if self.handbook is None:
            raise UserMistake("the trace came without its programs: name them with --handbook")
        units = compile_source(self.handbook)
        program_set = ProgramSet({unit.procedure.name: unit.program for unit in units})
        strange = [
            goal for goal, digest in hashes.items() if program_set.hashes.get(goal) != digest
        ]
        if strange:
            raise mistake(
                "other-program",
                f"`{strange[0]}` of `{self.handbook}` is not the program that ran",
                help="audit with the handbook as it was, or export the trace with programs",
            )
        return {goal: program_set.programs[goal] for goal in hashes}


@dataclass(frozen=True, slots=True)
class ForeignInput:
    """Transcripts, each with the handbook and the goal it is judged by."""

    transcripts: tuple[Row, ...]

    def audit(self) -> list[Audited]:
        return [
            _without_secrets(
                book,
                transcript,
                goal or book.name,
                audit_transcript(book, transcript, goal=goal, judge=judge, session_id=name),
            )
            for name, book, goal, transcript in self.transcripts
        ]


def _without_secrets(book: Handbook, transcript: Transcript, name: str, report: Report) -> Audited:
    """Judged with all values; shown without those of inputs that the handbook marks `secret`."""
    names = frozenset(secret_names(book))
    if not names:
        return Audited(name, report, transcript=transcript)
    exchanged = [item for call in transcript.calls for item in (call.arguments, call.value)]
    secrets = SecretTexts(secrets_under(names, [*exchanged, dict(transcript.values)]))

    def shown(value: JSON) -> JSON:
        return mask(without_names(value, names), secrets, data=True)

    calls = []
    for call in transcript.calls:
        arguments = shown(call.arguments)
        clear = arguments if isinstance(arguments, Mapping) else {}
        named = str(shown(call.action))
        action = book.actions.get(call.action)
        hidden = set(action.secrets) if action is not None else set()
        # Text may hold a secret field in a form that nobody can find.
        if hidden and not any(
            isinstance(part, Mapping) and part.keys() & hidden for part in parts_of(call.value)
        ):
            call = replace(call, value=MASK)
        calls.append(replace(call, action=named, arguments=clear, value=shown(call.value)))
    clear_transcript = replace(transcript, calls=tuple(calls))
    return Audited(name, report.with_texts(shown), transcript=clear_transcript)


@dataclass(frozen=True, slots=True)
class TranscriptFacts:
    """Facts that a transcript lacks: its time, and values that the user gave by name."""

    now: str = ""
    inputs: Mapping[str, JSON] = field(default_factory=dict)

    def added_to(self, transcript: Transcript) -> Transcript:
        return replace(transcript, now=self.now, values={**transcript.values, **self.inputs})


Row = tuple[str, Handbook, str | None, Transcript]
"""A transcript with its name, its handbook and its goal."""


def file_input(
    what: str, *, handbook: str | None, goal: str | None, facts: TranscriptFacts | None = None
) -> TraceInput | ForeignInput:
    """A trace file, or a transcript of any agent."""
    text = read_text(Path(what))
    if text.lstrip()[:200].startswith("{") and '"sopilot_trace"' in text.split("\n", 1)[0]:
        try:
            trace = read_trace(text)
        except TraceError as problem:
            cure = "`sopilot trace verify` shows which parts are intact"
            raise _mistake(what, f"this trace cannot be read: {problem}", cure) from None
        return TraceInput(trace, handbook, True, goal, named=handbook is not None)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        cure = (
            "a trace is written by `sopilot trace export`, a transcript is a JSON list of messages"
        )
        raise _mistake(what, "this is neither a trace nor JSON", cure) from None
    return transcript_input(what, content, handbook, goal, facts)


def read_input(
    what: str,
    access: StoreAccess,
    *,
    handbook: str | None,
    goal: str | None,
    facts: TranscriptFacts | None = None,
    secrets: bool = False,
) -> TraceInput | ForeignInput:
    """A file if there is one of that name, else a session of the store."""
    if Path(what).exists():
        return file_input(what, handbook=handbook, goal=goal, facts=facts)
    masked = not access.may_see("audit", [what])
    return access.read(
        lambda store: _sealed_input(
            store, what, handbook=handbook, goal=goal, masked=masked, secrets=secrets
        )
    )


async def _sealed_input(store: Store, session_id: str, **options: Any) -> TraceInput:
    """The session with its seal, which takes reading the whole log."""
    value = await session_input(store, session_id, **options)
    newest = (await store.records.seals())[-1:]
    log = await store.records.log() if newest else ()
    covered = [
        entry for seal in newest for entry in log[: seal.head.size]
        if entry.session_id == session_id and entry.seq >= 0
    ]  # fmt: skip
    seal = Seal(newest[0].head.at, covered[-1].seq) if covered else None
    return replace(value, in_store=True, seal=seal)


async def session_input(
    store: Store,
    session_id: str,
    *,
    handbook: str | None,
    goal: str | None,
    masked: bool = False,
    secrets: bool = False,
    known: dict[str, str] | None = None,
) -> TraceInput:
    """``masked`` leaves out the contents, for callers without the right to read them. ``secrets``
    includes secrets, for a model that reads the words once more. ``known`` are texts of programs,
    shared when many sessions are judged."""
    record = await store.record(session_id)
    missing = await _missing(store, record, masked=masked)
    stored = await stored_verdict(store, record) if missing is not None else None
    trace = (
        TraceFile(session_id, ())
        if record.is_pruned
        else await export_trace(
            store, session_id, payloads=not masked, secrets=secrets, known=known
        )
    )
    made = record.metadata.get("extra") or {}
    source, request = handbook or made.get("source"), goal or made.get("goal")
    return TraceInput(
        trace, source, not record.owner, request, handbook is not None, missing, stored
    )


async def _missing(store: Store, record: SessionRecord, *, masked: bool) -> Unjudgeable | None:
    """Why a reader doesn't have the contents of a session."""
    if record.is_pruned:
        return Unjudgeable.PRUNED
    if record.is_locked or record.is_erased:
        # Without its key a session looks erased; the journal says whether it was.
        erased = record.id in (await load_policy(store)).erased
        return Unjudgeable.ERASED if erased else Unjudgeable.NO_KEY
    return Unjudgeable.NO_RIGHTS if masked else None


def transcript_input(
    what: str,
    content: object,
    handbook: str | None,
    goal: str | None,
    facts: TranscriptFacts | None = None,
) -> ForeignInput:
    rows = _rows(what, content, handbook, goal)
    if facts is not None:
        rows = [(name, book, chosen, facts.added_to(item)) for name, book, chosen, item in rows]
    return ForeignInput(tuple(rows))


def _rows(what: str, content: object, handbook: str | None, goal: str | None) -> list[Row]:
    if isinstance(content, Mapping):
        held = [content.get(name) for name in ("messages", "items", "input", "output")]
        lists = [item for item in held if isinstance(item, list)]
        if len(lists) > 1:
            raise _mistake(what, "there are several lists of messages", "join them in their order")
        content = lists[0] if lists else content
    if not isinstance(content, list):
        raise _mistake(what, "this isn't a list of messages", "see `sopilot audit --help`")
    if content and isinstance(content[0], Mapping) and "interactions" in content[0]:
        return _recorded(what, content, handbook, goal)
    if handbook is None:
        raise _mistake(
            what, "a transcript needs a handbook to be judged by", "add --handbook SOURCE"
        )
    if content and all(isinstance(item, Mapping) and "traj" in item for item in content):
        return _trajectories(what, content, handbook, goal)
    book, chosen = _procedure(handbook, goal)
    return [(Path(what).stem, book, chosen, _messages(content, book))]


def _messages(messages: Sequence[Mapping[str, Any]], book: Handbook) -> Transcript:
    effects = frozenset(procedure.action for procedure in book.procedures.values())
    by_tool = {
        tool: action.name
        for action in sorted(book.actions.values(), key=lambda action: action.is_guarded)
        for tool in (action.tool, action.tool.rpartition(":")[2])
        if tool and tool not in book.actions
    }
    return read_messages(messages, effects=effects, by_tool=by_tool)


def _procedure(handbook: str, goal: str | None) -> tuple[Handbook, str]:
    units = compile_source(handbook, goal=goal)
    if len(units) != 1:
        known = ", ".join(f"`{unit.procedure.name}`" for unit in units[:8])
        raise _mistake(handbook, "the handbook has several goals", f"add --goal: {known}")
    return units[0].handbook, units[0].procedure.name


def _recorded(
    what: str, entries: Sequence[Any], handbook: str | None, goal: str | None
) -> list[Row]:
    """SOPBench's own recordings name their task, so that no handbook need be named."""
    result: list[Row] = []
    for number, entry in enumerate(entries):
        recorded = entry.get("interactions") if isinstance(entry, Mapping) else None
        if not isinstance(recorded, list) or not all(map(_is_interaction, recorded)):
            problem = f"entry {number} has no recorded interactions"
            raise _mistake(what, problem, "is the file complete?")
        if handbook is not None:
            book, chosen = _procedure(handbook, goal)
        else:
            book, chosen = _sopbench_task(what, entry)
        if goal is not None and chosen != goal:
            continue
        for item in recorded:
            transcript = read_messages(
                item["interaction"], outcome=success_first_outcome, ignored=_DIALOG_TOOLS
            )
            result.append((f"{Path(what).stem}#{number}", book, chosen, transcript))
    if not result:
        raise _mistake(what, "no trajectory of that goal is recorded here", "")
    return result


def _trajectories(what: str, entries: Sequence[Any], handbook: str, goal: str | None) -> list[Row]:
    """τ-bench's recordings: dialogs about whatever their users want, so that every call is
    judged by the procedure it belongs to."""
    book = compile_source(handbook, goal=goal)[0].handbook
    result: list[Row] = []
    for number, entry in enumerate(entries):
        if not isinstance(entry["traj"], list):
            raise _mistake(what, f"entry {number} has no messages", "is the file complete?")
        name = f"{entry.get('task_id', number)}.{entry.get('trial', 0)}"
        result.append((name, book, goal, _messages(entry["traj"], book)))
    return result


def _is_interaction(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("interaction"), list)


def _sopbench_task(what: str, entry: Mapping[str, Any]) -> tuple[Handbook, str]:
    domain, task = str(entry.get("domain")), entry.get("task")
    if not isinstance(task, Mapping):
        raise _mistake(
            what, "the recorded trajectory doesn't name its task", "name one with --handbook"
        )
    recorded_task = sopbench().recorded_task(domain, task)
    if recorded_task is None:
        problem = "a recorded trajectory belongs to no task of the SOPBench data set"
        raise _mistake(what, problem, "name the handbook to judge it by: --handbook")
    return recorded_task


def _mistake(what: str, message: str, cure: str) -> UserMistake:
    return mistake("audit-input", message, Place(what), cure)


def clean_together(verdicts: Iterable[bool | None]) -> bool | None:
    """``False`` if something is wrong anywhere, else ``None`` if something wasn't judged."""
    known = set(verdicts)
    return False if False in known else None if None in known else True


def reports_json(audited: Sequence[Audited]) -> dict[str, JSON]:
    reports = [item.report for item in audited]
    if len(audited) == 1:
        seal, about = audited[0].seal, about_session(audited[0].events)
        facts = asdict(about) | {"programs": list(about.programs)}
        sealed: JSON = asdict(seal) if seal is not None else None
        session = {"session": facts | {"seal": sealed}} if about.events else {}
        return {**reports[0].as_json(), **session}
    card = batch(reports)
    clean = clean_together(report.clean for report in reports)
    return {
        "clean": simply_clean(clean, overridden=card.overrides > 0),
        "batch": card.as_json(),
        "reports": [report.as_json() for report in reports],
    }


def reports_text(audited: Sequence[Audited], language: str) -> Lines:
    if len(audited) != 1:
        return Lines(render_batch_text(batch(item.report for item in audited), language))
    (only,) = audited
    facts = about_lines(about_session(only.events), only.seal, language, stored=only.stored)
    entries = entries_of(only.events, only.report.proofs)
    return Lines(render_text(only.report, language, tuple(facts), entries))
