"""Windows of time that tenants booked."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, select, update

from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import booking as t

_ORDER = (t.c.starts_at, t.c.tenant, t.c.name)
_CURRENT = select(t).where(t.c.ends_at > bindparam("now")).order_by(*_ORDER)
_OF = _CURRENT.where(t.c.tenant == bindparam("tenant"))


class Bookings(Repo):
    """The booked windows."""

    __slots__ = ()

    def count(self, now: float) -> int:
        """Count the windows of all tenants that are not over."""
        return int(self._c.scalar(select(func.count()).where(t.c.ends_at > now)) or 0)

    def current(self, now: float) -> list[BookedWindow]:
        """Return the windows that are not over at `now`, in the order in which they open."""
        return [codec.booking_of(row) for row in self._c.execute(_CURRENT, {"now": now})]

    def of_tenant(self, tenant: str, now: float) -> list[BookedWindow]:
        """Return those of one tenant."""
        return [codec.booking_of(row) for row in self._c.execute(_OF, {"now": now, "tenant": tenant})]

    def insert(self, window: BookedWindow) -> bool:
        """Store a new window; False when its tenant has one of that name."""
        row = codec.booking_row(window)
        return self._c.execute(self._insert_new(t, ("tenant", "name")), row).first() is not None

    def remove(self, tenant: str, name: str) -> BookedWindow | None:
        """Remove a window and return it; None when there is none of that name."""
        gone = delete(t).where(t.c.tenant == tenant, t.c.name == name).returning(*t.columns)
        row = self._c.execute(gone).first()
        return None if row is None else codec.booking_of(row)

    def set_short(self, window: BookedWindow) -> None:
        """Store whether a window can be held in full."""
        of = (t.c.tenant == window.tenant, t.c.name == window.name)
        self._c.execute(update(t).where(*of).values(short=codec.shortfall(window.short)))

    def delete_expired(self, now: float) -> int:
        """Forget the windows that are over; return how many."""
        return int(self._c.execute(delete(t).where(t.c.ends_at <= now)).rowcount)
