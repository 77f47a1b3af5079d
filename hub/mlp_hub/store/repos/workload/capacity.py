"""Capacity that jobs do not have: windows of time that tenants booked, and nodes that were taken out of service."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, select, update

from mlp_hub.domain.workload.booking import BookedWindow, Shortfall
from mlp_hub.domain.workload.drain import NodeDrain
from mlp_hub.store import codec
from mlp_hub.store.repos.base import KeyedRepo, Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import booking as t
from mlp_hub.store.tables import node_drain

_CURRENT = select(t).where(t.c.ends_at > bindparam("now")).order_by(t.c.starts_at, t.c.tenant, t.c.name)
_OF = _CURRENT.where(t.c.tenant == bindparam("tenant"))
_windows = Rows(
    BookedWindow,
    t,
    columns={"start": "starts_at", "end": "ends_at"},
    converted={"short": codec.with_message(Shortfall)},
)
_short = _windows.part(("short",))


class Bookings(Repo):
    """The booked windows."""

    __slots__ = ()

    def count(self, now: float) -> int:
        """Count the windows of all tenants that are not over."""
        return self._count(t, t.c.ends_at > now)

    def current(self, now: float) -> list[BookedWindow]:
        """Return the windows that are not over at `now`, in the order in which they open."""
        return self._list(_windows, _CURRENT, {"now": now})

    def of_tenant(self, tenant: str, now: float) -> list[BookedWindow]:
        """Return those of one tenant."""
        return self._list(_windows, _OF, {"now": now, "tenant": tenant})

    def insert(self, window: BookedWindow) -> bool:
        """Store a new window; False when its tenant has one of that name."""
        return self._insert_if_new(_windows, window)

    def remove(self, tenant: str, name: str) -> BookedWindow | None:
        """Remove a window and return it; None when there is none of that name."""
        gone = delete(t).where(t.c.tenant == tenant, t.c.name == name).returning(*t.columns)
        return self._one(_windows, gone)

    def set_short(self, window: BookedWindow) -> None:
        """Store whether a window can be held in full."""
        of = (t.c.tenant == window.tenant, t.c.name == window.name)
        self._c.execute(update(t).where(*of).values(_short(window)))

    def delete_expired(self, now: float) -> int:
        """Delete the windows that are over; return their number."""
        return self._delete(t, t.c.ends_at <= now)


class DrainedNodes(KeyedRepo[NodeDrain]):
    """The nodes that are out of service, by name."""

    __slots__ = ()
    rows = Rows(NodeDrain, node_drain)

    def all(self) -> list[NodeDrain]:
        """Return all, by name."""
        return self._list(self.rows, select(node_drain).order_by(node_drain.c.node))
