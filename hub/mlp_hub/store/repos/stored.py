"""What is stored for people, and what of a quota each holds: its row of the ledger, which goes with it always."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, func, select

from mlp_hub.domain.ledger import OF_STORAGE, RequestPhase, ResourceRequest
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.storage import StoredItem, StoredKind
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import resource_request
from mlp_hub.store.tables import stored as t


class StoredItems(Repo):
    """The things that are stored. The rules (who may take how much) are in `storage.ledger`."""

    __slots__ = ()

    def get(self, uid: str) -> StoredItem | None:
        """Return one."""
        row = self._c.execute(select(t).where(t.c.uid == uid)).first()
        return None if row is None else item_of(row)

    def find(self, kind: StoredKind, user: str, name: str) -> StoredItem | None:
        """Return the one of this name."""
        of = (t.c.kind == kind.value, t.c.user == user, t.c.name == name)
        row = self._c.execute(select(t).where(*of)).first()
        return None if row is None else item_of(row)

    def granted(self) -> list[StoredItem]:
        """Return those that something is, or was, being written to."""
        return [item_of(row) for row in self._c.execute(select(t).where(t.c.granted > 0).order_by(t.c.uid))]

    def count_of(self, user: str) -> dict[StoredKind, tuple[int, int]]:
        """Return how many of each kind are a user's, and the bytes of their files."""
        counted = (
            select(t.c.kind, func.count(), func.sum(t.c.used)).where(t.c.user == user).group_by(t.c.kind)
        )
        return {StoredKind(kind): (number, int(used)) for kind, number, used in self._c.execute(counted)}

    def put(self, item: StoredItem) -> None:
        """Store one, new or changed, and charge its tenant with what it takes."""
        self._c.execute(self._upsert(t, ("uid",)), _row(item))
        held = ResourceRequest(
            id=item.uid,
            applier=OF_STORAGE,
            tenant=item.tenant,
            amount=Resources(rom=item.charged),
            phase=RequestPhase.CONFIRMED,
            created_at=item.made_at,
            holder=f"{item.kind.value} {item.name}",
            user=item.user,
            last="confirm",
        )
        self._c.execute(self._upsert(resource_request, ("applier", "id")), codec.request_row(held))

    def remove(self, uid: str) -> bool:
        """Forget one, and give back what it holds; False when it was gone."""
        of = (resource_request.c.applier == OF_STORAGE, resource_request.c.id == uid)
        self._c.execute(delete(resource_request).where(*of))
        return bool(self._c.execute(delete(t).where(t.c.uid == uid)).rowcount)


def item_of(row: Row[Any]) -> StoredItem:
    """Return what a row with the columns of `stored` says."""
    return StoredItem(
        row.uid,
        StoredKind(row.kind),
        row.tenant,
        row.user,
        row.name,
        row.made_at,
        row.used,
        row.granted,
        row.reserved,
    )


def _row(item: StoredItem) -> dict[str, Any]:
    return {
        "uid": item.uid,
        "kind": item.kind.value,
        "tenant": item.tenant,
        "user": item.user,
        "name": item.name,
        "made_at": item.made_at,
        "used": item.used,
        "granted": item.granted,
        "reserved": item.reserved,
    }
