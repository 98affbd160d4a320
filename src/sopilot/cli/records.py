"""`sopilot records`: the actions of all sessions, their seal and proofs, deviations."""

from __future__ import annotations

import click

from sopilot.cli.lazy_group import LazyGroup

COMMANDS = {
    "actions": ("register.command", "List every action of all sessions, with its proof level."),
    "seal": ("seal.command", "Seal the log of all sessions and send the head elsewhere."),
    "verify": ("verify.command", "Compare a store with a sealed head."),
    "prove": ("prove.command", "Prove that a session is in the log, or that the log only grew."),
    "export": ("export.command", "Export a period as a bundle with an offline verifier."),
    "deviations": ("deviations.command", "Track findings from opening to closing."),
}


@click.group(cls=LazyGroup, package=__package__, commands_on_use=COMMANDS)
def command() -> None:
    """Query, seal and verify the records of all sessions."""
