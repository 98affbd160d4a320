"""Runs the commands of a document, in one folder a document, inside this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sopilot.cli.main import main

MAKEFILE = Path(__file__).parents[2] / "Makefile"
PROJECT = MAKEFILE.with_name("pyproject.toml")


class DocumentShell:
    """Knows ``sopilot``, ``python FILE``, ``cd``, ``mkdir``, ``cat``, ``make`` (whose target must
    exist) and ``pip install`` (whose extras must exist; it installs nothing).

    In arguments ``ID`` is the latest session and ``CALL`` its first held call, as a
    reader would fill them in from what was printed before.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        patch.chdir(folder)
        patch.setenv("SOPILOT_HOME", str(folder / ".sopilot"))
        patch.setenv("NO_COLOR", "1")
        # As after `source .venv/bin/activate`.
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("SOPILOT_STORE", raising=False)

    def run(self, command: str) -> tuple[int, str]:
        """Exit code, and both outputs as a terminal would show them."""
        words = shlex.split(command)
        target = None
        if ">" in words:
            at = words.index(">")
            target, words = words[at + 1], words[:at]
        if words[0] == "cd":
            self._patch.chdir(words[1])
            return 0, ""
        if words[0] == "mkdir":
            Path(words[1]).mkdir()
            return 0, ""
        if words[0] == "cat":
            return 0, Path(words[1]).read_text(encoding="utf-8")
        if words[0] == "make":
            targets = re.findall(r"^([a-z-]+):", MAKEFILE.read_text(encoding="utf-8"), re.M)
            return (0 if words[1] in targets else 2), ""
        if words[0] == "pip":
            return self._pip(words)
        if words[0] == "python":
            return self._process([sys.executable, "-W", "error", *words[1:]])
        assert words[0] in ("sopilot", ".venv/bin/sopilot"), f"cannot run `{command}`"
        code, out = self.sopilot(self._filled_in(words[1:]))
        if target is not None:
            Path(target).write_text(out, encoding="utf-8")
            return code, ""
        return code, out

    def python(self, text: str) -> tuple[int, str]:
        return self._process([sys.executable, "-W", "error", "-c", text])

    def _process(self, words: list[str]) -> tuple[int, str]:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def _pip(self, words: list[str]) -> tuple[int, str]:
        """``pip install 'sopilot[mcp,sign]'``: whether the extras are ours."""
        named = re.fullmatch(r"sopilot(?:\[([\w,-]+)\])?", words[-1])
        extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
        known = extras["optional-dependencies"]
        wrong = named is None or any(
            extra not in known for extra in (named.group(1) or "").split(",") if extra
        )
        return int(wrong), ""

    def sopilot(self, arguments: list[str]) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(arguments)
        return code, out.getvalue()

    def _filled_in(self, words: list[str]) -> list[str]:
        if "ID" not in words:
            return words
        _, listed = self.sopilot(["sessions", "list", "--json", "--limit", "1"])
        session = json.loads(listed)["sessions"][0]["id"]
        words = [session if word == "ID" else word for word in words]
        if "CALL" in words:
            _, waiting = self.sopilot(["approvals", "list", session, "--json"])
            call = json.loads(waiting)["held"][0]["call_id"]
            words = [call if word == "CALL" else word for word in words]
        return words
