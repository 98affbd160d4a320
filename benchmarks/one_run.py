"""What one run of a task touches: functions, the calls between the shell and a step of the
machine, files read, handbooks parsed, audits.

python benchmarks/one_run.py [--src OTHER/src]

A task of a bundled example and a scenario of a handbook of one's own, each in a fresh process with
a profiler that counts functions of this project. `--src` measures another checkout beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

OWN = Path(__file__).parents[1] / "src"
EXAMPLE_TASK = ("bank", "--task", "refund-unknown-shop")
MEASURE = r"""
import collections, json, os, sys
root = os.path.abspath(sys.argv[1])
sys.path.insert(0, root)
touched, classes, calls, opened = set(), set(), collections.Counter(), collections.Counter()
ways = []
def profile(frame, event, argument):
    if event != "call":
        return
    code = frame.f_code
    if code.co_filename.startswith(root) and not code.co_name.startswith("<"):
        # The body of a class runs when its file is imported, and is no function.
        kind = touched if code.co_flags & 2 else classes
        kind.add((code.co_filename, code.co_qualname))
        calls[code.co_name] += 1
        if code.co_qualname == "Machine.step":
            way = []
            while frame := frame.f_back:
                if frame.f_code.co_filename.startswith(root):
                    way.append(frame.f_code.co_qualname)
            ways.append(way[::-1])
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.abspath(arguments[0])
        if path.endswith((".yaml", ".yml")):
            opened[path] += 1
sys.addaudithook(hook)
from sopilot.cli.main import main
import threading
sys.setprofile(profile)
threading.setprofile(profile)
code = main(["run", *sys.argv[3:]])
sys.setprofile(None)
figures = {
    "exit": code,
    "functions": len(touched),
    "calls to a step": f"{min(map(len, ways))} to {max(map(len, ways))}",
    "the longest way": max(ways, key=len),
    "classes": len(classes),
    "source files": len({file for file, _ in touched | classes}),
    "data files read": len(opened),
    "read more than once": sorted(os.path.basename(p) for p, n in opened.items() if n > 1),
    "handbooks parsed": calls["read_handbook"],
    "closing audits": calls["audit_trace"] + calls["audit_untracked"],
    "audits of any kind": calls["read_events"],
}
with open(sys.argv[2], "w") as file:
    json.dump(figures, file)
"""


def measure(source: Path, *arguments: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        environment = {**os.environ, "SOPILOT_HOME": folder, "PYTHONPATH": str(source)}
        subprocess.run(
            [sys.executable, "-c", MEASURE, str(source), str(out), *arguments],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        figures: dict[str, object] = json.loads(out.read_text(encoding="utf-8"))
        return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--src", type=Path, help="the src folder of another checkout")
    compared = parser.parse_args().src
    with tempfile.TemporaryDirectory() as folder:
        make = "from sopilot.cli.main import main; main(['new', 'my-desk'])"
        made = {**os.environ, "PYTHONPATH": str(OWN)}
        quiet = subprocess.DEVNULL
        subprocess.run([sys.executable, "-c", make], check=True, cwd=folder, env=made, stdout=quiet)
        for task in (EXAMPLE_TASK, (str(Path(folder) / "my-desk.yaml"),)):
            print(" ".join(task))
            now = measure(OWN, *task)
            before = measure(compared.resolve(), *task) if compared is not None else {}
            for name, value in now.items():
                print(f"  {name:22} {value}" + (f"   (there: {before[name]})" if before else ""))


if __name__ == "__main__":
    main()
