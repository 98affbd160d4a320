"""`sopilot records export`: records of a time, with a verifier, for an auditor."""

from __future__ import annotations

from pathlib import Path

import click

from sopilot.cli.options import NEW
from sopilot.cli.output import say
from sopilot.cli.stores import require_readable, signed
from sopilot.records.export import bundle_files
from sopilot.records.selection import read_moment
from sopilot.runner.opened_stores import with_store
from sopilot.runner.versions import write_bundle


@click.command()
@click.option("--from", "begin", required=True, metavar="DATE", help="From this date on (UTC).")
@click.option("--to", "end", required=True, metavar="DATE", help="Up to and with this date (UTC).")
@click.option("-o", "--output", type=NEW, required=True, help="A new or empty folder, or NAME.zip.")
@click.option("--payloads", is_flag=True, help="With the values kept beside the traces.")
@signed
def command(
    begin: str, end: str, output: Path, payloads: bool, token_file: Path | None, **text: str | None
) -> None:
    """Register, traces, log, sealed heads, journals, handbooks, a summary, and a verifier that
    runs offline in one file: python3 verify.pyz PUBLIC_KEY."""
    since, until, spec = read_moment(begin), read_moment(end, whole_day=True), text["store_spec"]
    require_readable(spec, token_file, "bundle", [f"{begin} to {end}"], contents=payloads)
    files = with_store(spec, lambda store: bundle_files(store, since, until, payloads=payloads))
    write_bundle(output, files)
    say(f"{output}: {len(files)} files; check them with its verify.pyz")
