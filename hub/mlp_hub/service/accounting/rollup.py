"""Roll-up of ended spans into sums by day and month.

A lot of spans is read, added to the sums and removed in one transaction. So a span counts once, wherever the process is
killed. At the end of a day, spans of running work are cut, so that no question adds up more than a day of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.accounting.spans import NODES, PLATFORM, LedgerSpan, rolled_up
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.store import codec
from mlp_hub.store.database import Database
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_hub.store.tx import Tx

MOST = 1000
"""Tuning: spans that are added up in one transaction: size of a lot, for how long others wait behind it."""
NAMES_DAYS = 62
"""Tuning: days for which sums are kept by the name of the work: details, for bytes; two whole months."""
JUMP_DAYS = 3
"""Safety: days after which a new day deletes nothing: the clock may be wrong, and the next day deletes it."""
CAPACITY = "accounting.capacity"
"""Contract: key of the setting with the amounts of the nodes since a moment."""
CUT = "accounting.cut"
"""Contract: key of the setting with the day up to which spans of running work are cut."""
SOURCES = "accounting.sources"
"""Contract: key of the setting that is there once the source of use from before revision 0052 was decided."""


class RollUp:
    """Adds up spans; only the leading service does. `nodes` lists the nodes as the scheduler sees them.

    `measures`: the executor measures all use itself, so use from before its source was stored was measured too.
    """

    def __init__(
        self,
        db: Database,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        *,
        measures: bool = True,
    ) -> None:
        self._db, self._nodes, self._clock, self._measures = db, nodes, clock, measures
        self._sources_known = False
        self.on_added: list[Callable[[set[str]], None]] = []
        """Called with the tenants of a lot of spans once it is added up."""

    async def roll_up(self) -> int:
        """Add up all spans that have ended; return how many."""
        await self._db.write(self._begin)
        self._sources_known = True
        added = 0
        while True:
            lot, tenants = await self._db.write(_add_up)
            added += lot
            for told in self.on_added if lot else ():
                told(tenants)
            if lot < MOST:
                return added

    def _begin(self, tx: Tx) -> None:
        now = self._clock()
        today = day_at(now)
        self._count_nodes(tx, now)
        if not self._sources_known and not tx.settings.get(SOURCES):
            if self._measures:
                tx.accounting.take_as_measured()
            tx.settings.put(SOURCES, True)
        last = tx.settings.get(CUT)
        if last != today:
            tx.accounting.cut_held(today * DAY_S)
            if last is not None and 0 < today - last <= JUMP_DAYS:
                tx.accounting.delete_names(today - NAMES_DAYS)
            tx.settings.put(CUT, today)

    async def put_off(self, by: float) -> None:
        """Keep durations where the clock was set by `by` seconds."""

        def work(tx: Tx) -> None:
            if (known := tx.settings.get(CAPACITY)) is not None:
                tx.settings.put(CAPACITY, {**known, "since": known["since"] + by})

        await self._db.write(work)

    def _count_nodes(self, tx: Tx, now: float) -> None:
        """Store the amounts of the nodes as a span that ends, where they changed or a new day began."""
        found = amounts_of(self._nodes())
        amounts = codec.dumps(list(zip((NODES, PLATFORM), found, strict=True)))
        known = tx.settings.get(CAPACITY)
        if known is not None and known["amounts"] == amounts and day_at(known["since"]) == day_at(now):
            return
        for span in capacity_spans(known, now):
            tx.accounting.add_span(span)
        tx.settings.put(CAPACITY, {"since": now, "amounts": amounts})


def amounts_of(nodes: Sequence[NodeInfo]) -> tuple[Resources, Resources]:
    """Return what the nodes that are up may give out together, and what their systems keep."""
    give, keep = ZERO, ZERO
    for node in nodes:
        if node.ready:
            most = node.at_most.of_kind(node.gpu_kind)
            give += most.on_nodes
            keep += Resources(max(node.capacity.cpu - most.cpu, 0), 0, max(node.capacity.ram - most.ram, 0))
    return give, keep


def capacity_spans(known: object, now: float) -> list[LedgerSpan]:
    """Return the spans of the nodes' amounts until now, as they are stored in the settings."""
    if not isinstance(known, dict):
        return []
    since = float(known["since"])
    return [
        LedgerSpan(of, "", "", "", amount.cpu, amount.gpu, amount.ram, 0, amount.kinds, since, now)
        for of, amount in codec.shares_of(known["amounts"])
        if since < now
    ]


def _add_up(tx: Tx) -> tuple[int, set[str]]:
    spans, last = tx.accounting.spans(MOST)
    if spans:
        tx.accounting.add(rolled_up(spans))
        tx.accounting.added_up(last)
    return len(spans), {span.tenant for span in spans}
