"""A session is resumed, and its handbook is another one by now."""

from __future__ import annotations

from dataclasses import replace

import click

from sopilot.doors.cli.scene import Description, Scene
from sopilot.language.diagnostics import Diagnostic, Place, UserMistake
from sopilot.runtime.agent import Arm, Briefing, run_programs
from sopilot.runtime.session import ProgramChanged, Session

_CURE = (
    "`--as-started` goes on with the program that the session began with; `--accept-changed` "
    "goes over to the present one, where what was running is started again"
)

_FRAMES_ONLY = frozenset({"pg", "fused", "state-only"})


def changed_since(description: Description, changed: ProgramChanged) -> UserMistake:
    """The same refusal with its place, and with what this command offers."""
    place = Place(description.source)
    return UserMistake([replace(one, place=place, help=_CURE) for one in changed.diagnostics])


def as_it_started(scene: Scene, session: Session, arm: Arm) -> Scene:
    """The scene for the session's own programs, and on stderr what the model is shown of them.

    Where the kept handbook does not make these programs (another release compiles otherwise,
    or none was kept), only an arm that shows nothing but frames can go on.
    """
    present = run_programs(scene.briefing, arm, unguarded=scene.simulated)
    stored = session.programs
    if present.hashes == stored.hashes:
        click.echo("as started: the model is shown the handbook as it stood then", err=True)
        return scene
    handbook = scene.briefing.handbook
    if arm.name not in _FRAMES_ONLY or not stored.programs.keys() <= handbook.procedures.keys():
        raise UserMistake(
            [
                Diagnostic(
                    "handbook-not-kept",
                    f"the arm `{arm.name}` shows the handbook, and the one that this session "
                    "began with was not kept",
                    help="go over to the present one with `--accept-changed`, or run it anew",
                )
            ]
        )
    click.echo("as started: the model is shown frames of the program that was stored", err=True)
    return replace(scene, briefing=Briefing(handbook, stored.programs, scene.briefing.language))
