"""A store by chance: people, policies, audits and versions, seals, and what is erased."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from life_desk import DAY, FIRST, PEOPLE, ROLES
from session_lives import Life

from sopilot.language.handbook.cel import judge as cel
from sopilot.runtime.audit import audit_trace
from sopilot.runtime.records.log import SealFile
from sopilot.runtime.session.bundle import bundle_files
from sopilot.runtime.session.case_files import (
    continue_deviation,
    differences,
    keep_audit,
    kept_audits,
    load_deviations,
)
from sopilot.runtime.session.journal import entries, write
from sopilot.runtime.session.privacy import (
    change_policy,
    due_sessions,
    may_read,
    note_reading,
    sessions_with,
    shred_wanted,
)
from sopilot.runtime.session.pruning import prune
from sopilot.runtime.session.releases import release, sign_off, withdraw
from sopilot.runtime.session.sealing import seal_store, verify_store
from sopilot.runtime.session.session_text import session_lines
from sopilot.runtime.session.verified_text import verified_json, verified_lines
from sopilot.runtime.vm import JSON


class StoreLife(Life):
    acts: ClassVar[Mapping[str, float]] = {
        "begin": 3,
        "work": 20,
        "stumble": 5,
        "note": 1,
        "break_tools": 4,
        "take_time": 3,
        "leave": 2,
        "come_back": 4,
        "read_all": 1,
        "hold_on": 3,
        "judge": 2,
        "version": 1,
        "decide": 9,
        "go_on_with": 8,
        "wait": 3,
        "look_after": 3,
        "people": 1,
        "policy": 1,
        "reading": 1,
        "erase": 1,
        "thin_out": 1,
        "seal": 2,
        "verify": 2,
        "list_all": 1,
        "bundle": 0.5,
    }

    async def people(self) -> Any:
        rng = self.rng
        name = rng.choice(PEOPLE[:4])
        said: dict[str, JSON] = {
            "person": name,
            "roles": rng.sample(ROLES, 2),
            "aliases": [],
            "subjects": [],
        }
        await write(self.store, "people", "person_added", said, clock=self.clock)
        if rng.random() < 0.2:
            what: dict[str, JSON] = {
                "what": rng.choice(("privacy", "identity", "roles")),
                "on": rng.random() < 0.5,
            }
            await write(self.store, "people", "demanded", what, clock=self.clock)
        return await entries(self.store, "people")

    async def policy(self) -> Any:
        rng = self.rng
        name, details = rng.choice(
            (
                ("readers_named", {"roles": rng.choice(([], ["privacy"]))}),
                ("hold_set", {"what": rng.choice(("s1", "una", "nobody")), "why": "court"}),
                ("hold_lifted", {"what": rng.choice(("s1", "una", "nobody"))}),
                ("retention_set", {"handbook": "lives", "days": rng.choice((1, 30))}),
            )
        )
        await change_policy(self.store, name, details, who=self.who(), clock=self.clock)
        due = [one.id for one in await due_sessions(self.store, self.clock.now())]
        return name, due, await may_read(self.store, self.who())

    async def reading(self) -> Any:
        names = list(self.sessions)[-2:]
        await note_reading(
            self.store, "show", names, who=self.who(), clock=self.clock,
            to_all=self.rng.random() < 0.3, or_nothing=self.rng.random() < 0.5,
        )  # fmt: skip
        found = await sessions_with(self.store, [self.rng.choice(("UNA", "4711", "nobody"))])
        return await entries(self.store, "reading"), [one.id for one in found]

    async def erase(self) -> Any:
        rng = self.rng
        done = await shred_wanted(
            self.store, subjects=rng.choice(((), ("una",), ("zoe",))),
            session_ids=rng.choice(((), ("s1",))), due=rng.random() < 0.4, why="asked for",
            unfinished=rng.random() < 0.3, who=self.who(), clock=self.clock,
        )  # fmt: skip
        return done.as_json(), done.lines(), done.all_erased

    async def thin_out(self) -> Any:
        archived: list[Any] = []

        async def archive(names: Any) -> None:
            archived.append(list(names))

        done = await prune(
            self.store, days=self.rng.choice((0.0, 0.01, 1.0)), why="old", archive=archive,
            dry=self.rng.random() < 0.4, who=self.who(), clock=self.clock,
        )  # fmt: skip
        return done.as_json(), done.lines(), archived

    async def seal(self) -> Any:
        sealing = await seal_store(self.store, self.key, at=self.clock.now(), known=self.seals[-1:])
        self.seals.append(sealing.seal)
        return sealing.as_json()

    async def verify(self) -> Any:
        if not self.seals:
            return None
        seal, events = self.rng.choice(self.seals[-3:]), self.rng.random() < 0.7
        found = await verify_store(self.store, SealFile((seal,)), [self.key.public], events=events)
        told = verified_json(found, without_events=not events)
        return told, list(verified_lines(found, without_events=not events))

    async def judge(self) -> Any:
        """An audit that is kept, and what becomes of its findings."""
        one, rng = self.one(), self.rng
        report = audit_trace(
            one.first_programs.programs, await one.whole_events(), judge=cel, session_id=one.id,
            changes=one.program_changes, ended=False,
        )  # fmt: skip
        key = self.key if rng.random() < 0.5 else None
        number = await keep_audit(
            self.store, report, release="r", clock=self.clock, key=key, who=self.who()
        )
        kept = await kept_audits(self.store, one.id)
        salt = str(one.metadata.get("salt"))
        told = [number, kept, [differences(each, report, salt) for each in kept]]
        known = await load_deviations(self.store)
        if known:
            step = rng.choice(("commented", "judged", "closed"))
            details = {"disposition": "true", "cause": "c", "remedy": "r", "text": "t"}
            told.append(
                await continue_deviation(
                    self.store,
                    rng.choice(list(known)),
                    step,
                    details,
                    clock=self.clock,
                    who=self.who(),
                    by=rng.choice(PEOPLE),
                )
            )
        return told, sorted(await load_deviations(self.store))

    async def version(self) -> Any:
        rng = self.rng
        said: dict[str, Any] = {
            "handbook": "lives",
            "number": rng.choice((1, 1, 2)),
            "by": rng.choice(PEOPLE),
        }
        match rng.randrange(3):
            case 0:
                return await sign_off(
                    self.store, "version_signed_off", said, who=self.who(), clock=self.clock
                )
            case 1 if rng.random() < 0.3:
                return await withdraw(
                    self.store, "version_withdrawn", said, who=self.who(), clock=self.clock
                )
            case _:
                now = self.clock.now()
                return await release(
                    self.store, "lives", text="t", programs=FIRST.hashes, begin=now - 5,
                    end=rng.choice((None, now + 5000)), coverage=None, clock=self.clock,
                    who=self.who(), by=rng.choice(PEOPLE),
                )  # fmt: skip

    async def list_all(self) -> Any:
        records = await self.store.sessions(limit=3)
        return list(session_lines(records, len(self.sessions))), await self.store.states()

    async def bundle(self) -> Any:
        files = await bundle_files(
            self.store, self.clock.now() - self.rng.choice((10.0, DAY)), self.clock.now(),
            payloads=self.rng.random() < 0.5,
        )  # fmt: skip
        files["bundle.json"] = re.sub(r'"made_at": [\d.]+', "", files["bundle.json"])
        return files
