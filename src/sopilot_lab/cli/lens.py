"""`sopilot lab lens`: where an open-weight model looks in the requests of a recorded session."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import click

from sopilot.cli.options import IN_STORE, NEW_FILE, option, wants_json
from sopilot.cli.output import Output, warn
from sopilot.files.text import write_whole
from sopilot.messages.errors import UserMistake
from sopilot.runner.audit_inputs import TraceInput, read_input
from sopilot.runner.options import stored_options
from sopilot.runner.store_access import StoreAccess
from sopilot.web.pages import Drawing
from sopilot_lab.cli.options import shown
from sopilot_lab.lens.moments import chosen_moments, sweep_moments
from sopilot_lab.lens.open_weights import DTYPES, named_weights
from sopilot_lab.lens.report import plot as draw
from sopilot_lab.lens.report import summarise, summary_lines
from sopilot_lab.lens.study import studies


@click.command(
    help="Show where an open-weight model looks in the requests of a recorded session, and which "
    "text decides its answer. WHAT is a session's ID, a trace file with --handbook, or a folder "
    "of `lab run --traces`, whose passing runs are pooled.\n\n"
    "A parity of 1.0 means attention in proportion to length. Needs the extra `lens`."
)
@click.argument("what", metavar="WHAT")
@shown(
    "--model", "local (SmolLM2), a GGUF file, or a folder as Transformers saves it.",
    default="local",
)  # fmt: skip
@option("--handbook SOURCE", "Handbook of a trace file.")
@option("--arm", "View to analyse the session under. Default: the view it ran under.")
@option("--goal", "Goal of the user, if the session never started it.")
@shown(
    "--moments", "Number of requests to analyse, spread over each session.", "count",
    type=click.IntRange(min=1), default=4,
)  # fmt: skip
@shown(
    "--sessions", "Number of passing runs to analyse, spread over the folder.",
    type=click.IntRange(min=1), default=12,
)  # fmt: skip
@shown("--device", "Device, as PyTorch names it: cuda, mps.", default="cpu")
@shown(
    "--dtype", "Precision of the weights; sums use double precision.",
    type=click.Choice(DTYPES), default="float32",
)  # fmt: skip
@option(
    "--plot", "Draw layers, heads and regions: FILE.svg, or FILE.pdf with the extra `figures`.",
    "plot_file", type=NEW_FILE,
)  # fmt: skip
@IN_STORE
def command(
    what: str,
    model: str,
    handbook: str | None,
    arm: str | None,
    goal: str | None,
    count: int,
    sessions: int,
    device: str,
    dtype: str,
    plot_file: Path | None,
    store: StoreAccess,
) -> Output:
    begun = time.monotonic()
    if Path(what).is_dir():
        chosen, taken = sweep_moments(Path(what), arm, sessions, count)
        looked_at: dict[str, object] = {"runs": what, "sessions": taken}
    else:
        is_file = Path(what).exists()
        session = what if is_file else store.session_id(what)
        recorded = read_input(session, store, handbook=handbook, goal=goal, secrets=True)
        if not isinstance(recorded, TraceInput):
            raise UserMistake("the lens needs a session or its trace: a transcript has no frames")
        described = None if is_file else store.read(lambda opened: stored_options(opened, session))
        chosen = chosen_moments(recorded, described, handbook, arm, goal, count)
        looked_at = {"session": recorded.trace.session_id}
    weights = named_weights(model, device=device, dtype=dtype)
    result = studies(weights, chosen, _quiet if wants_json() else warn)
    summary = summarise(weights.name, result)
    if summary is None:
        raise UserMistake(
            "every request is longer than the model's context: choose a larger --model"
        )
    if plot_file is not None:
        _write_plot(plot_file, draw(summary))
    cost = {
        "seconds": round(time.monotonic() - begun, 1),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    spent = f"\n{cost['seconds']} s, {cost['peak_memory_mib']} MiB at most"
    return Output({**looked_at, **summary, **cost}, (*summary_lines(summary), spent))


def _quiet(text: str) -> None:
    """For scripts, which get the whole result at the end."""


def _write_plot(file: Path, drawing: Drawing) -> None:
    if file.suffix != ".pdf":
        write_whole(file, drawing.as_file(), private=True)
        return
    try:
        made = drawing.as_pdf()
    except ImportError as error:
        raise UserMistake("a PDF needs: pip install 'sopilot[figures]'") from error
    file.write_bytes(made)
