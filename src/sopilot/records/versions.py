"""Versions of a handbook: written by one person, signed off by another, in force for a time.

A session keeps the version it began with, also when a later one is in force by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from sopilot.handbook.model import Handbook
from sopilot.messages.errors import mistake
from sopilot.protocols import Clock
from sopilot.records.journal import folded, write
from sopilot.records.log import Entry
from sopilot.records.people import People, Principal, load_people, required_writer
from sopilot.records.store import Store
from sopilot.values.json import JSON, Fields, same_name
from sopilot.values.text import moment, table

RELEASED, SIGNED_OFF, WITHDRAWN = "version_released", "version_signed_off", "version_withdrawn"

SIGNATURES_NEEDED = 1
"""By people other than the author."""


@dataclass(slots=True)
class Version:
    """``programs`` maps goals to hashes. ``end`` is not included."""

    handbook: str
    number: int
    author: str
    programs: Mapping[str, str]
    text: str
    begin: float
    at: float
    end: float | None = None
    coverage: JSON = None
    identity: str = ""
    signed: dict[str, str] = field(default_factory=dict)
    """Person who signed it off → proof of identity."""

    @property
    def is_signed(self) -> bool:
        return len(self.signed) >= SIGNATURES_NEEDED

    def holds_at(self, at: float) -> bool:
        return self.begin <= at and (self.end is None or at < self.end)

    def as_json(self) -> dict[str, JSON]:
        return {
            "handbook": self.handbook,
            "version": self.number,
            "author": self.author,
            "identity": self.identity,
            "released_at": self.at,
            "from": self.begin,
            "to": self.end,
            "signed_off_by": [{"by": by, "identity": how} for by, how in self.signed.items()],
            "programs": dict(self.programs),
            "coverage": self.coverage,
        }


@dataclass(slots=True)
class Versions:
    of: dict[str, list[Version]] = field(default_factory=dict)
    """By handbook, oldest first, numbered from 1."""

    def find(self, handbook: str, number: int) -> Version | None:
        known = self.of.get(handbook, [])
        return known[number - 1] if 0 < number <= len(known) else None

    def known(self, handbook: str, number: int) -> Version:
        result = self.find(handbook, number)
        if result is None:
            message = f"`{handbook}` has no version {number} here"
            raise mistake("unknown-version", message, help="`sopilot handbooks list` lists them")
        return result

    def that_run(self, handbook: str, programs: Mapping[str, str]) -> list[Version]:
        """The versions all of whose programs these are, newest first."""
        return [
            item
            for item in reversed(self.of.get(handbook, []))
            if all(item.programs.get(goal) == digest for goal, digest in programs.items())
        ]

    def require_in_force(self, handbook: str, programs: Mapping[str, str], at: float) -> None:
        """Raise unless these programs are a version that was signed off and is in force."""
        result = self.that_run(handbook, programs) if programs else []
        if not result:
            raise mistake(
                "not-released",
                f"these programs of `{handbook}` aren't a released version in this store",
                help="run `sopilot handbooks release`; then someone else must `sign-off`",
            )
        signed = [item for item in result if item.is_signed]
        if not signed:
            raise mistake(
                "not-signed-off",
                f"version {result[0].number} of `{handbook}` was not signed off",
                help="someone other than its author must run `sopilot handbooks sign-off`",
            )
        if not any(item.holds_at(at) for item in signed):
            message = f"version {signed[0].number} of `{handbook}` is not in force now"
            raise mistake("not-in-force", message)


def fold_versions(entries: Iterable[Entry]) -> Versions:
    versions = Versions()
    for _, at, name, it in entries:
        handbook = str(it.get("handbook"))
        if name == RELEASED:
            known = versions.of.setdefault(handbook, [])
            known.append(
                Version(
                    handbook, len(known) + 1, str(it["by"]), dict(it["programs"]),
                    str(it["text"]), it["from"], at, it.get("to"), it.get("coverage"),
                    str(it.get("identity")),
                )
            )  # fmt: skip
            continue
        if name not in (SIGNED_OFF, WITHDRAWN):
            continue
        version = versions.find(handbook, it["version"])
        if version is None:
            continue
        if name == WITHDRAWN:
            version.end = at if version.end is None else min(version.end, at)
            continue
        version.signed[str(it["by"])] = str(it.get("identity"))
        if len(version.signed) == SIGNATURES_NEEDED:
            _takes_over(versions.of[handbook], version, at)
    return versions


def _takes_over(known: Sequence[Version], version: Version, at: float) -> None:
    """End the earlier versions where this one begins, and not before it was signed off: an unsigned
    release ends nothing."""
    begin = max(version.begin, at)
    for earlier in known[: version.number - 1]:
        if earlier.end is None or earlier.end > begin:
            earlier.end = begin
    for later in known[version.number :]:
        if later.is_signed and (version.end is None or version.end > later.begin):
            version.end = later.begin


_SENTENCES = ("says", "says_not", "remedy", "customer_message", "confirm", "question", "otherwise")


def difference(before: Handbook, after: Handbook) -> dict[str, list[str]]:
    """The differences of a new version in its sentences and in its structure."""
    sentences: list[str] = []
    structure: list[str] = []
    for kind in ("parameters", "actions", "predicates", "procedures"):
        old, new = getattr(before, kind), getattr(after, kind)
        noun = kind.removesuffix("s")
        structure += [f"{noun} `{name}` is gone" for name in old if name not in new]
        structure += [f"{noun} `{name}` is new" for name in new if name not in old]
        for name in (name for name in old if name in new and old[name] != new[name]):
            if kind == "parameters":
                structure.append(f"parameter `{name}`: {old[name]} → {new[name]}")
                continue
            for item in fields(new[name]):
                was, is_now = getattr(old[name], item.name), getattr(new[name], item.name)
                if was == is_now:
                    continue
                if item.name in _SENTENCES and (isinstance(was, str) or isinstance(is_now, str)):
                    sentences.append(f"{noun} `{name}`: “{was or ''}” → “{is_now or ''}”")
                else:
                    structure.append(f"{noun} `{name}`: `{item.name}` has changed")
    return {"sentences": sentences, "structure": structure}


def version_lines(versions: Sequence[Version]) -> Iterator[str]:
    rows = [
        (
            item.handbook, item.number, item.author, ", ".join(item.signed) or "-",
            moment(item.begin), "-" if item.end is None else moment(item.end),
        )
        for item in versions
    ]  # fmt: skip
    header = ("HANDBOOK", "VERSION", "AUTHOR", "SIGNED OFF BY", "FROM", "TO")
    yield table(rows, header) if rows else "no version was released here"


JOURNAL = "handbooks"


async def load_versions(store: Store) -> Versions:
    return await folded(store, JOURNAL, fold_versions)


async def require_released(
    store: Store, people: People, handbook: str, programs: Mapping[str, str], at: float
) -> None:
    """Raise for programs that weren't signed off, if the store requires that."""
    if "sign-off" in people.demands:
        (await load_versions(store)).require_in_force(handbook, programs, at)


async def authors_of(store: Store, metadata: Fields) -> frozenset[str]:
    """The authors of a session's handbook, spelled as ``same_name`` does. They can't decide."""
    handbook, programs = str(metadata.get("handbook") or ""), metadata.get("programs") or {}
    versions = (await load_versions(store)).that_run(handbook, programs)
    return frozenset(same_name(version.author) for version in versions)


async def release(
    store: Store,
    handbook: str,
    *,
    text: str,
    programs: Mapping[str, str],
    begin: float,
    end: float | None,
    coverage: JSON,
    clock: Clock,
    who: Principal | None,
    by: str,
) -> Version:
    writer = await required_writer(store, who, by)
    if end is not None and end <= begin:
        raise mistake("no-time", "this version would end before it begins")
    values: dict[str, JSON] = {
        "handbook": handbook,
        "text": text,
        "programs": dict(programs),
        "from": begin,
        "to": end,
        "coverage": coverage,
        **writer,
    }
    await write(store, JOURNAL, RELEASED, values, clock=clock)
    return (await load_versions(store)).of[handbook][-1]


async def continue_version(
    store: Store, entry: str, details: Fields, *, who: Principal | None, clock: Clock
) -> str:
    """Sign a version off, or withdraw it. ``details``: handbook, number, and ``by`` for a person
    without a token."""
    writer = await required_writer(store, who, details["by"])
    version = (await load_versions(store)).known(details["handbook"], details["number"])
    signs_off = entry == SIGNED_OFF
    if signs_off:
        names = (await load_people(store)).names_of(str(writer["by"]))
        if same_name(version.author) in names:
            raise mistake(
                "author", f"{version.author} wrote this version: someone else must sign it off"
            )
    values = {"handbook": version.handbook, "version": version.number, **writer}
    await write(store, JOURNAL, entry, values, clock=clock)
    signed = (await load_versions(store)).known(version.handbook, version.number).signed
    done = f"signed off by {', '.join(signed)}" if signs_off else "withdrawn"
    return f"version {version.number} of {version.handbook}: {done}"
