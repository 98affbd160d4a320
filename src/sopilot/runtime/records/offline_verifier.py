"""Checks a bundle of records where nothing else is installed: `python verify.py [PUBLIC_KEY]`.

It needs Python 3.11 and nothing else, and stands in every bundle. It shows that every trace is
whole, that each stands in the log as it was sealed, that no session that began or went on in the
bundle's time is left out of it, that the register's rows are those that were sealed and the
register, deviations and handbooks those of the traces, and that the heads are signed by the key
you name. It does not show that what was recorded is true, that everything was recorded, or
anything about what came after the last seal. Who could touch the bundle could touch this file,
too: its SHA-256 is that of the file in the release, and `sopilot verify --bundle` needs none.
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

_HASH = re.compile(r',"hash":"([0-9a-f]{64})"')

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
Point = tuple[int, int, int, int]


def _add(one: Point, other: Point) -> Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(number: int, point: Point) -> Point:
    found: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            found = _add(found, point)
        point, number = _add(point, point), number >> 1
    return found


def _point(raw: bytes) -> Point | None:
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


_BASE = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))


def signed_by(key: str, signature: str, message: bytes) -> bool:
    # Ed25519 as RFC 8032 defines it.
    try:
        public, raw = bytes.fromhex(key), bytes.fromhex(signature)
    except ValueError:
        return False
    if len(public) != 32 or len(raw) != 64:
        return False
    a, r, s = _point(public), _point(raw[:32]), int.from_bytes(raw[32:], "little")
    if a is None or r is None or _BASE is None or s >= _ORDER:
        return False
    digest = hashlib.sha512(raw[:32] + public + message).digest()
    left = _times(s, _BASE)
    right = _add(r, _times(int.from_bytes(digest, "little") % _ORDER, a))
    return (
        not (left[0] * right[2] - right[0] * left[2]) % _P
        and not (left[1] * right[2] - right[1] * left[2]) % _P
    )


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
            hashlib.sha256(b"\x01" + one[0] + one[1]).digest() if len(one) == 2 else one[0]
            for one in pairs
        ]
    return level[0].hex()


def chain_of(path: Path, session: str, problems: list[str]) -> list[str]:
    """The hashes of the trace's events; what is wrong with it is told."""
    first = spell({"format": 1, "session": session})
    previous = hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()
    hashes: list[str] = []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        header = json.loads(file.readline())
        if header.get("session") != session:
            problems.append(f"{path.name}: this is the trace of {header.get('session')}")
        for line in file:
            event = json.loads(line)
            if "kind" not in event or "previous" not in event:
                continue  # signatures and payloads stand behind the events
            found = _HASH.search(line)
            digest = found[1] if found else ""
            text = line.rstrip("\n").replace(f',"hash":"{digest}"', "", 1)
            raw = text.encode("utf-8", "surrogateescape")
            if (
                event["seq"] != len(hashes)
                or event["previous"] != previous
                or hashlib.sha256(raw).hexdigest() != digest
            ):
                problems.append(f"{path.name}: event {len(hashes)} is not what was recorded")
                return hashes
            hashes.append(digest)
            previous = digest
    return hashes


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
    for line in (folder / "heads.jsonl").read_text("utf-8").splitlines():
        value = json.loads(line)
        if "entry" in value:
            if value["entry"] != len(entries):
                problems.append(f"the log has a hole before entry {value['entry']}")
            entries.append(value)
            raw = line.encode("utf-8", "surrogatepass")
            leaves.append(hashlib.sha256(b"\x00" + raw).digest())
            continue
        size = value["size"]
        said = spell({name: value[name] for name in ("sopilot_log", "size", "root", "at")})
        if keys and value["key"] not in keys:
            problems.append(f"the head of {size} entries is signed by another key")
        if not signed_by(value["key"], value["signature"], said.encode()):
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
    for one in decisions:
        if one["decision"] in ("amend", "reject"):
            approvers = []
        if one["decision"] in ("approve", "amend"):
            approvers.append(f"{one['by']} ({one['role']}, {_identity(one.get('principal'))})")
    names = ("override", "awaits", "why", "goal", "program", "handbook", "model", "arm", "asked")
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
    for it in json.loads((folder / "deviations.json").read_text("utf-8")):
        brief = f"{it['code']} ({it['disposition'] or it['state']})"
        noted.setdefault(it["session"], []).append(brief)
    found = [(one, row) for one, its in rows.items() for row in its if begin <= row[1] < end]
    made = [{**action_of(one, row, about["made_at"]), "findings": noted.get(one, [])}
            for one, row in found]  # fmt: skip
    told = json.loads((folder / "register.json").read_text("utf-8"))
    if Counter(map(spell, told["actions"])) != Counter(map(spell, made)):
        problems.append("register.json does not have the actions of rows.jsonl")
    counts = Counter((json.loads(row[2]), row[3]) for _, row in found)
    said = {(one["action"], one["outcome"]): one["count"] for one in told["counts"]}
    if (told["selected"], told["withheld"], told["sums"]) != (len(made), 0, {}) or said != counts:
        problems.append("register.json counts other actions than it has")
    with open(folder / "register.csv", encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    wanted = Counter(tuple(_cell(_column(one, name)) for name in header) for one in made)
    if Counter(map(tuple, lines)) != wanted or not {"action", "outcome", "arguments"} < {*header}:
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


def notes(folder: Path, journal: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    path = folder / "traces" / f"journal.{journal}.jsonl"
    if not path.is_file():
        return
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        next(file)
        for event in map(json.loads, file):
            if event.get("kind") == "note":
                yield event["seq"], event["payload"]["name"], event["payload"]["details"]


def check_derived(folder: Path, problems: list[str]) -> None:
    """Handbooks and deviations against the journals."""
    number: Counter[str] = Counter()
    for _, name, it in notes(folder, "handbooks"):
        if name == "version_released":
            number[it["handbook"]] += 1
            file = f"handbooks/{it['handbook']}-{number[it['handbook']]}.yaml"
            path = folder / file
            text = it["text"].encode("utf-8", "surrogatepass")
            if not path.is_file() or path.read_bytes() != text:
                problems.append(f"{file} is not the text that was released")
    known: dict[int, dict[str, Any]] = {}
    for seq, name, it in notes(folder, "deviations"):
        if name == "deviation_opened":
            known[seq] = {"session": it["session"], "code": it["code"], "state": "open"}
        elif (one := known.get(it.get("deviation", -1))) is not None:
            state = {"judged": "judged", "closed": "closed", "reopened": "open"}
            one["state"] = state.get(name.removeprefix("deviation_"), one["state"])
            if name == "deviation_judged":
                one["disposition"] = it.get("disposition")
    told = json.loads((folder / "deviations.json").read_text("utf-8"))
    said = {
        one["deviation"]: {
            name: one.get(name) for name in ("session", "code", "state", "disposition")
        }
        for one in told
    }
    if said != {seq: {"disposition": None, **one} for seq, one in known.items()}:
        problems.append("deviations.json does not have the deviations of their journal")


def check(folder: Path, keys: list[str]) -> tuple[list[str], list[str]]:
    """What is wrong; and what was looked at, in lines."""
    problems: list[str] = []
    about = json.loads((folder / "bundle.json").read_text("utf-8"))
    for name, digest in about["files"].items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            problems.append(f"{name} is not what was exported")
    entries, sealed_at = check_log(folder, keys, problems)
    rows = {
        one["session"]: one["rows"]
        for one in map(json.loads, (folder / "rows.jsonl").read_text("utf-8").splitlines())
    }
    last = {entry["session"]: entry for entry in entries}
    begin, end, told = about["from"], about["to"], set(about["sessions"])
    for session, how in in_time(entries, begin, end):
        if session not in told:
            problems.append(f"session {session} {how} then and is left out")
    later: list[str] = []
    for session in sorted(told):
        _check_session(folder, session, last.get(session), rows.get(session, []), problems, later)
    problems += [f"rows.jsonl has rows of {one}, which is no trace here" for one in {*rows} - told]
    if not problems:  # what they are made from is what was sealed
        check_derived(folder, problems)
    if not problems:
        check_register(folder, rows, about, problems)
    looked_at = [
        f"{len(told)} traces from {moment(begin)} to {moment(end)}, {len(entries)} entries of "
        f"the log, sealed at {moment(sealed_at)}",
        *(f"not covered by the seal: {one}" for one in later),
    ]
    return problems, looked_at


def _check_session(
    folder: Path, session: str, sealed: dict[str, Any] | None, rows: list[list[Any]],
    problems: list[str], later: list[str],
) -> None:  # fmt: skip
    path = folder / "traces" / f"{session}.jsonl"
    if not path.is_file():
        problems.append(f"the trace of session {session} is missing")
        return
    hashes = chain_of(path, session, problems)
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
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        problems, looked_at = [f"this is no bundle, or a damaged one: {wrong!r}"], []
    told = problems or verdict(looked_at, keys)
    return not problems, [
        "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line) for line in told
    ]


def main(arguments: list[str]) -> int:
    keys = [Path(one).read_text().strip() if Path(one).is_file() else one for one in arguments]
    good, told = examined(Path(__file__).resolve().parent, keys)
    for line in told:
        print(line)  # noqa: T201 - it is a program of its own
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
