"""Checks a bundle of records where nothing else is installed: `python verify.py [PUBLIC_KEY]`.

It needs Python 3.11 and nothing else, and stands in every bundle. It shows that every trace is
whole, that each stands in the log as it was sealed, that no session that began or went on in the
bundle's time is left out of it, that the register's rows are those that were sealed and the
register, deviations and handbooks those of the traces, and that the heads are signed by the key
you name. It does not show that what was recorded is true, that everything was recorded, or
anything about what came after the last seal. Who could touch the bundle could touch this file,
too: `sopilot records verify --bundle` needs none.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sopilot.trace.ed25519 import signed_by

_ABOUT, _JOURNAL = "bundle.json", "journal."

_COLUMNS = [
    "when", "session", "call_id", "event", "action", "outcome", "grade", "override", "awaits",
    "why", "goal", "handbook", "program", "model", "view", "approvers", "findings", "arguments",
]  # fmt: skip

_HASH = re.compile(r',"hash":"([0-9a-f]{64})"')


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def spell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def tree_root(leaves: list[bytes]) -> str:
    """The Merkle tree of RFC 6962."""
    if not leaves:
        return hashlib.sha256(b"").hexdigest()
    level = list(leaves)
    while len(level) > 1:
        pairs = [level[n : n + 2] for n in range(0, len(level), 2)]
        level = [
            hashlib.sha256(b"\x01" + pair[0] + pair[1]).digest() if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    return level[0].hex()


def text_of(path: Path) -> str:
    if not path.is_file():  # what a link leads to may have no end
        raise FileNotFoundError(f"{path.name} is no file")
    return path.read_text("utf-8")


def chain_of(path: Path, session: str, problems: list[str]) -> list[dict[str, Any]]:
    """The events of the trace; what is wrong with it, or with what stands beside them, is told."""
    first = spell({"format": 1, "session": session})
    previous = hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()
    events: list[dict[str, Any]] = []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        header = json.loads(file.readline())
        if header.get("session") != session:
            problems.append(f"{path.name}: this is the trace of {header.get('session')}")
        for line in file:
            event = json.loads(line)
            if not line.startswith('{"actor":'):
                if not _is_beside(event, session):
                    problems.append(f"{path.name}: {line[:40]}… is not what was recorded")
                continue
            match = _HASH.search(line)
            digest = match[1] if match else ""
            text = line.rstrip("\n").replace(f',"hash":"{digest}"', "", 1)
            if (
                event["seq"] != len(events)
                or event["previous"] != previous
                or _digest(text) != digest
            ):
                problems.append(f"{path.name}: event {len(events)} is not what was recorded")
                return events
            events.append(event)
            previous = digest
    first_said = events[0]["payload"] if events else {}
    opened = first_said.get("details") if first_said.get("name") == "opened" else None
    messages = {"programs": header.get("programs"), **header.get("about", {})}
    if (
        isinstance(opened, dict)
        and opened.keys() != {"$ref", "bytes"}
        and any((opened.get(name) or None) != (item or None) for name, item in messages.items())
    ):
        problems.append(f"{path.name}: its header is not that of its first event")
    if any(_digest(text) != item for item, text in header.get("program_texts", {}).items()):
        problems.append(f"{path.name}: a program is not the one that was run")
    return events


def _digest(text: str, salt: bytes = b"") -> str:
    return hashlib.sha256(salt + text.encode("utf-8", "surrogateescape")).hexdigest()


def _is_beside(line: dict[str, Any], session: str) -> bool:
    """What may stand behind the events: their contents, and heads that somebody signed."""
    if line.keys() == {"payloads", "salt"}:
        salt = bytes.fromhex(line["salt"])
        return all(_digest(spell(value), salt) == ref for ref, value in line["payloads"].items())
    replies = {name: item for name, item in line.items() if name not in ("key", "signature")}
    return line.get("session") == session and signed_by(
        str(line.get("key")), str(line.get("signature")), spell(replies).encode()
    )


def register_digest(rows: list[list[Any]]) -> str:
    spelled = "".join(
        f"{len(call)}:{call}{at!r}:{len(action)}:{action}{len(outcome)}:{outcome}{len(grade)}:{grade}"
        f"{expires!r}:{len(arguments)}:{arguments}{len(rest)}:{rest}"
        for call, at, action, outcome, grade, expires, arguments, rest in sorted(map(tuple, rows))
    )
    return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()


def check_log(
    folder: Path, keys: list[str], problems: list[str]
) -> tuple[list[dict[str, Any]], float]:
    """The entries that the last sealed head covers, and when that was sealed."""
    entries, leaves = list[dict[str, Any]](), list[bytes]()
    covered, sealed_at = 0, 0.0
    for line in text_of(folder / "heads.jsonl").splitlines():
        value = json.loads(line)
        if "entry" in value:
            if value["entry"] != len(entries):
                problems.append(f"the log has a hole before entry {value['entry']}")
            entries.append(value)
            raw = line.encode("utf-8", "surrogatepass")
            leaves.append(hashlib.sha256(b"\x00" + raw).digest())
            continue
        size = value["size"]
        reply = spell({name: value[name] for name in ("sopilot_log", "size", "root", "at")})
        if keys and value["key"] not in keys:
            problems.append(f"the head of {size} entries is signed by another key")
        if not signed_by(value["key"], value["signature"], reply.encode()):
            problems.append(f"the signature of the head of {size} entries is wrong")
        if size > len(leaves):
            problems.append(f"the log has {len(leaves)} entries and was sealed with {size}")
        elif tree_root(leaves[:size]) != value["root"]:
            problems.append(f"the first {size} entries of the log are not those that were sealed")
        covered, sealed_at = max(covered, size), max(sealed_at, value["at"])
    if not covered:
        problems.append("no head was sealed: nothing shows that this is all")
    return entries[:covered], sealed_at


def in_time(entries: list[dict[str, Any]], begin: float, end: float) -> Iterator[tuple[str, str]]:
    """Sessions that began then, or went on between two entries of which the time is not all
    before or after."""
    last: dict[str, dict[str, Any]] = {}
    for entry in entries:
        session = entry["session"]
        before = last.get(session)
        last[session] = entry
        if before is None:
            if begin <= entry["at"] < end:
                yield session, "began"
        elif entry["seq"] > before["seq"] and before["at"] < end and entry["at"] >= begin:
            yield session, "may have acted"


def action_of(session: str, row: list[Any], now: float) -> dict[str, Any]:
    """A row of the register as register.json has it."""
    call, at, action, outcome, grade, expires, arguments, rest = row
    more = json.loads(rest)
    if outcome == "held" and expires is not None and expires < now:
        outcome = "expired"
    decisions = more.get("decisions", [])
    approvers: list[str] = []
    for decision in decisions:
        if decision["decision"] in ("amend", "reject"):
            approvers = []
        if decision["decision"] in ("approve", "amend"):
            approvers.append(
                f"{decision['by']} ({decision['role']}, {_identity(decision.get('principal'))})"
            )
    names = ("override", "awaits", "why", "goal", "program", "handbook", "model", "view", "asked")
    return {
        **{name: more.get(name) for name in names},
        "at": at, "session": session, "call_id": json.loads(call), "action": json.loads(action),
        "arguments": json.loads(arguments), "outcome": outcome, "grade": grade or None,
        "approvers": approvers, "decisions": decisions, "needed": more.get("needed", 0),
        "repeats": more.get("repeats", 0), "event": more["seq"], "expires_at": expires,
    }  # fmt: skip


def _identity(principal: Any) -> str:
    if not isinstance(principal, dict) or not principal.get("method"):
        return "unauthenticated"
    word = {"machine": "the machine itself"}.get(principal["method"], str(principal["method"]))
    return f"{word}, {principal['through']}" if principal.get("through") else word


def check_register(
    folder: Path, rows: dict[str, list[list[Any]]], about: dict[str, Any], problems: list[str]
) -> None:
    """What people read of the register against the rows that are held against the seal."""
    begin, end, noted = about["from"], about["to"], dict[str, list[str]]()
    for it in json.loads(text_of(folder / "deviations.json")):
        brief = f"{it['code']} ({it['disposition'] or it['state']})"
        noted.setdefault(it["session"], []).append(brief)
    results = [(item, row) for item, its in rows.items() for row in its if begin <= row[1] < end]
    made = [{**action_of(item, row, about["made_at"]), "findings": noted.get(item, [])}
            for item, row in results]  # fmt: skip
    loads = json.loads(text_of(folder / "register.json"))
    if Counter(map(spell, loads["actions"])) != Counter(map(spell, made)):
        problems.append("register.json does not have the actions of rows.jsonl")
    counts = Counter((item["action"], item["outcome"]) for item in made)
    replies = {(item["action"], item["outcome"]): item["count"] for item in loads["counts"]}
    if (loads["selected"], loads["withheld"], loads["sums"]) != (
        len(made),
        0,
        {},
    ) or replies != counts:
        problems.append("register.json counts other actions than it has")
    with open(folder / "register.csv", encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    wanted = Counter(tuple(_cell(_column(item, name)) for name in header) for item in made)
    if Counter(map(tuple, lines)) != wanted or header != _COLUMNS:
        problems.append("register.csv does not have the actions of rows.jsonl")


def _column(action: dict[str, Any], name: str) -> Any:
    if name == "when":
        return moment(action["at"])
    return "; ".join(action[name]) if name in ("approvers", "findings") else action.get(name)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "" if value is None else text
    number = text[1:].replace(".", "", 1).isdigit()
    return f"'{text}" if text[:1] in "=+-@\t\r" and text and not number else text


def check_derived(
    folder: Path, notes: dict[str, list[dict[str, Any]]], problems: list[str]
) -> None:
    """Handbooks and deviations against the journals."""
    number: Counter[str] = Counter()
    for event in notes.get("journal.handbooks", ()):
        it = event["payload"]["details"]
        if event["payload"]["name"] == "version_released":
            number[it["handbook"]] += 1
            file = f"handbooks/{it['handbook']}-{number[it['handbook']]}.yaml"
            path = folder / file
            text = it["text"].encode("utf-8", "surrogatepass")
            if not path.is_file() or path.read_bytes() != text:
                problems.append(f"{file} is not the text that was released")
    loads = json.loads(text_of(folder / "deviations.json"))
    if loads != deviations_of(notes.get("journal.deviations", [])):
        problems.append("deviations.json does not have the deviations of their journal")


def deviations_of(notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known: dict[int, dict[str, Any]] = {}
    for event in notes:
        at, seq, it = event["at"], event["seq"], event["payload"]["details"]
        name, by = event["payload"]["name"].removeprefix("deviation_"), it.get("by") or None
        if name == "opened":
            values = {entry: it.get(entry) or "" for entry in ("session", "code", "explanation")}
            more = ("owner", "due", "disposition", "cause", "remedy", "judged_by", "closed_by")
            known[seq] = {"deviation": seq, "at": at, **values, "event": it["event"],
                          "sentence": it.get("sentence") or "", "state": "open",
                          **dict.fromkeys(more), "history": []}  # fmt: skip
        elif (item := known.get(it.get("deviation", -1))) is not None:
            item["history"].append({"at": at, "entry": f"deviation_{name}", **it})
            if name == "assigned":
                item["owner"] = it.get("owner") or item["owner"]
                item["due"] = it["due"] if it.get("due") is not None else item["due"]
            elif name == "judged":
                item.update({key: it.get(key) or None for key in ("cause", "remedy")})
                item.update(state="judged", judged_by=by, disposition=it.get("disposition"))
            elif name in ("closed", "reopened"):
                item.update(state={"closed": "closed"}.get(name, "open"), closed_by=None)
                item.update({"closed_by": by} if name == "closed" else {"judged_by": None})
    return list(known.values())


def check(folder: Path, keys: list[str]) -> tuple[list[str], list[str]]:
    """What is wrong; and what was looked at, in lines."""
    problems: list[str] = []
    about = json.loads(text_of(folder / _ABOUT))
    for name, digest in about["files"].items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            problems.append(f"{name} is not what was exported")
    there = {item.relative_to(folder).as_posix() for item in folder.rglob("*") if item.is_file()}
    problems += [f"{item} is no file of it" for item in sorted(there - {*about["files"], _ABOUT})]
    entries, sealed_at = check_log(folder, keys, problems)
    rows = {
        item["session"]: item["rows"]
        for item in map(json.loads, text_of(folder / "rows.jsonl").splitlines())
    }
    last = {entry["session"]: entry for entry in entries}
    begin, end, message = about["from"], about["to"], set(about["sessions"])
    for session, how in in_time(entries, begin, end):
        if session not in message and not session.startswith(_JOURNAL):
            problems.append(f"session {session} {how} then and is left out")
    problems += [
        f"{item} is left out" for item in last if item.startswith(_JOURNAL) and item not in message
    ]
    later: list[str] = []
    notes: dict[str, list[dict[str, Any]]] = {}
    for session in sorted(message):
        own = rows.get(session, [])
        events = _check_session(folder, session, last.get(session), own, problems, later)
        if session.startswith(_JOURNAL):
            notes[session] = events
    problems += [
        f"rows.jsonl has rows of {item}, which is no trace here" for item in {*rows} - message
    ]
    if not problems:  # what they are made from is what was sealed
        check_derived(folder, notes, problems)
    if not problems:
        check_register(folder, rows, about, problems)
    looked_at = [
        f"{len(message)} traces from {moment(begin)} to {moment(end)} as of "
        f"{moment(about['made_at'])}, {len(entries)} entries of the log, sealed at "
        f"{moment(sealed_at)}",
        *(f"not covered by the seal: {item}" for item in later),
    ]
    return problems, looked_at


def _check_session(
    folder: Path, session: str, sealed: dict[str, Any] | None, rows: list[list[Any]],
    problems: list[str], later: list[str],
) -> list[dict[str, Any]]:  # fmt: skip
    path = folder / "traces" / f"{session}.jsonl"
    if not path.is_file():
        problems.append(f"the trace of session {session} is missing")
        return []
    events = chain_of(path, session, problems)
    hashes = [event["hash"] for event in events]
    if sealed is None:
        problems.append(f"session {session} stands in no sealed entry: it is later, or inserted")
    elif sealed["seq"] >= len(hashes):
        problems.append(f"session {session} has {len(hashes)} events, {sealed['seq'] + 1} sealed")
    elif sealed["seq"] >= 0 and hashes[sealed["seq"]] != sealed["hash"]:
        problems.append(f"session {session} is not the one that was sealed")
    elif sealed["seq"] < len(hashes) - 1:
        # Whoever writes events behind the sealed ones needs no key.
        later.append(f"events {sealed['seq'] + 1} to {len(hashes) - 1} of {session}")
        if rows:
            problems.append(
                f"session {session} went on after the seal, which does not cover its rows in the "
                "register: seal, and export again"
            )
    elif register_digest(rows) != sealed["actions"]:
        problems.append(f"the register's rows of session {session} are not those sealed")
    return events


def verdict(looked_at: list[str], keys: list[str]) -> list[str]:
    whose = "by the key you named" if keys else "by the key that the bundle names"
    return [
        f"whole and complete: {looked_at[0]} {whose}",
        *looked_at[1:],
        "not shown by this: that what was recorded is true, that everything was recorded, "
        "what came after the seal, or what SUMMARY.txt says",
    ]


def examined(folder: Path, keys: list[str]) -> tuple[bool, list[str]]:
    """Whether nothing is wrong, and what to say, fit for a terminal: a bundle is others' text."""
    try:
        problems, looked_at = check(folder, keys)
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        ArithmeticError,
    ) as wrong:
        problems, looked_at = [f"this is no bundle, or a damaged one: {wrong!r}"], []
    message = problems or verdict(looked_at, keys)
    return not problems, [
        "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
        for line in message
    ]


def main(arguments: list[str]) -> int:
    keys = [
        Path(argument).read_text().strip() if Path(argument).is_file() else argument
        for argument in arguments
    ]
    good, message = examined(Path(__file__).resolve().parent, keys)
    for line in message:
        print(line)  # noqa: T201 - it is a program of its own
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
