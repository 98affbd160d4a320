"""Starts a command in the warm process (see `warm.py`), and ends as it ends. Loads little."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> None:
    _, address, loaded, *words = sys.argv
    asked = {
        "loaded": loaded,
        "words": words,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }
    there = socket.socket(socket.AF_UNIX)
    there.connect(address)
    text = json.dumps(asked).encode() + b"\n"
    sent = socket.send_fds(there, [text], [0, 1, 2])
    there.sendall(text[sent:])
    answers = there.makefile("r")
    pid = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, _: os.kill(pid, which))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    code = int(answers.readline() or -signal.SIGKILL)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
