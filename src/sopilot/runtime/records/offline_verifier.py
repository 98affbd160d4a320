"""Checks a bundle of records where nothing else is installed: `python verify.py [PUBLIC_KEY]`.

It needs Python 3.11 and nothing else, and stands in every bundle. It shows that every trace is
whole, that each stands in the log as it was sealed, that no session that began in the bundle's
time is left out of it, that the register's rows are those that were sealed, and that the heads
are signed by the key you name. It does not show that what was recorded is true, that everything
was recorded, or anything about what came after the last seal.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

_HASH = re.compile(r',"hash":"([0-9a-f]{64})"')

# --- Ed25519 as RFC 8032 defines it, for verifying alone -------------------------------

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


# --- the bundle -------------------------------------------------------------------------


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


def check_log(folder: Path, keys: list[str], problems: list[str]) -> list[dict[str, Any]]:
    """The entries that the last sealed head covers."""
    entries: list[dict[str, Any]] = []
    leaves: list[bytes] = []
    covered = 0
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
        covered = max(covered, size)
    if not covered:
        problems.append("no head was sealed: nothing shows that this is all")
    return entries[:covered]


def check(folder: Path, keys: list[str]) -> tuple[list[str], str]:
    """What is wrong, and what was looked at."""
    problems: list[str] = []
    about = json.loads((folder / "bundle.json").read_text("utf-8"))
    for name, digest in about["files"].items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            problems.append(f"{name} is not what was exported")
    entries = check_log(folder, keys, problems)
    rows = {
        one["session"]: one["rows"]
        for one in map(json.loads, (folder / "rows.jsonl").read_text("utf-8").splitlines())
    }
    last = {entry["session"]: entry for entry in entries}
    begin, end, told = about["from"], about["to"], set(about["sessions"])
    for entry in entries:
        began = entry["seq"] == -1 and begin <= entry["at"] < end
        if began and entry["session"] not in told:
            problems.append(f"session {entry['session']} began then and is left out")
    for session in sorted(told):
        path = folder / "traces" / f"{session}.jsonl"
        if not path.is_file():
            problems.append(f"the trace of session {session} is missing")
            continue
        hashes = chain_of(path, session, problems)
        sealed = last.get(session)
        if sealed is None:
            problems.append(
                f"session {session} stands in no sealed entry: it is later, or inserted"
            )
        elif sealed["seq"] >= len(hashes):
            problems.append(
                f"session {session} has {len(hashes)} events, {sealed['seq'] + 1} sealed"
            )
        elif sealed["seq"] >= 0 and hashes[sealed["seq"]] != sealed["hash"]:
            problems.append(f"session {session} is not the one that was sealed")
        elif sealed["seq"] == len(hashes) - 1 and (
            register_digest(rows.get(session, [])) != sealed["actions"]
        ):
            problems.append(f"the register's rows of session {session} are not those sealed")
    return problems, f"{len(told)} traces, {len(entries)} entries of the log"


def main(arguments: list[str]) -> int:
    folder = Path(__file__).resolve().parent
    keys = [Path(one).read_text().strip() if Path(one).is_file() else one for one in arguments]
    problems, looked_at = check(folder, keys)
    for problem in problems:
        print(problem)  # noqa: T201 - it is a program of its own
    if not problems:
        whose = "by the key you named" if keys else "by the key that the bundle names"
        print(f"whole and complete: {looked_at}, sealed {whose}")  # noqa: T201 - as above
        print(  # noqa: T201 - as above
            "not shown by this: that what was recorded is true, that everything was recorded, "
            "or what came after the last seal"
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
