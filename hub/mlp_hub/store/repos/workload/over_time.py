"""Sums of samples over time, of tenants and the cluster, by spans of several lengths."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from sqlalchemy import Row, and_, func, select

from mlp_hub.domain.over_time.grains import SumsOfSpan
from mlp_hub.domain.over_time.sums import SpanSums
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.tables import over_time as o

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SpanSums).decode


class OverTimeSums(Repo):
    """The rows of `over_time`. A span is `grain`, its seconds, and its number since the epoch; the cluster's tenant is empty."""

    __slots__ = ()

    def newest(self, grain: int, before: int | None = None) -> int | None:
        """Return the last span of this grain, or the last one before another."""
        bound = [] if before is None else [o.c.number < before]
        found: int | None = self._c.scalar(select(func.max(o.c.number)).where(o.c.grain == grain, *bound))
        return found

    def put(self, grain: int, number: int, sums: Mapping[str, SpanSums]) -> None:
        """Store the sums of a span, which are all that there is of it."""
        self._delete(o, o.c.grain == grain, o.c.number == number)
        self.add(grain, number, sums)

    def add(self, grain: int, number: int, sums: Mapping[str, SpanSums]) -> None:
        """Store the sums of a new span."""
        rows = [
            {"grain": grain, "number": number, "tenant": tenant, "sums": _encode(one)}
            for tenant, one in sums.items()
        ]
        self._insert_all(o, rows)

    def between(self, grain: int, since: int, until: int) -> list[SumsOfSpan]:
        """Return the sums of all tenants and the cluster, from span `since` on and before `until`."""
        which = and_(o.c.grain == grain, o.c.number >= since, o.c.number < until)
        return list(_read(self._c.execute(select(o).where(which))))

    def of(self, grain: int, numbers: Collection[int], tenants: Collection[str]) -> list[SumsOfSpan]:
        """Return the sums of these spans and tenants. The rows of a span are together, so each is looked up by its key."""
        found: list[SumsOfSpan] = []
        for part in chunks(numbers):
            which = and_(o.c.grain == grain, o.c.number.in_(part), o.c.tenant.in_(tenants))
            found += _read(self._c.execute(select(o).where(which)))
        return found

    def thin(self, grain: int, first: int, last: int, most: int) -> None:
        """Delete spans before `first`, and those after `last`, but only the `most` outermost of each end.

        A clock that is wrong for a moment so deletes a few of them, and not all.
        """
        of_grain = o.c.grain == grain
        oldest = self._c.scalar(select(func.min(o.c.number)).where(of_grain))
        newest = self.newest(grain)
        if oldest is not None and oldest < first:
            self._delete(o, of_grain, o.c.number < min(first, oldest + most))
        if newest is not None and newest > last:
            self._delete(o, of_grain, o.c.number > max(last, newest - most))

    def remove(self, tenant: str) -> None:
        """Forget a tenant that was deleted: another one of its name starts from nothing."""
        self._delete(o, o.c.tenant == tenant)


def _read(rows: Iterable[Row[tuple[object, ...]]]) -> Iterator[SumsOfSpan]:
    for row in rows:
        try:
            sums = _decode(row.sums)
        except msgspec.DecodeError:
            log.warning("the sums of %r from %d on are not readable", row.tenant, row.number * row.grain)
            continue
        yield SumsOfSpan(row.number * row.grain, row.tenant, sums)
