"""``sopilot schema``: the JSON Schema of handbooks, so that editors can complete them."""

from __future__ import annotations

import click

from sopilot.cli.output import say
from sopilot.handbook.field_tables import published_schema


@click.command()
def command() -> None:
    """Print the JSON Schema of handbooks.

    Save it and name it in the first line of a handbook, and editors that use the
    YAML language server complete and check it:

    \b
      sopilot schema > handbook.schema.json
      # yaml-language-server: $schema=handbook.schema.json
    """
    say(published_schema().rstrip("\n"))
