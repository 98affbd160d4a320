"""People who may decide, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sopilot.language.diagnostics.plain_text import moment, table
from sopilot.runtime.records.people import People


def people_lines(people: People) -> Iterator[str]:
    rows = [
        (
            one.name,
            ", ".join(one.aliases) or "-",
            ", ".join(one.roles) or "-",
            _tokens(people, one.name) or "-",
        )
        for one in people.persons.values()
    ]
    yield table(rows, ("NAME", "ALSO", "ROLES", "TOKENS")) if rows else "nobody is known here"
    for role, conditions in people.limits.items():
        yield f"{role} decides within {', '.join(conditions) or 'no limit'}"
    for one in people.deputies:
        begin, end = moment(one.begin), moment(one.end)
        yield f"{one.person} stands for {one.stands_for} as {one.role} from {begin} to {end}"
    for role, (to, seconds) in people.escalations.items():
        yield f"{to} may decide as {role} {seconds / 60:g} minutes before a request expires"
    for one_demand in sorted(people.demands):
        yield f"demanded: {one_demand}"


def _tokens(people: People, person: str) -> str:
    own = [one for one in people.tokens.values() if one.person == person]
    return ", ".join(f"{one.name} (revoked)" if one.revoked else one.name for one in own)


def people_json(people: People) -> dict[str, Any]:
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
