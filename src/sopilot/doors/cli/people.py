"""`sopilot people`: who may decide, in which roles, within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sopilot.doors.terminal.output import give, json_option, say
from sopilot.doors.terminal.stores import STORE, signed, with_person, with_store
from sopilot.runtime.records import read_condition, read_moment
from sopilot.runtime.records.people_text import people_json, people_lines
from sopilot.runtime.session import SystemClock
from sopilot.runtime.session.identity import change_people, issue_token, load_people


@click.group()
def command() -> None:
    """People who decide about held calls: tokens, roles, limits, deputies, providers.

    Every change is an entry of the store's journal, which is sealed with its sessions. Once
    somebody is an `administrator`, only administrators change people.
    """


def _change(name: str, *, store_spec: str | None, token_file: Path | None, **details: Any) -> None:
    with_person(
        store_spec,
        token_file,
        lambda store, who: change_people(store, name, details, who=who, clock=SystemClock()),
    )
    say("recorded")


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--role", "roles", multiple=True, help="As often as needed.")
@click.option("--alias", "aliases", multiple=True, help="Another name, or a customer's number.")
@click.option("--openid", "subjects", multiple=True, metavar="ISSUER#SUBJECT")
@signed
def add(**given: Any) -> None:
    """Add NAME, or say anew what they are."""
    given |= {name: list(given[name]) for name in ("roles", "aliases", "subjects")}
    _change("person_added", **given)


@command.command()
@click.argument("person", metavar="NAME")
@signed
def remove(**given: Any) -> None:
    """NAME decides nothing any more; their tokens are worth nothing."""
    _change("person_removed", **given)


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--name", "token_name", required=True, help="What the token is called in records.")
@click.option("--until", metavar="DATE", help="Up to and with this date (UTC).")
@signed
def token(
    person: str, token_name: str, until: str | None, token_file: Path | None, store_spec: str | None
) -> None:
    """A new token of NAME, printed once: the store keeps its hash alone."""
    expires = None if until is None else read_moment(until, whole_day=True)

    made = with_person(
        store_spec,
        token_file,
        lambda store, who: issue_token(
            store, person, token_name, expires_at=expires, who=who, clock=SystemClock()
        ),
    )
    say(made)


@command.command()
@click.argument("token_name", metavar="TOKEN")
@signed
def revoke(token_name: str, **given: Any) -> None:
    """The token called TOKEN is worth nothing from now on."""
    _change("token_revoked", token=token_name, **given)


@command.command()
@click.argument("role")
@click.argument("conditions", nargs=-1, metavar="CONDITION...")
@signed
def limit(conditions: tuple[str, ...], **given: Any) -> None:
    """ROLE decides only where every CONDITION on the arguments holds: "amount<=5000"."""
    for text in conditions:
        read_condition(text)
    _change("limit_set", conditions=list(conditions), **given)


@command.command()
@click.argument("person", metavar="NAME")
@click.option("--for", "stands_for", required=True, metavar="NAME")
@click.option("--role", required=True)
@click.option("--from", "begin", required=True, metavar="DATE")
@click.option("--to", "end", required=True, metavar="DATE", help="Up to and with this date (UTC).")
@signed
def deputy(begin: str, end: str, stands_for: str, **given: Any) -> None:
    """NAME stands for somebody in a role, between two dates."""
    given |= {"for": stands_for, "begin": read_moment(begin)}
    _change("deputy_named", end=read_moment(end, whole_day=True), **given)


@command.command()
@click.argument("role")
@click.option("--to", required=True, metavar="ROLE", help="Who may decide as well then.")
@click.option("--before", "minutes", type=click.FloatRange(min=0), required=True, metavar="MINUTES")
@signed
def escalate(minutes: float, **given: Any) -> None:
    """So many minutes before a request to ROLE expires, another role may decide it."""
    _change("escalation_set", before_seconds=minutes * 60, **given)


@command.command()
@click.argument("issuer")
@click.option("--audience", required=True, help="For whom its tokens must be made out.")
@signed
def provider(**given: Any) -> None:
    """Believe signed tokens of the OpenID Connect provider ISSUER (extra `openid`)."""
    _change("provider_named", **given)


@command.command()
@click.argument("what", type=click.Choice(["identity", "sign-off"]))
@click.option("--off", is_flag=True, help="Not any more.")
@signed
def demand(off: bool, **given: Any) -> None:
    """identity: only people who prove who they are decide. sign-off: only handbooks that were
    signed off run."""
    _change("demanded", on=not off, **given)


@command.command("list")
@STORE
@json_option
def list_people(store_spec: str | None, as_json: bool) -> None:
    """Everybody, with roles, tokens and deputies."""
    people = with_store(store_spec, load_people, reading=True)
    give(as_json, people_json(people), people_lines(people))
