"""Messages of administrators to everybody, or to the members of their tenant."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import delete, select

from mlp_hub.domain.notices.announcement import Announcement, Level
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import announcement as t


class Announcements(Repo):
    """The announcements."""

    __slots__ = ()

    def current(self, now: float) -> list[Announcement]:
        """Return those that are not over, the oldest first."""
        rows = self._c.execute(select(t).where(t.c.ends_at > now).order_by(t.c.id))
        return [
            Announcement(r.id, r.tenant, Level(r.level), r.text, r.begins_at, r.ends_at, r.made_by, r.made_at)
            for r in rows
        ]

    def add(self, new: Announcement) -> Announcement:
        """Store a new one, and return it with its number."""
        values = {
            "tenant": new.tenant,
            "level": new.level.value,
            "text": new.text,
            "begins_at": new.begins_at,
            "ends_at": new.ends_at,
            "made_by": new.made_by,
            "made_at": new.made_at,
        }
        number = self._c.execute(t.insert().values(values).returning(t.c.id)).scalar_one()
        return replace(new, id=int(number))

    def remove(self, number: int) -> bool:
        """Forget one; False where it is not there."""
        return bool(self._c.execute(delete(t).where(t.c.id == number)).rowcount)

    def remove_all(self, tenant: str) -> None:
        """Forget those of a tenant."""
        self._c.execute(delete(t).where(t.c.tenant == tenant))

    def delete_expired(self, now: float) -> int:
        """Forget those that are over; return how many."""
        return int(self._c.execute(delete(t).where(t.c.ends_at <= now)).rowcount)
