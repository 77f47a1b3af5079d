"""Stops notebook servers that nobody uses, by the policy of their team, after a countdown that their owner can stop.

A server reports itself how long it is not used. A false report keeps the reporter's own server, as any computation would. The
countdown is stored, so a restart of the service continues it. It pauses while the service is down, or the server reports nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from mlp_api.accounts import idle_servers as api
from mlp_hub.domain.errors import MLPError, not_found
from mlp_hub.domain.jobs.idle_gpus import LONG_S
from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.workload.idle_policy import IdleKind, IdleWorkPolicy
from mlp_hub.domain.workload.idle_servers import IdleServer
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.service.quota.idle_policies import HOUR_S, MOST_PASSED_S
from mlp_hub.service.support.people_notices import PeopleNotices
from mlp_hub.store import Database, Tx
from mlp_language.message import NOTHING, Message, Span, msg

log = logging.getLogger(__name__)
FRESH_S = 180.0
"""Tuning: seconds for which a report counts: three reports may be lost before a countdown pauses."""
Key = tuple[str, str]
End = Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Report:
    idle_s: float
    at: float  # of the steady clock


class IdleServerStops:
    """Counts down and stops, by `end(user, server)`, which is given once the hub can be asked; until then nothing is stopped.

    `monotonic` is a clock that never jumps. Whether who asks may is for the caller to say.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        notices: PeopleNotices,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._clock, self._notices, self._monotonic = db, clock, notices, monotonic
        self._one_by_one = asyncio.Lock()
        self._looked: float | None = None
        self._reports: dict[Key, _Report] = {}
        self._servers: dict[Key, IdleServer] = {}
        self._ending: dict[str, Message] = {}  # by user: why a server of theirs is being stopped
        self._unruled: dict[Key, IdleServer] = {}  # of teams without a policy; in memory only
        self._held: dict[Key, ResourceRequest] = {}
        self.end: End | None = None

    def ends_server_for(self, user: str) -> Message:
        """Say why a server of a user is being stopped; nothing where none is."""
        return self._ending.get(user, NOTHING)

    async def start(self) -> None:
        """Continue the countdowns that are stored."""
        self._looked, self._reports, self._unruled, self._held = None, {}, {}, {}
        stored = await self._db.read(lambda tx: tx.idle_countdowns.all())
        self._servers = {(one.user, one.server): one for one in stored}

    # ------------------------------------------------------------ servers

    def report(self, user: str, report: api.ServerUseReport) -> api.ServerCountdown:
        """Take a report; it is kept in memory, for servers that hold something. Return its countdown."""
        key = user, report.server
        if (known := self._servers.get(key) or self._unruled.get(key)) is None:
            return api.ServerCountdown(
                server=report.server, tenant="", idle_s=report.idle_s, left_s=None, kept_s=0.0
            )
        self._reports[key] = _Report(report.idle_s, self._monotonic())
        return _to_wire(known)

    def of_user(self, user: str) -> list[api.ServerCountdown]:
        """List a user's servers under a policy."""
        return [_to_wire(one) for (owner, _), one in sorted(self._servers.items()) if owner == user]

    def long_idle(self, tenant: str | None = None) -> list[tuple[IdleServer, ResourceRequest]]:
        """List the servers of a tenant, or of all, that were not used for long, or that count down; the longest first.

        Each has its row of the ledger.
        """
        found = [
            (one, self._held[key])
            for key, one in (self._servers | self._unruled).items()
            if key in self._held
            and tenant in (None, one.tenant)
            and (one.idle_s >= LONG_S or one.left_s is not None)
        ]
        return sorted(found, key=lambda each: (-each[0].idle_s, each[0].user, each[0].server))

    async def keep(self, user: str, asked: api.ServerKeep) -> api.ServerCountdown:
        """Keep a server for some hours from now on: its countdown stops. Raises `NotFound`."""
        key = user, asked.server
        async with self._one_by_one:
            known = self._servers.get(key)
            if known is None:
                raise not_found("server", asked.server or user)
            kept = replace(known, left_s=None, kept_s=float(asked.hours * HOUR_S))

            def work(tx: Tx) -> None:
                tx.idle_countdowns.put(kept)
                detail = {"hours": asked.hours}
                tx.audit.add(
                    self._clock(),
                    user,
                    "server.keep",
                    asked.server or user,
                    tenant=kept.tenant,
                    detail=detail,
                )

            await self._db.write(work)
            self._servers[key] = kept
        return _to_wire(kept)

    async def remove(self, user: str) -> bool:
        """Forget the servers of a person who leaves."""
        async with self._one_by_one:
            await self._db.write(lambda tx: tx.idle_countdowns.remove_person(user))
            self._servers = {key: one for key, one in self._servers.items() if key[0] != user}
        return True

    # --------------------------------------------------------------- looks

    async def look(self) -> None:
        """Count down all that are idle, and stop those whose countdown is over."""
        async with self._one_by_one:
            policies, held = await self._db.read(self._found)
            now = self._monotonic()
            passed = 0.0 if self._looked is None else min(now - self._looked, MOST_PASSED_S)
            self._looked = now
            self._held = {(row.user, _server(row)): row for row in held}
            before, self._servers = self._servers, self._counted(policies, passed, now)
            self._reports = {key: one for key, one in self._reports.items() if key in self._held}
            if before != self._servers:
                await self._store(before)
            # a countdown that was over before this process began needs a report to it: somebody may be at work by now
            due = [
                one for key, one in self._servers.items() if one.due and self._idle_s(key, now) is not None
            ]
        for one in due:
            async with self._one_by_one:  # between two, somebody may keep theirs
                if await self._is_due(one):
                    await self._stop(one)

    async def _is_due(self, one: IdleServer) -> bool:
        """Look again right before a server's end: the ends of others take time, in which it may be used, kept or replaced."""
        key = one.user, one.server
        policies, held = await self._db.read(self._found)
        row = next((row for row in held if (row.user, _server(row)) == key), None)
        if (
            self._servers.get(key) != one
            or row is None
            or (row.tenant, row.created_at) != (one.tenant, one.began)
        ):
            return False
        idle_s = self._idle_s(key, self._monotonic())
        return idle_s is not None and one.after(0.0, idle_s, policies.get(one.tenant)).due

    def _counted(
        self, policies: dict[str, IdleWorkPolicy], passed: float, now: float
    ) -> dict[Key, IdleServer]:
        found: dict[Key, IdleServer] = {}
        others, self._unruled = self._unruled, {}
        for key, row in self._held.items():
            policy = policies.get(row.tenant)
            known = self._servers.get(key) or others.get(key)
            if known is not None and (known.tenant, known.began) != (row.tenant, row.created_at):
                known = None
                self._reports.pop(key, None)
            known = known or IdleServer(*key, row.tenant, row.created_at)
            ruled = policy is not None or known.kept_s > 0
            (found if ruled else self._unruled)[key] = known.after(passed, self._idle_s(key, now), policy)
        return found

    def _idle_s(self, key: Key, now: float) -> float | None:
        """Return how long a server is idle by its last report, None if that is not fresh."""
        report = self._reports.get(key)
        return None if report is None or now - report.at > FRESH_S else report.idle_s

    async def _store(self, before: dict[Key, IdleServer]) -> None:
        now = dict(self._servers)

        def work(tx: Tx) -> set[str]:
            told: set[str] = set()
            for key in before.keys() - now.keys():
                tx.idle_countdowns.remove(*key)
            for key, one in now.items():
                old = before.get(key)
                if old != one:
                    tx.idle_countdowns.put(one)
                if one.left_s is not None and (old is None or old.left_s is None):
                    what = (NoticeKind.IDLE, AskedFor.SERVER)
                    told |= self._notices.asked(tx, [one.user], what, one.tenant, _words(one))
            return told

        self._notices.notify(await self._db.write(work))

    async def _stop(self, one: IdleServer) -> None:
        if self.end is None:
            return
        why = msg(
            "it was not used for {time}, by the policy of {tenant}", time=Span(one.idle_s), tenant=one.tenant
        )
        self._ending[one.user] = why  # the spawner asks while it stops the server
        try:
            await self.end(one.user, one.server)
        except MLPError as error:  # the next look tries again
            log.warning("the idle server %s/%s is not stopped yet: %s", one.user, one.server, error)
            return
        except Exception:  # one of them shall not keep the others
            log.exception("stopping the idle server %s/%s failed", one.user, one.server)
            return
        finally:
            del self._ending[one.user]
        await self._db.write(
            lambda tx: tx.audit.add(
                self._clock(),
                THE_HUB,
                "server.stop",
                f"{one.user}/{one.server}",
                tenant=one.tenant,
                detail={"message": why},
            )
        )
        # its place in the ledger may stay a little: a report after this one begins a new countdown
        self._reports.pop((one.user, one.server), None)
        self._servers[one.user, one.server] = replace(one, left_s=None, idle_s=0.0)

    def _found(self, tx: Tx) -> tuple[dict[str, IdleWorkPolicy], list[ResourceRequest]]:
        return tx.idle_policies(IdleKind.SERVER).all(), tx.ledger.held(self._clock(), applier=SERVER.applier)


def _server(row: ResourceRequest) -> str:
    return row.id.removeprefix(f"{row.user}/")


def _words(one: IdleServer) -> Message:
    return msg(
        "Your notebook server has not been used for {time}. The policy of {tenant} stops it in {left}. "
        "To keep it, run something in it, or click Keep in JupyterLab.",
        time=Span(one.idle_s),
        left=Span(one.left_s or 0.0),
        tenant=one.tenant,
    )


def _to_wire(one: IdleServer) -> api.ServerCountdown:
    return api.ServerCountdown(
        server=one.server, tenant=one.tenant, idle_s=one.idle_s, left_s=one.left_s, kept_s=one.kept_s
    )
