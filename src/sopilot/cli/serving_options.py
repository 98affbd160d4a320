"""Options of a server with many clients: state, timing, and what operators see."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import all_of, read_config
from sopilot.integrations.logs import FORMATS
from sopilot.records.store import Settings

serving_options = all_of(
    click.option(
        "--stateless",
        is_flag=True,
        help="Several servers share the store, and any of them answers any request.",
    ),
    click.option("--admin", metavar="HOST:PORT", help="Address for health and metrics."),
    click.option(
        "--lease-seconds",
        type=click.FloatRange(min=1),
        default=Settings().lease_seconds,
        show_default=True,
        help="How long a killed server keeps its sessions from the others.",
    ),
    click.option(
        "--sweep-seconds",
        type=click.FloatRange(min=0.5),
        default=2.0,
        show_default=True,
        help="How often to look for orphaned calls.",
    ),
    click.option("--log", "log_format", type=click.Choice(FORMATS), default="text"),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=read_config,
        help="A YAML or JSON file of these options by their names, with ${VARIABLES} filled in.",
    ),
)
