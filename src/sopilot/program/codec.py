"""The program artifact: YAML out, YAML in, and its hash."""

from __future__ import annotations

import hashlib

from sopilot.program.loader import program_from_yaml
from sopilot.program.model import Program
from sopilot.program.writer import program_to_yaml

__all__ = ["program_from_yaml", "program_hash", "program_to_yaml"]


def program_hash(program: Program) -> str:
    """SHA-256 of the artifact's bytes: two programs share it only if they are written alike."""
    return hashlib.sha256(program_to_yaml(program).encode()).hexdigest()
