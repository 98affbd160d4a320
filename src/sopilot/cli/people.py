"""`sopilot people`: who may decide, in which roles, within which limits."""

from __future__ import annotations

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.output import give, json_option
from sopilot.cli.stores import STORE
from sopilot.records.people import (
    change_people,
    deputy_details,
    issue_token,
    limit_details,
    load_people,
    people_json,
    people_lines,
    token_details,
)
from sopilot.runner.opened_stores import with_store


@click.group()
def command() -> None:
    """Who decides about held calls: people with roles, their tokens, limits and deputies.

    Every change is an entry of a journal that is sealed with the sessions. Once somebody in the
    role `administrator` holds a token, only administrators change anything here.
    """


NAME = click.argument("person", metavar="NAME")


ROLE = click.argument("role")


TO = click.option("--to", required=True, metavar="ROLE", help="Who may decide as well then.")


AUDIENCE = click.option("--audience", required=True, help="For whom its tokens must be made out.")


WHAT = click.argument("what", type=click.Choice(["identity", "sign-off", "privacy", "keys"]))


entries = EntryCommands(command, change_people)


entries.add(
    "add", "person_added", "Add NAME, or to what is known of them: roles, other names.", NAME,
    click.option("--role", "roles", multiple=True, help="As often as needed."),
    click.option("--alias", "aliases", multiple=True, help="Another name, or a customer's number."),
    click.option("--openid", "subjects", multiple=True, metavar="ISSUER#SUBJECT"),
    click.option("--anew", is_flag=True, help="What was said of them before falls."),
)  # fmt: skip


entries.add(
    "remove", "person_removed", "NAME decides nothing any more; their tokens are worth nothing.",
    NAME,
)  # fmt: skip


entries.add(
    "revoke", "token_revoked", "The token called TOKEN is worth nothing from now on.",
    click.argument("token", metavar="TOKEN"),
)  # fmt: skip


entries.add(
    "limit", "limit_set", "ROLE decides only where every CONDITION on the arguments holds: "
    '"amount<=5000".', ROLE, click.argument("conditions", nargs=-1, metavar="CONDITION..."),
    read=limit_details,
)  # fmt: skip


entries.add(
    "deputy", "deputy_named", "NAME stands for somebody in a role, between two dates.", NAME,
    click.option("--for", "for", required=True, metavar="NAME"),
    click.option("--role", required=True),
    click.option("--from", "begin", required=True, metavar="DATE"),
    click.option("--to", "end", required=True, metavar="DATE", help="Up to and with this date."),
    read=deputy_details,
)  # fmt: skip


entries.add(
    "escalate", "escalation_set", "So many minutes before a request to ROLE expires, another "
    "role may decide it.", ROLE, TO,
    click.option("--before", "minutes", type=float, required=True, metavar="MINUTES"),
    read=lambda value: {**value, "before_seconds": value.pop("minutes") * 60},
)  # fmt: skip


entries.add(
    "provider", "provider_named", "Believe signed tokens of the OpenID Connect provider ISSUER "
    "(extra `openid`).", click.argument("issuer"), AUDIENCE,
)  # fmt: skip


entries.add(
    "require", "demanded", "identity: only people who prove who they are decide, and start or "
    "resume sessions. sign-off: only handbooks that were signed off run. privacy: contents of new "
    "sessions stand beside their traces and can be erased; who reads them is on record. keys: and "
    "they are encrypted, with keys in the folder that SOPILOT_KEYS names.", WHAT,
    click.option("--off", is_flag=True, help="Not any more."),
    read=lambda value: {"what": value["what"], "on": not value["off"]},
)  # fmt: skip


EntryCommands(command, issue_token).add(
    "token", "token_issued", "A new token of NAME, printed once: the store keeps its hash alone.",
    NAME, click.option("--name", "token", required=True, help="What it is called in records."),
    click.option("--until", "expires_at", metavar="DATE", help="Up to and with this date (UTC)."),
    read=token_details,
)  # fmt: skip


@command.command("list")
@STORE
@json_option
def list_people(store_spec: str | None, as_json: bool) -> None:
    """Everybody, with roles, tokens and deputies."""
    people = with_store(store_spec, load_people, reading=True)
    give(as_json, people_json(people), people_lines(people))
