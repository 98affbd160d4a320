"""`sopilot people`: who may decide, in which roles, within which limits."""

from __future__ import annotations

import click

from sopilot.cli.journal_commands import EntryCommands
from sopilot.cli.options import IN_STORE
from sopilot.cli.output import Output
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
from sopilot.runner.store_access import StoreAccess


@click.group()
def command() -> None:
    """Manage who decides about waiting calls: people, roles, tokens, limits and deputies.

    Every change is an entry of a journal that is sealed with the sessions. Once somebody in the
    role `administrator` has a token, only administrators can change anything here.
    """


NAME = click.argument("person", metavar="NAME")
ROLE = click.argument("role")
entries = EntryCommands(command, change_people)
entries.add(
    "add", "person_added", "Add a person, or add roles and other names to a known one.", NAME,
    click.option("--role", "roles", multiple=True, help="Role of the person (repeatable)."),
    click.option("--alias", "aliases", multiple=True, help="Another name, or a customer number."),
    click.option(
        "--openid", "subjects", multiple=True, metavar="ISSUER#SUBJECT",
        help="Identity at an OpenID Connect provider (repeatable).",
    ),
    click.option("--anew", is_flag=True, help="Replace existing roles and aliases."),
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
    "deputy", "deputy_named", "Let NAME decide for somebody in a role, between two dates.", NAME,
    click.option("--for", "for", required=True, metavar="NAME", help="Person they stand in for."),
    click.option("--role", required=True, help="Role in which they stand in."),
    click.option("--from", "begin", required=True, metavar="DATE", help="First day (UTC)."),
    click.option("--to", "end", required=True, metavar="DATE", help="Last day (UTC)."),
    read=deputy_details,
)  # fmt: skip
entries.add(
    "escalate", "escalation_set", "Let another role decide too, some minutes before a request to "
    "ROLE expires.", ROLE,
    click.option("--to", required=True, metavar="ROLE", help="Role that may decide as well."),
    click.option(
        "--before", "minutes", type=float, required=True, metavar="MINUTES",
        help="Minutes before the request expires.",
    ),
    read=lambda value: {**value, "before_seconds": value.pop("minutes") * 60},
)  # fmt: skip
entries.add(
    "provider", "provider_named", "Accept signed tokens of the OpenID Connect provider ISSUER "
    "(extra `openid`).", click.argument("issuer"),
    click.option("--audience", required=True, help="Audience that its tokens must name."),
)  # fmt: skip
entries.add(
    "require", "demanded", "Require WHAT of this store.\n\nidentity: deciding, starting and "
    "resuming sessions need a proven identity. sign-off: only signed-off handbooks run. privacy: "
    "contents of new sessions can be erased, and reading them is recorded. keys: contents are also "
    "encrypted, with keys in the folder $SOPILOT_KEYS.",
    click.argument("what", type=click.Choice(["identity", "sign-off", "privacy", "keys"])),
    click.option("--off", is_flag=True, help="Stop requiring it."),
    read=lambda value: {"what": value["what"], "on": not value["off"]},
)  # fmt: skip
EntryCommands(command, issue_token).add(
    "token", "token_issued", "Issue a token for NAME and print it once: the store keeps only its "
    "hash.", NAME, click.option("--name", "token", required=True, help="Its name in records."),
    click.option("--until", "expires_at", metavar="DATE", help="Last day of validity (UTC)."),
    read=token_details,
)  # fmt: skip


@command.command("list")
@IN_STORE
def list_people(store: StoreAccess) -> Output:
    """List everybody, with roles, tokens and deputies."""
    people = store.read(load_people)
    return Output(people_json(people), people_lines(people))
