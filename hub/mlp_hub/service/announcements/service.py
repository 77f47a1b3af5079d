"""Announcements: stored, and in memory as they are stored, because every open page asks for them now and then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from mlp_api.platform import announcements as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.notices.announcement import Announcement, Level
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.text import one_line
from mlp_hub.service.support import limits
from mlp_hub.service.support.ends import check_end
from mlp_hub.service.support.units import when
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg


class AnnouncementService:
    """Use cases of announcements. Whether who asks may is for the caller to say; a `tenant` is empty for everybody."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db, self._clock = db, clock
        self._current: tuple[Announcement, ...] = ()

    async def start(self) -> None:
        """Read what is stored."""
        now = self._clock()
        self._current = tuple(await self._db.read(lambda tx: tx.announcements.current(now)))

    @property
    def tells_tenants(self) -> bool:
        """Whether there is any for the members of a tenant."""
        return any(one.tenant for one in self._current)

    def shown(self, tenants: Collection[str]) -> Sequence[api.Announcement]:
        """List the present announcements for a member of these tenants: the most important first, then the newest."""
        now, levels = self._clock(), list(Level)
        mine = [
            one for one in self._current if one.is_shown(now) and (not one.tenant or one.tenant in tenants)
        ]
        return [_to_wire(one) for one in sorted(mine, key=lambda one: (-levels.index(one.level), -one.id))]

    def list_of_tenant(self, tenant: str | None) -> Sequence[api.Announcement]:
        """List those of a tenant that are not over, also those still to come, the newest first; None: all."""
        now = self._clock()
        mine = [one for one in self._current if one.ends_at > now and tenant in (None, one.tenant)]
        return [_to_wire(one) for one in reversed(mine)]

    async def make(self, asked: api.AnnouncementCreate, *, tenant: str = "", actor: str) -> api.Announcement:
        """Announce something. Raises `Invalid`, `NotFound` for a tenant that is not there."""
        now = self._clock()
        text = one_line(asked.text)
        # what has passed is at once: a time before all that can be written could not be read again either
        begin = now if asked.begin is None else max(now, asked.begin.timestamp())
        new = Announcement(0, tenant, Level(asked.level), text, begin, asked.until.timestamp(), actor, now)
        _check(new, now)

        def work(tx: Tx) -> Announcement:
            if tenant and tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            tx.announcements.delete_expired(now)
            there = [one for one in tx.announcements.current(now) if one.tenant == tenant]
            if len(there) >= limits.ANNOUNCEMENTS:
                raise Refused(
                    Reason.INVALID,
                    msg("there are {n} announcements; remove one that nobody needs", n=limits.ANNOUNCEMENTS),
                )
            made = tx.announcements.add(new)
            detail = {"level": new.level.value, "text": text}
            tx.audit.add(now, actor, "announcement.make", str(made.id), tenant=tenant or None, detail=detail)
            return made

        made = await self._db.write(work)
        self._current = (*(one for one in self._current if one.ends_at > now), made)
        return _to_wire(made)

    async def remove(self, number: str, *, tenant: str | None = None, actor: str) -> api.Announcement:
        """Remove an announcement; with a `tenant` only one of that tenant. Raises `NotFound`."""
        one = next((a for a in self._current if str(a.id) == number and tenant in (None, a.tenant)), None)
        if one is None:
            raise not_found("announcement", number)

        def work(tx: Tx) -> None:
            if tx.announcements.remove(one.id):
                tx.audit.add(
                    self._clock(),
                    actor,
                    "announcement.remove",
                    number,
                    tenant=one.tenant or None,
                    detail={"text": one.text},
                )

        await self._db.write(work)
        self._current = tuple(a for a in self._current if a.id != one.id)
        return _to_wire(one)

    def forget_tenant(self, tenant: str) -> None:
        """Forget those of a tenant that is gone, whose rows went with it."""
        self._current = tuple(a for a in self._current if a.tenant != tenant)


def _check(new: Announcement, now: float) -> None:
    if not new.text:
        raise Refused(Reason.INVALID, msg("an announcement needs a text; its text is empty"))
    days = limits.ANNOUNCEMENT_DAYS
    check_end(msg("an announcement"), new.ends_at, now, days=days, begins_at=new.begins_at)


def _to_wire(one: Announcement) -> api.Announcement:
    return api.Announcement(
        id=one.id,
        tenant=one.tenant,
        level=msgspec.convert(one.level.value, api.AnnouncementLevel),
        text=one.text,
        begin=when(one.begins_at),
        until=when(one.ends_at),
        made_by=one.made_by,
        made_at=when(one.made_at),
    )
