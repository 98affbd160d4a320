"""Coverage-guided fuzzing of every reader of what others write, with atheris.

    pip install atheris
    python benchmarks/fuzz.py --minutes 60 --json evidence/fuzz.json [READER …]

Each reader gets the same share of the time, in processes of its own: first with SHORT inputs,
which it reads many times as quickly, then with long ones. What was found stays in ``--work``: a
later run goes on from it, and adds its inputs to those on record; crashes and hangs are those
of the last run of a reader. Nothing may escape from a reader but its own errors, and no input may
take longer than SLOW seconds of processor time. ``--minimise`` writes the smallest inputs that
reach all lines that were reached to tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "evidence"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
SLOW = 2.0
SHORT, LONG = 512, 4096
"""Bytes: most of what a reader distinguishes stands in a few lines."""
SHARE_OF_SHORT = 0.8
MOST_KEPT = 60
LONGEST_KEPT = 1500
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


def child(name: str, folder: Path, seconds: int, longest: int) -> None:
    """Fuzzes one reader until its time is over; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["sopilot"]):
        import fuzz_readers
    reader = fuzz_readers.READERS[name]
    seeds, new = folder / "seeds", folder / "found"
    for each in (seeds, new):
        each.mkdir(parents=True, exist_ok=True)
    for seed in reader.seeds():
        seeds.joinpath(hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    words = folder / "words"
    words.write_text("".join(f"{_word(word)}\n" for word in reader.words()), "ascii")
    faults: dict[str, dict[str, Any]] = {}
    inputs, written = 0, time.monotonic()

    def fault(kind: str, why: str, data: bytes) -> None:
        known = faults.get(why)
        if known is None or len(data) < len(base64.b64decode(known["input"])):
            shown = base64.b64encode(data).decode()
            faults[why] = {"kind": kind, "why": why, "input": shown}
            (folder / "faults.json").write_text(json.dumps(list(faults.values()), indent=1))

    def one_input(data: bytes) -> None:
        nonlocal inputs, written
        inputs += 1
        begun = time.process_time()
        try:
            reader.read(data)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            fault(
                "crash", f"{type(error).__name__} {Path(where.filename).name}:{where.lineno}", data
            )
        if time.process_time() - begun > SLOW:
            fault("hang", "slow", data)
        now = time.monotonic()
        if now - written > 1.0:
            written = now
            (folder / "inputs").write_text(str(inputs))

    limits = [f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096", "-verbosity=1"]
    limits += [f"-max_len={longest}", f"-dict={words}"]
    atheris.Setup([sys.argv[0], *limits, str(new), str(seeds)], one_input)
    atheris.Fuzz()


def _word(text: str) -> str:
    plain = "".join(
        c if (c.isalnum() and c.isascii()) or c in "_ .:&|" else f"\\x{b:02x}"
        for c in text
        for b in c.encode()[:1]
    )
    return f'"{plain}"'


def campaign(name: str, folder: Path, seconds: int) -> dict[str, Any]:
    short = int(seconds * SHARE_OF_SHORT)
    parts = [
        _part(name, folder, share, longest)
        for share, longest in ((short, SHORT), (seconds - short, LONG))
    ]
    figures: dict[str, Any] = {
        key: sum(part[key] for part in parts) for key in ("inputs", "seconds")
    }
    figures |= {key: max(part[key] for part in parts) for key in ("edges", "features")}
    faults = {fault["why"]: fault for part in parts for fault in part["faults"]}.values()
    figures["crashes"] = sum(fault["kind"] != "hang" for fault in faults)
    figures["hangs"] = sum(fault["kind"] == "hang" for fault in faults)
    return {**figures, "faults": list(faults)}


def _part(name: str, folder: Path, seconds: int, longest: int) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inputs").unlink(missing_ok=True)
    (folder / "faults.json").unlink(missing_ok=True)
    command = [sys.executable, __file__, "--child", name, "--work", str(folder.parent)]
    command += ["--minutes", str(seconds / 60), "--longest", str(longest)]
    begun = time.monotonic()
    with (folder / "log").open("w") as log:
        done = subprocess.run(
            command, stdout=log, stderr=log, cwd=folder, timeout=seconds * 2 + 300
        )
    covered = _COVERED.findall((folder / "log").read_text(errors="replace"))
    faults = _read(folder / "faults.json", [])
    if done.returncode not in (0, 77):
        faults.append({"kind": "ended", "why": f"exit {done.returncode}", "input": ""})
    return {
        "inputs": int(_read(folder / "inputs", 0)),
        "seconds": round(time.monotonic() - begun, 1),
        "edges": int(covered[-1][0]) if covered else 0,
        "features": int(covered[-1][1]) if covered else 0,
        "faults": faults,
    }


def _read(path: Path, otherwise: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else otherwise


def minimise(name: str, folder: Path) -> int:
    """Keep each input that reaches a new line, the smallest inputs first. Keep the corpus, too:
    its inputs may have been crashes."""
    import fuzz_readers

    reader = fuzz_readers.READERS[name]
    package = str(ROOT / "src" / "sopilot")
    reached: set[tuple[str, int]] = set()
    fresh: set[tuple[str, int]] = set()

    def trace(frame: Any, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(package):
            return None
        fresh.add((file, frame.f_lineno))
        return trace

    known = CORPUS / f"{name}.json"
    corpus: list[str] = _read(known, []) if known.exists() else []
    for each in corpus:
        sys.settrace(trace)
        reader.read(base64.b64decode(each))
        sys.settrace(None)
    reached |= fresh
    files = sorted(folder.glob("found/*"), key=lambda file: (file.stat().st_size, file.name))
    for file in files:
        data = file.read_bytes()
        if len(data) > LONGEST_KEPT or len(corpus) >= MOST_KEPT:
            break
        fresh.clear()
        sys.settrace(trace)
        try:
            reader.read(data)
        finally:
            sys.settrace(None)
        if fresh - reached:
            reached |= fresh
            corpus.append(base64.b64encode(data).decode())
    CORPUS.mkdir(parents=True, exist_ok=True)
    known.write_text(json.dumps(corpus, indent=0) + "\n", "ascii")
    return len(corpus)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "sopilot" / "fuzz")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--minimise", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--longest", type=int, default=LONG, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(
            options.child, options.work / options.child, int(options.minutes * 60), options.longest
        )
        return
    import fuzz_readers

    names = options.readers or list(fuzz_readers.READERS)
    if options.minimise:
        for name in names:
            print(f"{name}: {minimise(name, options.work / name)} inputs kept")
        return
    share = int(options.minutes * 60 / len(names))
    results = {}
    for name in names:
        result = results[name] = campaign(name, options.work / name, share)
        figures = ", ".join(
            f"{result[key]:,} {key}" for key in ("inputs", "edges", "crashes", "hangs")
        )
        print(f"{name}: {figures}", flush=True)
    before = options.json if options.json and options.json.exists() else EVIDENCE / "fuzz.json"
    figures = added(_read(before, {}), results)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    sys.exit(0 if figures["passed"] else 1)


def added(before: dict[str, Any], results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Add up inputs before and now; crashes and hangs are those of the last run."""
    readers: dict[str, dict[str, Any]] = {}
    known = before.get("readers", {})
    for name in {**known, **results}:
        old, new = known.get(name, {}), results.get(name)
        readers[name] = old if new is None else {
            **new,
            "inputs": old.get("inputs", 0) + new["inputs"],
            "seconds": round(old.get("seconds", 0) + new["seconds"], 1),
            "edges": max(old.get("edges", 0), new["edges"]),
        }  # fmt: skip
    total = {
        key: sum(reader.get(key, 0) for reader in readers.values())
        for key in ("inputs", "crashes", "hangs")
    }
    passed = not total["crashes"] and not total["hangs"]
    mended = {"mended": before["mended"]} if "mended" in before else {}
    return {"passed": passed, **total, "readers": readers, **mended}


if __name__ == "__main__":
    os.environ.setdefault("SOPILOT_HOME", str(Path.home() / ".cache" / "sopilot" / "fuzz-home"))
    main()
