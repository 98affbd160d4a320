"""What people name as a file may have no end, and what they write in one may stand for more than
a machine can hold."""

from __future__ import annotations

import os
import re
import threading
import time
import zipfile
from pathlib import Path

import pytest
import yaml

import sopilot
from sopilot.files.settings import filled, read_settings
from sopilot.files.text import load_yaml, read_text, whole_bytes, whole_text
from sopilot.integrations.mcp.options import read_upstreams
from sopilot.messages.errors import UserMistake
from sopilot.records.bundle_verifier import check_bundle
from sopilot.runner.releases import unpacked
from sopilot.stores.sealed_heads import sealed_text, trace_text
from sopilot_lab.experiments.outcome_files import rows_of

ENDLESS = Path("/dev/zero")
SRC = Path(sopilot.__file__).parent
needs_devices = pytest.mark.skipif(not ENDLESS.exists(), reason="there is no endless file here")


@needs_devices
def test_a_file_without_an_end_is_told_with_place_cause_and_cure() -> None:
    with pytest.raises(UserMistake) as told:
        read_text(ENDLESS)
    (one,) = told.value.diagnostics
    assert str(one.place) == "/dev/zero"
    assert "or never ends" in one.message
    assert one.help


@needs_devices
@pytest.mark.parametrize(
    "read",
    [sealed_text, trace_text, read_upstreams, read_settings, lambda path: rows_of([path])],
)
def test_every_reader_has_a_bound(read: object) -> None:
    assert callable(read)
    with pytest.raises(UserMistake, match="never ends"):
        read(ENDLESS)


def test_only_readers_with_a_bound_read_what_people_name() -> None:
    """What comes along with the package ends."""
    own = {"tasks/examples/example.py", "tasks/starter.py", "files/text.py"}
    found = {
        path.relative_to(SRC).as_posix()
        for package in ("files", "stores", "models", "tasks", "runner", "integrations", "cli")
        for path in (SRC / package).rglob("*.py")
        if re.search(r"\.read_(text|bytes)\(", path.read_text("utf-8"))
    }
    assert found <= own


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a\r\nb\r" * 50_000))
    writer.start()
    assert whole_text(pipe) == "a\nb\n" * 50_000
    writer.join(10)


def test_a_file_larger_than_memory_is_not_begun(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with open(sparse, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="1024 MB"):
        whole_bytes(sparse)


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 10)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


def test_aliases_that_multiply_are_told_at_once() -> None:
    begun = time.monotonic()
    for text in (BOMB, "a: &a [*a]"):
        with pytest.raises(yaml.YAMLError, match="too many values"):
            load_yaml(text)
    assert time.monotonic() - begun < 10
    assert load_yaml("a: &a [1]\nb: *a") == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("${SET}", "x"),
        ("${EMPTY:-y}", "y"),
        ("${NONE:-}", ""),
        ("a${SET}$b", "ax$b"),
        ("${EMPTY}", "unset-variable"),
        ("Bearer ${SET:?no}", "bad-variable"),
        ("${SET-y}", "bad-variable"),
        ("${NONE:-${SET}}", "bad-variable"),
        ("${SET", "bad-variable"),
    ],
)
def test_variables_are_filled_in_or_refused(text: str, reads: str) -> None:
    try:
        value = filled(text, "f", {"SET": "x", "EMPTY": ""})
    except UserMistake as refused:
        value = refused.diagnostics[0].code
    assert value == reads


def test_an_archive_that_would_fill_the_disk_is_not_unpacked(tmp_path: Path) -> None:
    bundle = tmp_path / "q.zip"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q/register.json", b"0" * (100 << 20))
    with pytest.raises(UserMistake, match="100 MB"), unpacked(bundle):
        pass


@needs_devices
def test_a_bundle_whose_files_have_no_end_is_no_bundle(tmp_path: Path) -> None:
    for name in ("bundle.json", "heads.jsonl", "rows.jsonl"):
        (tmp_path / name).symlink_to(ENDLESS)
    good, told = check_bundle(tmp_path, [])
    assert not good
    assert "bundle.json isn't a file" in told[0]
    with pytest.raises(UserMistake, match="neither a file nor a folder"), unpacked(ENDLESS):
        pass
