"""`sopilot people`: who may decide, in which roles, within which limits."""

from __future__ import annotations

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import IN_STORE, flag, option
from sopilot.cli.output import Output
from sopilot.records.people import (
    change_people,
    issue_token,
    limit_details,
    load_people,
    people_json,
    people_lines,
)
from sopilot.records.selection import read_moment, with_day_ends
from sopilot.runner.store_access import StoreAccess


@click.group()
def command() -> None:
    """Manage who decides about waiting calls: people, roles, tokens, limits and deputies.

    Every change is an entry of a journal that is sealed with the sessions. Once someone in the
    role `administrator` has a token, only administrators can change anything here.
    """


NAME = click.argument("person", metavar="NAME")
ROLE = click.argument("role")
entries = EntryCommands(command, change_people)
entries.add(
    "add", "person_added", "Add a person, or add roles and names to an existing one.", NAME,
    option("--role", "Role of the person (repeatable).", "roles", multiple=True),
    option("--alias", "Another name, or a customer number.", "aliases", multiple=True),
    option(
        "--openid ISSUER#SUBJECT", "Identity at an OpenID Connect provider (repeatable).",
        "subjects", multiple=True,
    ),
    flag("--anew", "Replace existing roles and aliases."),
)  # fmt: skip
entries.add(
    "remove", "person_removed", "Remove NAME: all their rights and tokens end.", NAME
)  # fmt: skip
entries.add(
    "revoke", "token_revoked", "Revoke the token called TOKEN.",
    click.argument("token", metavar="TOKEN"),
)  # fmt: skip
entries.add(
    "limit", "limit_set", "Let ROLE decide only if every CONDITION on the arguments is true, such "
    'as "amount<=5000".', ROLE, click.argument("conditions", nargs=-1, metavar="CONDITION..."),
    read=limit_details,
)  # fmt: skip
entries.add(
    "deputy", "deputy_named", "Let NAME decide for someone in a role, between two dates.", NAME,
    option("--for NAME", "Person for whom NAME decides.", "for", required=True),
    option("--role", "Role in which NAME decides.", required=True),
    option("--from DATE", "First day (UTC).", "begin", required=True),
    option("--to DATE", "Last day (UTC).", "end", required=True),
    read=lambda value: {**with_day_ends(value, "end"), "begin": read_moment(value["begin"])},
)  # fmt: skip
entries.add(
    "escalate", "escalation_set", "Let another role decide too, some minutes before a request to "
    "ROLE expires.", ROLE,
    option("--to ROLE", "Role that may also decide.", required=True),
    option(
        "--before MINUTES", "Minutes before the request expires.", "minutes", type=float,
        required=True,
    ),
    read=lambda value: {**value, "before_seconds": value.pop("minutes") * 60},
)  # fmt: skip
entries.add(
    "provider", "provider_named", "Accept signed tokens of the OpenID Connect provider ISSUER "
    "(extra `openid`).", click.argument("issuer"),
    option("--audience", "Audience that its tokens must name.", required=True),
)  # fmt: skip
entries.add(
    "require", "demanded", "Require identity, sign-off, privacy or keys in this store."
    "\n\nidentity: deciding, starting and resuming sessions need a proven identity. sign-off: "
    "only signed-off handbooks run. privacy: contents of new sessions can be erased, and reading "
    "them is recorded. keys: contents are also encrypted, with keys in the folder $SOPILOT_KEYS.",
    click.argument("what", type=click.Choice(["identity", "sign-off", "privacy", "keys"])),
    flag("--off", "Remove the requirement."),
    read=lambda value: {"what": value["what"], "on": not value["off"]},
)  # fmt: skip
EntryCommands(command, issue_token).add(
    "token", "token_issued", "Issue a token for NAME and print it once: the store keeps only its "
    "hash.", NAME, option("--name", "Name of the token in records.", "token", required=True),
    option("--until DATE", "Last day of validity (UTC).", "expires_at"),
    read=lambda value: with_day_ends(value, "expires_at"),
)  # fmt: skip


@command.command("list")
@IN_STORE
def list_people(store: StoreAccess) -> Output:
    """List everyone, with roles, tokens and deputies."""
    people = store.read(load_people)
    return Output(people_json(people), people_lines(people))
