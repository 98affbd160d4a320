"""What an auditor is given: checked with nothing but Python. Whatever is changed in it, left out
of it or put into it is named."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import ran, refused, run, shown
from sopilot.messages.errors import UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.journal import write
from sopilot.runner.releases import write_bundle
from sopilot.stores.sqlite import SQLiteStore
from sopilot.trace.ed25519 import signed_by
from sopilot.trace.signing import generate_key

EVER = ("--from", "2020-01-01", "--to", "2099-01-01")


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bundle with contents and a deviation that two people saw to; the session."""
    folder = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOPILOT_STORE", f"sqlite:{folder}/store.db")
        ran("people", "require", "privacy")
        ran("privacy", "set", "columns", "amount")
        session = shown("run", "bank", "--task", "wire-rent-lyon")["session"]
        ran("handbooks", "release", "bank", "--as", "Ada")

        async def opened() -> None:
            store = SQLiteStore(folder / "store.db")
            finding = {"session": session, "code": "x", "event": 3, "explanation": "m"}
            entry = {**finding, "sentence": "", "by": "Ada", "identity": "unauthenticated"}
            await write(store, "deviations", "deviation_opened", entry, clock=SystemClock())
            await store.close()

        asyncio.run(opened())
        assigned = ("assign", 0, "--owner", "Bo", "--due", "2026-12-01", "--as", "Ada")
        ran("records", "deviations", *assigned)
        ran("records", "deviations", "judge", 0, "true", "--cause", "haste", "--as", "Ada")
        ran("records", "deviations", "close", 0, "--as", "Cy")
        ran("trace", "keygen", folder / "k")
        ran("trace", "sign", session, "--key", folder / "k", "-o", folder / "head")
        assert refused("records", "export", *EVER, "-o", folder / "b") == "not-sealed"
        ran("records", "seal", "--key", folder / "k")
        ran("records", "export", *EVER, "--payloads", "-o", folder / "b")
    return folder / "b", session


@pytest.fixture
def session(examined: tuple[Path, str]) -> str:
    return examined[1]


@pytest.fixture
def bundle(examined: tuple[Path, str], tmp_path: Path) -> Path:
    shutil.copytree(examined[0], tmp_path / "b")
    shutil.copy(examined[0].parent / "k.pub", tmp_path / "k.pub")
    return tmp_path / "b"


def judged(bundle: Path) -> tuple[bool, str]:
    done = run("records", "verify", "--bundle", bundle, "--key", bundle.parent / "k.pub", "--json")
    verdict = json.loads(done.stdout)
    assert done.exit_code == (0 if verdict["whole"] else 1)
    return verdict["whole"], "\n".join(verdict["says"])


def forged(bundle: Path, file: str, change: Callable[[str], str]) -> None:
    """As somebody would who has the bundle and knows how it is made."""
    path = bundle / file
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    about = json.loads((bundle / "bundle.json").read_text())
    about["files"][file] = hashlib.sha256(path.read_bytes()).hexdigest()
    (bundle / "bundle.json").write_text(json.dumps(about))


def test_a_bare_python_verifies_a_bundle(bundle: Path) -> None:
    """Without site-packages, in a folder of its own: as on another machine."""

    def verified(key: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(bundle / "verify.pyz"), key],
            capture_output=True, text=True, timeout=60, cwd=bundle,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    code, said = verified(str(bundle.parent / "k.pub"))
    assert (code, said[:18]) == (0, "whole and complete"), said
    assert "not shown by this" in said
    assert "another key" in verified(generate_key().public)[1]
    forged(bundle, "register.csv", lambda text: text.replace("wire_abroad", "transfer"))
    assert "register.csv" in verified(str(bundle.parent / "k.pub"))[1]


def test_a_bundle_is_whole_and_says_of_which_time_it_is(bundle: Path) -> None:
    whole, said = judged(bundle)
    assert whole, said
    assert "from 2020-01-01T00:00:00Z to 2099-01-02T00:00:00Z" in said
    summary = (bundle / "SUMMARY.txt").read_text()
    assert "1 sessions, 1 actions\n  1 x wire_abroad carried out" in summary
    assert "1 deviations\n  1 closed" in summary
    assert (bundle / "handbooks" / "bank-1.yaml").exists()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("register.json", '"amount": 650', '"amount": 65'),
        ("register.json", '"count": 1', '"count": 2'),
        ("register.csv", "650", "65"),
        ("register.csv", "override", "xxx"),
        ("SUMMARY.txt", "1 actions", "0 actions"),
        ("deviations.json", '"Bo"', '"Zed"'),
        ("deviations.json", '"closed_by": "Cy"', '"closed_by": "Di"'),
        ("deviations.json", '"entry": "deviation_assigned"', '"entry": "deviation_reopened"'),
        ("handbooks/bank-1.yaml", "largest_wire: 5000", "largest_wire: 500"),
        ("rows.jsonl", "650", "65"),
        ("heads.jsonl", '"entry":0', '"entry":1'),
        ("heads.jsonl", '"signature":"', '"signature":"0'),
        ("traces/SESSION.jsonl", '"amount":', '"Amount":'),
        ("traces/SESSION.jsonl", '"model":"reference"', '"model":"another"'),
        ("traces/SESSION.jsonl", "Claire Fontaine", "Clara Montagne"),
        ("traces/SESSION.jsonl", "sopilot_program: 1", "sopilot_program: 3"),
        ("traces/SESSION.jsonl", '"signature":"', '"signature":"00'),
    ],
)
def test_what_is_touched_is_named(
    bundle: Path, session: str, file: str, old: str, new: str
) -> None:
    file = file.replace("SESSION", session)
    forged(bundle, file, lambda text: text.replace(old, new, 1))
    whole, said = judged(bundle)
    assert not whole
    named = {"rows.jsonl": "action records", "heads.jsonl": "head"}.get(file, file)
    assert named in said


def test_what_is_left_out_or_put_in_is_named(bundle: Path, session: str) -> None:
    contents = bundle / "bundle.json"
    about = json.loads(contents.read_text())
    (bundle / "handbooks" / "bank-2.yaml").write_text("handbook: another")
    assert judged(bundle) == (False, "handbooks/bank-2.yaml is not a file of this bundle")
    forged(bundle, "handbooks/bank-2.yaml", lambda text: text + "\n")  # also where it is listed
    assert judged(bundle) == (False, "handbooks/bank-2.yaml is not a file of this bundle")
    (bundle / "handbooks" / "bank-2.yaml").unlink()
    for name in (session, "journal.deviations"):
        fewer = {**about, "sessions": [item for item in about["sessions"] if item != name]}
        contents.write_text(json.dumps(fewer))
        assert f"{name} " in judged(bundle)[1]
        assert "is left out" in judged(bundle)[1]
    contents.write_text(json.dumps(about))
    (bundle / "traces" / f"{session}.jsonl").unlink()
    assert "is missing" in judged(bundle)[1]


def test_what_stands_behind_the_seal_says_nothing(bundle: Path, session: str) -> None:
    """Events can be written behind the sealed ones without any key, and rows to fit."""

    def with_another(text: str) -> str:
        *lines, last = [line for line in text.splitlines() if line.startswith('{"actor"')]
        event = json.loads(last)
        digest = event.pop("hash")
        event.update(seq=event["seq"] + 1, previous=digest)
        raw = json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        event["hash"] = hashlib.sha256(raw.encode()).hexdigest()
        forged_line = json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return "\n".join([text.splitlines()[0], *lines, last, forged_line, ""])

    forged(bundle, f"traces/{session}.jsonl", with_another)
    assert "continued after the seal" in judged(bundle)[1]
    note = {"name": "deviation_judged", "details": {"deviation": 0, "disposition": "false-alarm"}}
    line = json.dumps({"kind": "note", "seq": 9, "payload": note})
    forged(bundle, "traces/journal.deviations.jsonl", lambda text: f"{text}{line}\n")
    assert "journal.deviations.jsonl differs from the recorded one" in judged(bundle)[1]


@pytest.mark.parametrize(("name", "value"), [("to", 1e308), ("from", float("-inf")), ("", None)])
def test_a_damaged_bundle_is_none_and_steers_no_terminal(
    bundle: Path, name: str, value: float | None
) -> None:
    about = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**about, name: value}) if name else "[")
    assert "damaged" in judged(bundle)[1]
    about["files"]["\x1b[2Jwhole and complete\u202e"] = ""
    (bundle / "bundle.json").write_text(json.dumps(about))
    assert judged(bundle) == (False, "\\u001b[2Jwhole and complete\\u202e is missing")


def test_an_archive_is_verified_as_it_is_and_nothing_is_overwritten(
    bundle: Path, examined: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{examined[0].parent}/store.db")
    packed, key = bundle.parent / "all.zip", bundle.parent / "k.pub"
    assert refused("records", "export", *EVER, "-o", bundle) == "exists"
    (bundle.parent / "empty").mkdir()
    ran("records", "export", *EVER, "-o", bundle.parent / "empty")
    ran("records", "export", *EVER, "-o", packed)
    assert ran("records", "verify", "--bundle", packed, "--key", key).startswith("whole and comp")
    with zipfile.ZipFile(packed, "w") as archive:
        for path in (path for path in bundle.rglob("*") if path.is_file()):
            more = b"\n" if path.name == "register.csv" else b""
            archive.writestr(f"all/{path.relative_to(bundle)}", path.read_bytes() + more)
    assert run("records", "verify", "--bundle", packed, "--key", key).exit_code == 1
    packed.write_text("not an archive")
    assert refused("records", "verify", "--bundle", packed, "--key", key) == "no-archive"


@pytest.mark.parametrize("name", ["traces/../../../evil.jsonl", "/etc/evil", "a//b", "a\\b"])
def test_no_file_of_a_bundle_lies_outside_of_it(tmp_path: Path, name: str) -> None:
    for target in (tmp_path / "bundle", tmp_path / "bundle.zip"):
        with pytest.raises(UserMistake, match="unsafe-name"):
            write_bundle(target, {name: b"x"})
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 511))
def test_its_own_signatures_are_the_librarys(message: bytes, bit: int) -> None:
    key = generate_key()
    signature = key.sign(message)
    assert signed_by(key.public, signature, message)
    raw = bytearray(bytes.fromhex(signature))
    raw[bit // 8] ^= 1 << bit % 8
    assert not signed_by(key.public, raw.hex(), message)
