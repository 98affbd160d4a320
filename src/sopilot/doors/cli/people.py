"""`sopilot people`: who may decide, in which roles, within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.adapters.sign_in import who_asks
from sopilot.doors.cli.output import json_option, print_json, say, table
from sopilot.doors.cli.stores import STORE, with_store
from sopilot.runtime.audit.place_words import moment
from sopilot.runtime.records import read_condition, read_moment
from sopilot.runtime.records.people import People
from sopilot.runtime.session import Store, SystemClock
from sopilot.runtime.session.identity import change_people, issue_token, load_people

TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Your token, or a provider's; else what SOPILOT_TOKEN holds.",
)


@click.group()
def command() -> None:
    """People who decide about held calls: tokens, roles, limits, deputies, providers.

    Every change is an entry of the store's journal, which is sealed with its sessions. Once
    somebody is an `administrator`, only administrators change people.
    """


def _change(store_spec: str | None, token_file: Path | None, name: str, **details: Any) -> None:
    async def use(store: Store) -> None:
        who = await who_asks(store, token_file)
        await change_people(store, name, details, who=who, clock=SystemClock())

    with_store(store_spec, use)
    say("recorded")


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--role", "roles", multiple=True, help="As often as needed.")
@click.option("--alias", "aliases", multiple=True, help="Another name, or a customer's number.")
@click.option("--openid", "subjects", multiple=True, metavar="ISSUER#SUBJECT")
@TOKEN_FILE
@STORE
def add(store_spec: str | None, token_file: Path | None, **given: Any) -> None:
    """Add NAME, or say anew what they are."""
    details = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items()
    }
    _change(store_spec, token_file, "person_added", **details)


@command.command()
@click.argument("person", metavar="NAME")
@TOKEN_FILE
@STORE
def remove(store_spec: str | None, token_file: Path | None, person: str) -> None:
    """NAME decides nothing any more; their tokens are worth nothing."""
    _change(store_spec, token_file, "person_removed", person=person)


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--name", "token_name", required=True, help="What the token is called in records.")
@click.option("--until", metavar="DATE", help="Up to and with this date (UTC).")
@TOKEN_FILE
@STORE
def token(
    person: str, token_name: str, until: str | None, token_file: Path | None, store_spec: str | None
) -> None:
    """A new token of NAME, printed once: the store keeps its hash alone."""
    expires = None if until is None else read_moment(until, whole_day=True)

    async def use(store: Store) -> str:
        who = await who_asks(store, token_file)
        clock = SystemClock()
        return await issue_token(
            store, person, token_name, expires_at=expires, who=who, clock=clock
        )

    say(with_store(store_spec, use))


@command.command()
@click.argument("token_name", metavar="TOKEN")
@TOKEN_FILE
@STORE
def revoke(store_spec: str | None, token_file: Path | None, token_name: str) -> None:
    """The token called TOKEN is worth nothing from now on."""
    _change(store_spec, token_file, "token_revoked", token=token_name)


@command.command()
@click.argument("role")
@click.argument("conditions", nargs=-1, metavar="CONDITION...")
@TOKEN_FILE
@STORE
def limit(
    store_spec: str | None, token_file: Path | None, role: str, conditions: tuple[str, ...]
) -> None:
    """ROLE decides only where every CONDITION on the arguments holds: "amount<=5000"."""
    for text in conditions:
        read_condition(text)
    _change(store_spec, token_file, "limit_set", role=role, conditions=list(conditions))


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--for", "stands_for", required=True, metavar="NAME")
@click.option("--role", required=True)
@click.option("--from", "begin", required=True, metavar="DATE")
@click.option("--to", "end", required=True, metavar="DATE", help="Up to and with this date (UTC).")
@TOKEN_FILE
@STORE
def deputy(store_spec: str | None, token_file: Path | None, **given: Any) -> None:
    """NAME stands for somebody in a role, between two dates."""
    begin, end = read_moment(given["begin"]), read_moment(given["end"], whole_day=True)
    details = {"person": given["person"], "for": given["stands_for"], "role": given["role"]}
    _change(store_spec, token_file, "deputy_named", **details, begin=begin, end=end)


@command.command()
@click.argument("role")
@click.option("--to", required=True, metavar="ROLE", help="Who may decide as well then.")
@click.option("--before", "minutes", type=click.FloatRange(min=0), required=True, metavar="MINUTES")
@TOKEN_FILE
@STORE
def escalate(
    store_spec: str | None, token_file: Path | None, role: str, to: str, minutes: float
) -> None:
    """So many minutes before a request to ROLE expires, another role may decide it."""
    seconds = minutes * 60
    _change(store_spec, token_file, "escalation_set", role=role, to=to, before_seconds=seconds)


@command.command()
@click.argument("issuer")
@click.option("--audience", required=True, help="For whom its tokens must be made out.")
@TOKEN_FILE
@STORE
def provider(store_spec: str | None, token_file: Path | None, issuer: str, audience: str) -> None:
    """Believe signed tokens of the OpenID Connect provider ISSUER (extra `openid`)."""
    _change(store_spec, token_file, "provider_named", issuer=issuer, audience=audience)


@command.command()
@click.argument("what", type=click.Choice(["identity", "sign-off", "privacy"]))
@click.option("--off", is_flag=True, help="Not any more.")
@TOKEN_FILE
@STORE
def demand(store_spec: str | None, token_file: Path | None, what: str, off: bool) -> None:
    """identity: only people who prove who they are decide. sign-off: only handbooks that were
    signed off run. privacy: contents of new sessions stand beside their traces and can be
    erased; who reads them is on record."""
    _change(store_spec, token_file, "demanded", what=what, on=not off)


@command.command("list")
@STORE
@json_option
def list_people(store_spec: str | None, as_json: bool) -> None:
    """Everybody, with roles, tokens and deputies."""
    people = with_store(store_spec, load_people)
    if as_json:
        print_json(_as_json(people))
        return
    rows = [
        (one.name, ", ".join(one.roles) or "-", _tokens(people, one.name) or "-")
        for one in people.persons.values()
    ]
    say(table(rows, ("NAME", "ROLES", "TOKENS")) if rows else "nobody is known here")
    for role, conditions in people.limits.items():
        say(f"{role} decides within {', '.join(conditions) or 'no limit'}")
    for one in people.deputies:
        begin, end = moment(one.begin), moment(one.end)
        say(f"{one.person} stands for {one.stands_for} as {one.role} from {begin} to {end}")
    for role, (to, seconds) in people.escalations.items():
        say(f"{to} may decide as {role} {seconds / 60:g} minutes before a request expires")
    for one_demand in sorted(people.demands):
        say(f"demanded: {one_demand}")


def _tokens(people: People, person: str) -> str:
    own = [one for one in people.tokens.values() if one.person == person]
    return ", ".join(f"{one.name} (revoked)" if one.revoked else one.name for one in own)


def _as_json(people: People) -> dict[str, Any]:
    return {
        "people": [
            {
                "name": one.name,
                "roles": list(one.roles),
                "aliases": list(one.aliases),
                "openid": list(one.subjects),
                "tokens": [
                    {"name": t.name, "expires_at": t.expires_at, "revoked": t.revoked}
                    for t in people.tokens.values()
                    if t.person == one.name
                ],
            }
            for one in people.persons.values()
        ],
        "limits": {role: list(texts) for role, texts in people.limits.items()},
        "providers": [
            {"issuer": p.issuer, "audience": p.audience} for p in people.providers.values()
        ],
        "demands": sorted(people.demands),
    }
