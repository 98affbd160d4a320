"""`sopilot lens`: where an open-weight model looks in the requests of a recorded session."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import click

from sopilot.adapters.text_files import write_whole
from sopilot.doors.cli.audit import read_input
from sopilot.doors.cli.output import json_option, print_json, say, table
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.doors.sources.audit_inputs import TraceInput
from sopilot.doors.sources.recorded_moments import chosen_moments, sweep_moments
from sopilot.doors.sources.run_options import kept_options
from sopilot.lab.lens import (
    MomentStudy,
    OpenWeights,
    ReadMoment,
    Summary,
    load_weights,
    study,
    summarise,
)
from sopilot.lab.lens import plot as draw
from sopilot.language.diagnostics import UserMistake

NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    help="Where an open-weight model looks in the requests of a recorded session, and what it "
    "rests on. WHAT is a session's ID, a trace file with --handbook, or a folder of `bench run "
    "--traces`, whose passing runs are taken together.\n\n"
    "Parity 1.0 is attention in proportion to length. Needs the extra `lens`."
)
@click.argument("what", metavar="WHAT")
@click.option(
    "--model",
    "model",
    default="local",
    show_default=True,
    help="local (SmolLM2), a GGUF file, or a folder as Transformers saves it.",
)
@click.option("--handbook", metavar="SOURCE", help="The SOP of a trace file.")
@click.option("--arm", help="Show the session's places as this arm would. Default: its own.")
@click.option("--goal", help="What the user wants, where the session never started it.")
@click.option(
    "--moments", "count", type=click.IntRange(min=1), default=4, show_default=True,
    help="Requests to look at, spread over each session.",
)  # fmt: skip
@click.option(
    "--sessions", type=click.IntRange(min=1), default=12, show_default=True,
    help="Passing runs of a folder to look at, spread over it.",
)  # fmt: skip
@click.option("--plot", "plot_file", type=NEW_FILE, help="An SVG per layer and head.")
@STORE
@json_option
def command(
    what: str,
    model: str,
    handbook: str | None,
    arm: str | None,
    goal: str | None,
    count: int,
    sessions: int,
    plot_file: Path | None,
    store_spec: str | None,
    as_json: bool,
) -> None:
    begun = time.monotonic()
    if Path(what).is_dir():
        chosen, taken = sweep_moments(Path(what), arm, sessions, count)
        looked_at: dict[str, object] = {"runs": what, "sessions": taken}
    else:
        recorded = read_input(what, handbook=handbook, goal=goal, store_spec=store_spec)
        if not isinstance(recorded, TraceInput):
            raise UserMistake("the lens needs a session or its trace: a transcript has no frames")
        described = (
            None
            if Path(what).exists()
            else with_store(store_spec, lambda store: kept_options(store, what), reading=True)
        )
        chosen = chosen_moments(recorded, described, handbook, arm, goal, count)
        looked_at = {"session": recorded.trace.session_id}
    weights = _weights(model)
    studies = _studies(weights, chosen, quiet=as_json)
    summary = summarise(weights.name, studies)
    if summary is None:
        raise UserMistake("every request is longer than the model reads")
    if plot_file is not None:
        write_whole(plot_file, draw(summary), private=True)
    cost = {
        "seconds": round(time.monotonic() - begun, 1),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if as_json:
        print_json({**looked_at, **summary.as_json(), **cost})
    else:
        _show(summary)
        say(f"\n{cost['seconds']} s, {cost['peak_memory_mib']} MiB at most")


def _weights(model: str) -> OpenWeights:
    # The bar over a GGUF file heeds the environment alone, and only before it is imported.
    os.environ.setdefault("TQDM_DISABLE", "1")
    if model == "local":
        from sopilot.adapters.model_local_file import local_model_file

        return load_weights(local_model_file(), "SmolLM2-135M-Instruct")
    path = Path(model)
    if not path.exists():
        raise UserMistake(f"`{model}` is neither `local`, a GGUF file nor a folder")
    return load_weights(path)


def _studies(weights: OpenWeights, chosen: list[ReadMoment], *, quiet: bool) -> list[MomentStudy]:
    found = []
    for number, moment in enumerate(chosen, 1):
        one = study(weights, moment)
        if one is not None:
            found.append(one)
        if not quiet:
            what = "too long" if one is None else f"{one.tokens} tokens"
            say(f"{number}/{len(chosen)}  {moment.place or 'start'}: {what}", err=True)
    return found


def _show(summary: Summary) -> None:
    rows = [
        (
            line.region,
            line.presentation,
            line.moments,
            f"{100 * line.length_share:.1f}%",
            f"{100 * line.attention_share:.1f}%",
            f"{line.parity:.2f}",
        )
        for line in summary.lines
    ]
    header = ("region", "presented", "moments", "length", "attention", "parity")
    say(table(rows, header))
    say(
        f"\n{100 * summary.outside:.0f}% of the attention is on the template's own tokens and "
        "left out."
    )
    say("\nChange of the right move's log-probability without …")
    changed = [(name, n, f"{change:+.2f}") for name, (n, change) in summary.removed.items()]
    say(table(changed, ("region", "moments", "nats")))
