"""The tests of a mutant: those that run its line, the quickest first, in a forked interpreter.

``python mutant_tests.py MAP TESTS…`` runs the tests once and writes to MAP how long each takes
and which lines it runs (with `coverage`). A `Runner` imports everything that is not ours, forks
for every mutant, and runs the chosen tests in the child: what a mutant costs is its tests.
"""

from __future__ import annotations

import json
import os
import py_compile
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

FIRST, MOST = 30, 90
"""Tests of the first try, of which most mutants die, and of all but the package's own: what only
slower ones would kill counts as alive."""
BROKEN = 70
SECONDS = 100.0
"""Time limit for the tests of one mutant; the rest isn't run."""


@dataclass(frozen=True, slots=True)
class Coverage:
    seconds: dict[str, float]
    """Test function → how long all of its cases take."""
    lines: dict[str, dict[int, list[str]]]
    """File → line → the tests that run it."""
    modules: list[str]
    """Modules of others that the tests import."""

    @classmethod
    def read(cls, file: Path) -> Coverage:
        report = json.loads(file.read_text("utf-8"))
        names = list(report["seconds"])
        return cls(
            report["seconds"],
            {
                file: {int(line): [names[test] for test in tests] for line, tests in lines.items()}
                for file, lines in report["lines"].items()
            },
            report["modules"],
        )

    def stages(self, file: str, first: int, last: int) -> list[list[str]]:
        """Tests that run one of these lines; of a line that is run by importing alone, those
        that run anything in the file. The quickest first, then all of its own package. None where
        no test runs it at all."""
        lines = self.lines.get(file, {})
        here = [lines[line] for line in range(first, last + 1) if line in lines]
        near = {test for tests in here for test in tests}
        if here and not near:
            near = {test for tests in lines.values() for test in tests}
        ordered = sorted(near, key=self.seconds.__getitem__)
        package = Path("tests", *Path(file).parent.parts[2:]).as_posix()
        rest = [
            test
            for place, test in enumerate(ordered[FIRST:], FIRST)
            if place < MOST or test.startswith(f"{package}/")
        ]
        return [stage for stage in (ordered[:FIRST], rest) if stage]


class _Recorder:
    """A plugin of pytest."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        name = item.nodeid.partition("[")[0]
        self._coverage.switch_context(name)
        begun = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[name] += time.perf_counter() - begun
            self._coverage.switch_context("")


def make_map(file: Path, tests: list[str]) -> int:
    import coverage as tool

    tracer = tool.Coverage(
        data_file=None, source_pkgs=["sopilot", "sopilot_lab"], config_file=False
    )
    recorder = _Recorder(tracer)
    tracer.start()
    code = pytest.main(
        ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=short", *tests], [recorder]
    )
    tracer.stop()
    names = {name: number for number, name in enumerate(recorder.seconds)}
    lines: dict[str, dict[int, list[int]]] = {}
    data = tracer.get_data()
    for path in data.measured_files():
        shown = str(Path(path).relative_to(Path.cwd()))
        lines[shown] = {
            line: sorted(names[test] for test in contexts if test in names)
            for line, contexts in data.contexts_by_lineno(path).items()
        }
    ours = ("sopilot", "tests", "conftest", "test_", "_pytest", "pytest", "coverage", "__")
    modules = sorted(
        name
        for name, module in sys.modules.items()
        if not name.startswith(ours) and "site-packages" in (getattr(module, "__file__", "") or "")
    )
    report = {"seconds": dict(recorder.seconds), "lines": lines, "modules": modules}
    file.write_text(json.dumps(report), "utf-8")
    return int(code)


class Runner:
    """Runs tests in ``tree``, a copy that is its own, with one of its files changed."""

    def __init__(self, tree: Path, modules: Iterable[str], log: Path) -> None:
        self._tree, self._log = tree, log
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.path.insert(0, str(tree / "src"))
        for file in (tree / "src").rglob("*.py"):
            _compiled(file)
        for name in modules:
            with suppress(Exception):
                import_module(name)
        assert not any(name.partition(".")[0] == "sopilot" for name in sys.modules)
        # The tests' own bytecode, which pytest makes anew otherwise for every mutant.
        self._in_a_child(["--collect-only", "tests"], 600.0, keeps_bytecode=True)

    def killed(self, file: str, text: str, stages: list[list[str]]) -> str | None:
        """Return the test that failed, or ``None``."""
        target = self._tree / file
        original = target.read_text("utf-8")
        ends = time.monotonic() + SECONDS
        # Bytecode is not held against its source (see _compiled), so that of a mutant must go.
        Path(cache_from_source(str(target))).unlink(missing_ok=True)
        target.write_text(text, "utf-8")
        try:
            for stage in stages:
                left = ends - time.monotonic()
                if left > 0 and (failed := self._in_a_child(["-x", *stage], left)) is not None:
                    return failed
            return None
        finally:
            target.write_text(original, "utf-8")
            _compiled(target)

    def _in_a_child(
        self, arguments: list[str], seconds: float, *, keeps_bytecode: bool = False
    ) -> str | None:
        sys.stdout.flush()
        begun = time.monotonic()
        process = os.fork()
        if process == 0:
            os.setsid()
            _run(arguments, self._log, keeps_bytecode=keeps_bytecode)
        while time.monotonic() - begun < seconds:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return self._failure(os.waitstatus_to_exitcode(status))
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return "hangs" if self._stands_still() else None

    def _stands_still(self) -> bool:
        """One test that does not end, and not many that take their time."""
        return time.time() - self._log.stat().st_mtime > SECONDS / 3

    def _failure(self, code: int) -> str | None:
        if code in (0, 5):
            return None
        text = self._log.read_text(errors="replace")
        if code == BROKEN:
            raise RuntimeError(f"the tests could not be run: {text[-2000:]}")
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0].split(" - ")[0][:160] if failed else f"exit {code}"


def _run(arguments: list[str], log: Path, *, keeps_bytecode: bool) -> None:
    """The child's whole life."""
    code = BROKEN
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        sys.dont_write_bytecode = not keeps_bytecode
        code = int(
            pytest.main(
                # Plugins are imported before, which is no fault here.
                [
                    "-W",
                    "ignore::pytest.PytestAssertRewriteWarning",
                    "-q",
                    "-m",
                    "not slow",
                    "-p",
                    "no:cacheprovider",
                    "--tb=line",
                    *arguments,
                ]
            )
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _compiled(file: Path) -> None:
    """Not held against its source, whose second and size a mutant's may share."""
    py_compile.compile(str(file), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


if __name__ == "__main__":
    sys.exit(make_map(Path(sys.argv[1]), sys.argv[2:]))
