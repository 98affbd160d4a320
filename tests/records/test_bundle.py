"""A bundle is checked with nothing but Python, and says what was touched."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from sopilot.cli.main import sopilot
from sopilot.records.merkle_tree import leaf_hash, root_hash
from sopilot.records.offline_verifier import tree_root
from sopilot.trace.ed25519 import signed_by
from sopilot.trace.signing import generate_key


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    for task in ("transfer-rent-share", "wire-rent-lyon"):
        assert run("run", "bank", "--task", task).exit_code == 0
    run("handbooks", "release", "bank", "--as", "Ada")
    run("trace", "keygen", str(tmp_path / "k"))
    refused = run(
        "records", "export", "--from", "2020-01-01", "--to", "2099-01-01", "-o", str(tmp_path / "b")
    )
    assert "nothing was sealed" in str(refused.exception)
    run("records", "seal", "--key", str(tmp_path / "k"), "--to", str(tmp_path / "h"))
    made = run(
        "records", "export", "--from", "2020-01-01", "--to", "2099-01-01", "-o", str(tmp_path / "b")
    )
    assert made.exit_code == 0, made.output
    return tmp_path / "b"


def verified(bundle: Path, *keys: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(bundle / "verify.py"), *keys],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_bundle_is_whole_and_says_what_was_touched(bundle: Path) -> None:
    key = str(bundle.parent / "k.pub")
    code, told = verified(bundle, key)
    assert (code, told.splitlines()[0][:18]) == (0, "whole and complete"), told
    assert "not shown by this" in told
    summary = (bundle / "SUMMARY.txt").read_text()
    assert "2 sessions, 2 actions" in summary
    assert "1 x wire_abroad carried out" in summary
    assert (bundle / "handbooks" / "bank-1.yaml").exists()
    assert "wire_abroad" in (bundle / "register.csv").read_text()
    assert "another key" in verified(bundle, generate_key().public)[1]

    about = json.loads((bundle / "bundle.json").read_text())
    one = next(name for name in about["sessions"] if not name.startswith("journal."))
    trace = bundle / "traces" / f"{one}.jsonl"

    def touched(change: Callable[[str], str], path: Path, problem: str) -> None:
        whole = path.read_text()
        path.write_text(change(whole))
        code, told = verified(bundle, key)
        assert code == 1, told
        assert problem in told, told
        path.write_text(whole)

    lines = trace.read_text().splitlines(keepends=True)
    touched(lambda t: t.replace('"amount":', '"Amount":', 1), trace, "is not what was recorded")
    touched(lambda _: "".join(lines[:5]), trace, "events,")
    touched(lambda t: t.replace('\\"', "x", 1), bundle / "rows.jsonl", "register's rows")
    log = bundle / "heads.jsonl"
    touched(lambda t: "".join(t.splitlines(keepends=True)[1:]), log, "hole")
    touched(lambda t: t.replace('"root":"', '"root":"0', 1), log, "signature")
    fewer = [name for name in about["sessions"] if name != one]
    touched(
        lambda _: json.dumps({**about, "sessions": fewer}), bundle / "bundle.json", "is left out"
    )
    trace.unlink()
    assert "is missing" in verified(bundle, key)[1]


def test_an_archive_and_no_overwriting(bundle: Path) -> None:
    wanted = ("records", "export", "--from", "2020-01-01", "--to", "2020-01-02", "-o")
    assert run(*wanted, str(bundle)).exception is not None
    assert run(*wanted, str(bundle.parent / "none.zip")).exit_code == 0


def test_an_archive_is_verified_as_it_is(bundle: Path) -> None:
    packed, key = bundle.parent / "all.zip", str(bundle.parent / "k.pub")
    span = ("--from", "2020-01-01", "--to", "2099-01-01")
    assert run("records", "export", *span, "-o", str(packed)).exit_code == 0
    whole = run("records", "verify", "--bundle", str(packed), "--key", key)
    assert (whole.exit_code, whole.output[:18]) == (0, "whole and complete"), whole.output
    with zipfile.ZipFile(packed, "w") as archive:
        for path in (one for one in bundle.rglob("*") if one.is_file()):
            text = path.read_text() + ("\n" if path.name == "register.csv" else "")
            archive.writestr(f"all/{path.relative_to(bundle)}", text)
    assert run("records", "verify", "--bundle", str(packed), "--key", key).exit_code == 1
    packed.write_text("not one")
    refused = run("records", "verify", "--bundle", str(packed), "--key", key)
    assert "the .zip that `sopilot records export` wrote" in str(refused.exception)


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 511))
def test_its_own_signatures_and_trees_are_the_librarys(message: bytes, bit: int) -> None:
    key = generate_key()
    signature = key.sign(message)
    assert signed_by(key.public, signature, message)
    raw = bytearray(bytes.fromhex(signature))
    raw[bit // 8] ^= 1 << bit % 8
    assert not signed_by(key.public, raw.hex(), message)
    leaves = [leaf_hash(bytes([n])) for n in range(bit % 37)]
    assert tree_root(leaves) == root_hash(leaves).hex()
