"""What an auditor is given: whatever is changed in it, left out of it or put into it is named."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sopilot.cli.main import sopilot
from sopilot.messages.errors import UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.journal import write
from sopilot.runner.versions import write_bundle
from sopilot.stores.sqlite import SQLiteStore

CLOCK = SystemClock()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(sopilot, list(arguments))


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOPILOT_STORE", f"sqlite:{tmp_path}/store.db")
    run("run", "bank", "--task", "wire-rent-lyon")
    run("handbooks", "release", "bank", "--as", "Ada")
    run("trace", "keygen", str(tmp_path / "k"))
    run("records", "seal", "--key", str(tmp_path / "k"), "--to", str(tmp_path / "h"))
    made = run(
        "records", "export", "--from", "2020-01-01", "--to", "2099-01-01", "-o", str(tmp_path / "b")
    )
    assert made.exit_code == 0, made.output
    return tmp_path / "b"


def judged(bundle: Path) -> tuple[bool, str]:
    done = run(
        "records",
        "verify",
        "--bundle",
        str(bundle),
        "--key",
        str(bundle.parent / "k.pub"),
        "--json",
    )
    told = json.loads(done.stdout)
    assert done.exit_code == (0 if told["whole"] else 1)
    return told["whole"], "\n".join(told["says"])


def forged(bundle: Path, file: str, change: Callable[[str], str]) -> None:
    """As one would who has the bundle and knows how it is made."""
    path = bundle / file
    path.write_text(change(path.read_text()))
    about = json.loads((bundle / "bundle.json").read_text())
    about["files"][file] = hashlib.sha256(path.read_bytes()).hexdigest()
    (bundle / "bundle.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("register.json", '"amount": 650', '"amount": 65'),
        ("register.json", '"count": 1', '"count": 2'),
        ("register.csv", "650", "65"),
        ("register.csv", "carried out", "failed"),
        ("deviations.json", "[]", '[{"deviation": 1, "state": "closed"}]'),
        ("handbooks/bank-1.yaml", "largest_wire: 5000", "largest_wire: 500"),
    ],
)
def test_what_people_read_in_a_bundle_is_what_was_sealed(
    bundle: Path, file: str, old: str, new: str
) -> None:
    assert judged(bundle)[0]
    assert old in (bundle / file).read_text()
    forged(bundle, file, lambda text: text.replace(old, new, 1))
    whole, told = judged(bundle)
    assert not whole, told
    assert file in told


def test_rows_behind_the_seal_are_nobodys_word(bundle: Path) -> None:
    """Events can be written behind the sealed ones without any key, and rows to fit."""
    about = json.loads((bundle / "bundle.json").read_text())
    one = next(name for name in about["sessions"] if not name.startswith("journal."))

    def with_another(text: str) -> str:
        line = text.splitlines()[-1]
        event = json.loads(line)
        digest = event.pop("hash")
        event.update(seq=event["seq"] + 1, previous=digest)
        raw = json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        sealed = {**event, "hash": hashlib.sha256(raw.encode()).hexdigest()}
        return text + json.dumps(sealed, sort_keys=True, separators=(",", ":")) + "\n"

    forged(bundle, f"traces/{one}.jsonl", with_another)
    forged(bundle, "rows.jsonl", lambda text: text.replace("650", "65"))
    assert "went on after the seal" in judged(bundle)[1]


def test_a_bundle_says_of_which_time_it_is_and_speaks_no_terminals_language(bundle: Path) -> None:
    assert "from 2020-01-01 00:00:00Z to 2099-01-02 00:00:00Z" in judged(bundle)[1]
    about = json.loads((bundle / "bundle.json").read_text())
    about["files"]["\x1b[2Jwhole and complete\u202e"] = ""
    (bundle / "bundle.json").write_text(json.dumps(about))
    assert judged(bundle) == (False, "\\x1b[2Jwhole and complete\\u202e is missing")
    (bundle / "bundle.json").write_text("[")
    assert "damaged" in judged(bundle)[1]


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bundle with contents and a deviation that two people saw to; the session."""
    folder = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOPILOT_STORE", f"sqlite:{folder}/store.db")
        run("people", "require", "privacy")
        done = run("run", "bank", "--task", "wire-rent-lyon", "--json")
        session = json.loads(done.stdout)["session"]
        run("handbooks", "release", "bank", "--as", "Ada")

        async def opened() -> None:
            store = SQLiteStore(folder / "store.db")
            finding = {"session": session, "code": "x", "event": 3, "explanation": "m"}
            said = {**finding, "sentence": "", "by": "Ada", "identity": "unauthenticated"}
            await write(store, "deviations", "deviation_opened", said, clock=CLOCK)
            await store.close()

        asyncio.run(opened())
        run(
            "records",
            "deviations",
            "assign",
            "0",
            "--owner",
            "Bo",
            "--due",
            "2026-12-01",
            "--as",
            "Ada",
        )
        run("records", "deviations", "judge", "0", "true", "--cause", "haste", "--as", "Ada")
        run("records", "deviations", "close", "0", "--as", "Cy")
        run("trace", "keygen", str(folder / "k"))
        run("trace", "sign", session, "--key", str(folder / "k"), "-o", str(folder / "head"))
        run("records", "seal", "--key", str(folder / "k"))
        wanted = ("--from", "2020-01-01", "--to", "2099-01-01", "--payloads")
        made = run("records", "export", *wanted, "-o", str(folder / "b"))
        assert made.exit_code == 0, made.output
    return folder / "b", session


@pytest.fixture
def with_contents(examined: tuple[Path, str], tmp_path: Path) -> tuple[Path, str]:
    shutil.copytree(examined[0], tmp_path / "b")
    shutil.copy(examined[0].parent / "k.pub", tmp_path / "k.pub")
    return tmp_path / "b", examined[1]


def test_the_first_export_of_contents_is_whole(with_contents: tuple[Path, str]) -> None:
    """That it was read is on record since, and covered by no seal: that is no fault of it."""
    whole, told = judged(with_contents[0])
    assert whole, told
    assert "as of 20" in told


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("deviations.json", '"Bo"', '"Zed"'),
        ("deviations.json", '"haste"', '"nothing"'),
        ("deviations.json", '"closed_by": "Cy"', '"closed_by": "Di"'),
        ("deviations.json", '"entry": "deviation_assigned"', '"entry": "deviation_reopened"'),
        ("register.csv", "override", "xxx"),
        ("traces/SESSION.jsonl", '"model":"reference"', '"model":"another"'),
        ("traces/SESSION.jsonl", "Claire Fontaine", "Clara Montagne"),
        ("traces/SESSION.jsonl", "sopilot_program: 1", "sopilot_program: 3"),
        ("traces/SESSION.jsonl", '"signature":"', '"signature":"00'),
    ],
)
def test_nothing_beside_the_chain_is_another(
    with_contents: tuple[Path, str], file: str, old: str, new: str
) -> None:
    bundle, file = with_contents[0], file.replace("SESSION", with_contents[1])
    assert old in (bundle / file).read_text()
    forged(bundle, file, lambda text: text.replace(old, new, 1))
    whole, told = judged(bundle)
    assert not whole, told
    assert file.rpartition("/")[2] in told


def test_a_line_that_is_no_event_says_nothing(with_contents: tuple[Path, str]) -> None:
    note = {"name": "deviation_judged", "details": {"deviation": 0, "disposition": "false-alarm"}}
    line = json.dumps({"kind": "note", "seq": 9, "payload": note})
    forged(with_contents[0], "traces/journal.deviations.jsonl", lambda text: f"{text}{line}\n")
    assert "is not what was recorded" in judged(with_contents[0])[1]


def test_no_journal_is_left_out_and_no_file_put_in(with_contents: tuple[Path, str]) -> None:
    bundle = with_contents[0]
    (bundle / "handbooks" / "bank-2.yaml").write_text("handbook: another")
    assert judged(bundle) == (False, "handbooks/bank-2.yaml is no file of it")
    (bundle / "handbooks" / "bank-2.yaml").unlink()
    about = json.loads((bundle / "bundle.json").read_text())
    about["from"], about["to"] = 1.6e9, 1.61e9  # when no journal began
    about["sessions"].remove("journal.deviations")
    del about["files"]["traces/journal.deviations.jsonl"]
    (bundle / "bundle.json").write_text(json.dumps(about))
    (bundle / "traces" / "journal.deviations.jsonl").unlink()
    assert "journal.deviations is left out" in judged(bundle)[1]


@pytest.mark.parametrize(("name", "value"), [("to", 1e308), ("from", float("-inf"))])
def test_a_bundle_of_no_time_is_none(
    with_contents: tuple[Path, str], name: str, value: float
) -> None:
    about = json.loads((with_contents[0] / "bundle.json").read_text())
    (with_contents[0] / "bundle.json").write_text(json.dumps({**about, name: value}))
    assert "damaged" in judged(with_contents[0])[1]


@pytest.mark.parametrize("name", ["traces/../../../evil.jsonl", "/etc/evil", "a//b", "a\\b"])
def test_no_file_of_a_bundle_lies_outside_of_it(tmp_path: Path, name: str) -> None:
    for target in (tmp_path / "bundle", tmp_path / "bundle.zip"):
        with pytest.raises(UserMistake, match="unsafe-name"):
            write_bundle(target, {name: "x"})
    assert list(tmp_path.iterdir()) == []
