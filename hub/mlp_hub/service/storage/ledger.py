"""Storage half of the ledger: stored objects use `rom`, in the same rows and by the same rule as the rest.

    reserve  ->  kept for it before anything is written; refused if the quota has no room
    hold     ->  kept for it while the platform itself writes it; refused likewise
    take     ->  can be written from now on, in steps; refused likewise, within the reserved amount never
    give     ->  was written, or will not be: the exact difference
    lapse    ->  its taker is gone: charged as if it was written, until a measurement
    settle   ->  the measured amount; never refused, since it is there

All except `reserve` can be called for a missing object: then nothing happens. Each is one step
inside a transaction; the caller calls the ledger's `changed` when it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.stored.storage import StoredItem, title
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota import accounting
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

TOGETHER = 200
"""Safety: things of a user who leaves that are told to go in one transaction: others wait behind it."""


class StorageLedger:
    """Takes and gives back storage for things of any kind."""

    def __init__(
        self,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        free: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`free`: bytes that the disk has for all; None where nobody knows."""
        self._clock = clock
        self._nodes = nodes
        self._free = free

    def reserve(self, tx: Tx, item: StoredItem) -> None:
        """Store a new object with its reservation. Raises `Conflict`, or the refusal that the quota has no room."""
        there = tx.stored.find(item.kind, item.user, item.name)
        if there is not None:
            raise Refused(
                Reason.CONFLICT,
                msg(
                    "{thing} already exists; delete it first, or choose another name",
                    thing=title(item.kind, item.name, item.user),
                ),
            )
        self._check(tx, item.tenant, item.charged)
        tx.stored.put(item)

    def grant_bytes(self, tx: Tx, uid: str, size: int) -> StoredItem | None:
        """Grant `size` more bytes to write; None if it is gone. Raises the refusal that the quota has no room."""
        item = tx.stored.get(uid)
        return None if item is None else self._change(tx, item, replace(item, granted=item.granted + size))

    def settle_bytes(self, tx: Tx, uid: str, granted: int, grown: int) -> StoredItem | None:
        """End a grant: the files have grown by `grown`, which can be negative."""
        item = tx.stored.get(uid)
        if item is None:
            return None
        left = replace(item, granted=max(item.granted - granted, 0), used=max(item.used + grown, 0))
        tx.stored.put(left)
        return left

    def hold(self, tx: Tx, uid: str, size: int) -> StoredItem | None:
        """Keep room for `size` more bytes than it uses; None if it is gone. Raises if the quota has no room."""
        item = tx.stored.get(uid)
        return None if item is None else self._change(tx, item, replace(item, reserved=item.used + size))

    def lapse(self, tx: Tx, item: StoredItem) -> None:
        """End all grants of a taker that is gone: charged as if all was written, until a measurement."""
        tx.stored.put(replace(item, granted=0, used=item.used + item.granted))

    def settle(self, tx: Tx, uid: str, used: int, reserved: int = 0) -> StoredItem | None:
        """Charge what its files take, as was found; nothing is being written to it."""
        item = tx.stored.get(uid)
        if item is None:
            return None
        left = replace(item, used=used, granted=0, reserved=reserved)
        tx.stored.put(left)
        return left

    def raise_bytes(self, tx: Tx, uid: str, found: int) -> StoredItem | None:
        """Charge at least what its files were found to take while it is being written to: programs may write there too."""
        item = tx.stored.get(uid)
        if item is None or item.used + item.granted >= found:
            return item
        left = replace(item, used=found - item.granted)
        tx.stored.put(left)
        return left

    def drop(self, tx: Tx, uid: str) -> None:
        """Give all of it back: its files are gone."""
        tx.stored.remove(uid)

    def _change(self, tx: Tx, item: StoredItem, new: StoredItem) -> StoredItem:
        if new.charged > item.charged:
            self._check(tx, item.tenant, new.charged - item.charged)
        tx.stored.put(new)
        return new

    def _check(self, tx: Tx, tenant: str, more: int) -> None:
        free = self._free()
        if free is not None and more > free:
            # a tenant without a quota of storage may have what the nodes have: no word alone takes that from its members
            raise Refused(
                Reason.DISK_FULL,
                msg(
                    "the disk has {free} for all, but {more} are requested; send less, or have room made",
                    free=quantity("rom", free),
                    more=quantity("rom", more),
                ),
            )
        accounting.Quotas(tx, self._clock(), self._nodes()).check(tenant, Resources(rom=more))
