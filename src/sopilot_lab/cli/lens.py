"""`sopilot lab lens`: where an open-weight model looks in the requests of a recorded session."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import click

from sopilot.cli.options import NEW_FILE, STORE, json_option
from sopilot.cli.output import print_json, say, tell
from sopilot.files.text import write_whole
from sopilot.messages.errors import UserMistake
from sopilot.runner.audit_inputs import TraceInput, read_input
from sopilot.runner.options import stored_options
from sopilot.runner.store_access import StoreAccess
from sopilot.web.pages import Drawing
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
@click.option(
    "--model",
    "model",
    default="local",
    show_default=True,
    help="local (SmolLM2), a GGUF file, or a folder as Transformers saves it.",
)
@click.option("--handbook", metavar="SOURCE", help="Handbook of a trace file.")
@click.option("--arm", help="View to analyse the session under. Default: the view it ran under.")
@click.option("--goal", help="Goal of the user, if the session never started it.")
@click.option(
    "--moments", "count", type=click.IntRange(min=1), default=4, show_default=True,
    help="Number of requests to analyse, spread over each session.",
)  # fmt: skip
@click.option(
    "--sessions", type=click.IntRange(min=1), default=12, show_default=True,
    help="Number of passing runs to analyse, spread over the folder.",
)  # fmt: skip
@click.option(
    "--device", default="cpu", show_default=True, help="Device, as PyTorch names it: cuda, mps."
)
@click.option(
    "--dtype", type=click.Choice(DTYPES), default="float32", show_default=True,
    help="Precision of the weights; sums use double precision.",
)  # fmt: skip
@click.option(
    "--plot", "plot_file", type=NEW_FILE,
    help="Draw layers, heads and regions: FILE.svg, or FILE.pdf with the extra `figures`.",
)  # fmt: skip
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
    device: str,
    dtype: str,
    plot_file: Path | None,
    store: StoreAccess,
    as_json: bool,
) -> None:
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
    result = studies(weights, chosen, lambda text: None if as_json else say(text, err=True))
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
    if as_json:
        print_json({**looked_at, **summary, **cost})
    else:
        tell(summary_lines(summary))
        say(f"\n{cost['seconds']} s, {cost['peak_memory_mib']} MiB at most")


def _write_plot(file: Path, drawing: Drawing) -> None:
    if file.suffix != ".pdf":
        write_whole(file, drawing.as_file(), private=True)
        return
    try:
        made = drawing.as_pdf()
    except ImportError as error:
        raise UserMistake("a PDF needs: pip install 'sopilot[figures]'") from error
    file.write_bytes(made)
