"""Options of what is served to many: how many processes, limits of time, what operators see."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import all_of, read_config
from sopilot.integrations.logs import FORMATS
from sopilot.records.store import Settings

serving_options = all_of(
    click.option(
        "--require-pins",
        is_flag=True,
        help="Refuse an upstream that nobody has approved, instead of approving it at first sight.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes behind the one address, replaced when they die; several are --stateless.",
    ),
    click.option(
        "--stateless",
        is_flag=True,
        help="Several servers share the store: any of them goes on with any request.",
    ),
    click.option("--admin", metavar="HOST:PORT", help="Health and metrics, for operators alone."),
    click.option(
        "--lease-seconds",
        type=click.FloatRange(min=1),
        default=Settings().lease_seconds,
        show_default=True,
        help="How long a killed server keeps a session from the others.",
    ),
    click.option(
        "--sweep-seconds",
        type=click.FloatRange(min=0.5),
        default=2.0,
        show_default=True,
        help="How often calls that were left open are looked for.",
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
