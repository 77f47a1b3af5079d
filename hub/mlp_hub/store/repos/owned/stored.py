"""Stored objects of people, and the quota that each holds: its row of the ledger always goes with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, bindparam, func, select, update

from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.stored.storage import MEASURED, StoredItem, StoredKind, home_uid, outputs_id
from mlp_hub.domain.workload.ledger import OF_STORAGE, RequestPhase, ResourceRequest
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.repos.workload.ledger import Requests
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import job, user
from mlp_hub.store.tables import stored as t

ITEMS = Rows(StoredItem, t)
# built once: building a statement costs more than running it
_GET = select(t).where(t.c.uid == bindparam("uid"))
_AMONG = select(t).where(t.c.uid.in_(bindparam("uids", expanding=True))).order_by(t.c.uid)
_OUTPUTS = select(func.sum(t.c.used), func.min(t.c.made_at)).where(
    t.c.kind == StoredKind.OUTPUT.value, t.c.user == bindparam("user"), t.c.tenant == bindparam("tenant")
)
_MEASURED = [kind.value for kind in sorted(MEASURED)]


class StoredItems(Repo):
    """The things that are stored. The rules (who may take how much) are in `storage.ledger`."""

    __slots__ = ("_ledger",)

    def __init__(self, connection: Connection, ledger: Requests) -> None:
        super().__init__(connection)
        self._ledger = ledger

    def get(self, uid: str) -> StoredItem | None:
        """Return one."""
        return self._one(ITEMS, _GET, {"uid": uid})

    def among(self, uids: Iterable[str]) -> dict[str, StoredItem]:
        """Return those of these that are there, by uid."""
        items = (item for part in chunks(uids) for item in self._list(ITEMS, _AMONG, {"uids": part}))
        return {item.uid: item for item in items}

    def find(self, kind: StoredKind, user: str, name: str) -> StoredItem | None:
        """Return the one of this name."""
        of = (t.c.kind == kind.value, t.c.user == user, t.c.name == name)
        return self._one(ITEMS, select(t).where(*of))

    def granted(self) -> list[StoredItem]:
        """Return those that something is, or was, being written to with the service's leave."""
        return self._all(t.c.granted > 0, t.c.kind.not_in(_MEASURED))

    def written_to(self) -> list[StoredItem]:
        """Return the homes and outputs of jobs that programs are, or were, writing to."""
        return self._all(t.c.granted > 0, t.c.kind.in_(_MEASURED))

    def homes(self) -> list[StoredItem]:
        """Return all homes."""
        return self._all(t.c.kind == StoredKind.HOME.value)

    def of_tenant(self, tenant: str) -> list[StoredItem]:
        """Return the datasets and models of a tenant."""
        return self._all(t.c.tenant == tenant, t.c.kind.not_in(_MEASURED))

    def users_without_home(self) -> list[str]:
        """Return the users whose home was never measured."""
        mine = select(t.c.user).where(t.c.kind == StoredKind.HOME.value)
        return list(self._c.scalars(select(user.c.name).where(user.c.name.not_in(mine))))

    def people(self, limit: int) -> list[tuple[str, str | None, int | None]]:
        """Return some users as (name, team of the home, bytes of the home); those with the largest homes first, unmeasured ones last."""
        home = (t.c.kind == StoredKind.HOME.value) & (t.c.user == user.c.name)
        query = select(user.c.name, t.c.tenant, t.c.used).select_from(user.outerjoin(t, home))
        query = query.order_by(func.coalesce(t.c.used, -1).desc(), user.c.name).limit(limit)
        return [(row.name, row.tenant, row.used) for row in self._c.execute(query)]

    def jobs_never_measured(self, limit: int) -> list[str]:
        """Return the uids of some jobs that have ended and whose directory was never measured."""
        ended = job.c.phase.in_([phase.value for phase in sorted(FINAL)])
        query = select(job.c.uid).where(ended, job.c.uid.not_in(select(t.c.uid))).order_by(job.c.uid)
        return list(self._c.scalars(query.limit(limit)))

    def owners_in(self, tenant: str) -> list[tuple[StoredKind, str]]:
        """Return whose homes and jobs count for a tenant."""
        query = select(t.c.kind, t.c.user).where(t.c.tenant == tenant, t.c.kind.in_(_MEASURED)).distinct()
        return [(StoredKind(row.kind), row.user) for row in self._c.execute(query)]

    def hand_over(self, kind: StoredKind, user: str, tenant: str, to: str) -> None:
        """Have what a user has of a kind in a tenant count for another one."""
        if kind is StoredKind.HOME:
            found = self.get(home_uid(user))
            if found is not None:
                self.put(replace(found, tenant=to))
            return
        of = (t.c.kind == kind.value, t.c.user == user, t.c.tenant == tenant)
        self._c.execute(update(t).where(*of).values(tenant=to))
        self._sum_outputs(user, tenant)
        self._sum_outputs(user, to)

    def count_of(self, user: str) -> dict[StoredKind, tuple[int, int]]:
        """Return how many of each kind are a user's, and the bytes of their files."""
        counted = (
            select(t.c.kind, func.count(), func.sum(t.c.used)).where(t.c.user == user).group_by(t.c.kind)
        )
        return {StoredKind(kind): (number, int(used)) for kind, number, used in self._c.execute(counted)}

    def put(self, item: StoredItem) -> None:
        """Store an item, new or changed, and charge its tenant with its size."""
        if item.kind is StoredKind.OUTPUT:
            self.put_outputs([item])
            return
        self._store(ITEMS, item)
        holder = f"{item.kind.value} {item.name}"
        self._hold(item.uid, item.user, item.tenant, size=item.charged, since=item.made_at, holder=holder)

    def put_outputs(self, items: Iterable[StoredItem]) -> None:
        """Store directories of jobs, and charge each of their owners in each tenant once."""
        whose: dict[tuple[str, str], None] = {}
        for item in items:
            self._store(ITEMS, item)
            whose[item.user, item.tenant] = None
        for user_name, tenant in whose:
            self._sum_outputs(user_name, tenant)

    def remove(self, uid: str) -> bool:
        """Forget one, and give back what it holds; False when it was gone."""
        found = self.get(uid)
        self._delete(t, t.c.uid == uid)
        if found is not None and found.kind is StoredKind.OUTPUT:
            self._sum_outputs(found.user, found.tenant)
        else:
            self._release(uid)
        return found is not None

    def _release(self, request: str) -> None:
        self._ledger.forget(OF_STORAGE, request)

    def _sum_outputs(self, user: str, tenant: str) -> None:
        """Have one row of the ledger hold what all directories of a user's jobs of a tenant take: the ledger is summed up often."""
        used, since = self._c.execute(_OUTPUTS, {"user": user, "tenant": tenant}).one()
        if not used:
            self._release(outputs_id(user, tenant))
            return
        holder = f"{StoredKind.OUTPUT.value} {tenant}"
        request = outputs_id(user, tenant)
        self._hold(request, user, tenant, size=int(used), since=float(since), holder=holder)

    def _hold(self, request: str, user: str, tenant: str, *, size: int, since: float, holder: str) -> None:
        """Have a row of the ledger hold this many bytes of a tenant's quota."""
        held = ResourceRequest(
            id=request,
            applier=OF_STORAGE,
            tenant=tenant,
            amount=Resources(rom=size),
            phase=RequestPhase.CONFIRMED,
            created_at=since,
            holder=holder,
            user=user,
            last="confirm",
        )
        self._ledger.put(held)

    def _all(self, *conditions: ColumnElement[bool]) -> list[StoredItem]:
        return self._list(ITEMS, select(t).where(*conditions).order_by(t.c.uid))
