"""The check of the audit log: its entries against their links, the links against each other and against the heads outside."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.domain.audit_chain import NO_HASH, ChainLink, entry_digest, link_hash
from mlp_hub.service.audit.heads import PublishedHead
from mlp_hub.service.support.units import utc_text
from mlp_hub.store.repos.audit_chain import AuditChain
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

ALL = 2**31 - 1
"""Given: no id of an entry is larger."""
LOT = 5000
"""Tuning: rows that are read at a time: memory, for the number of queries."""
MOST_FOUND = 1000
"""Safety: breaks that are kept for the report; more are counted alone."""
FRESH_S = 120.0
"""Tuning: seconds that the newest checkpoint may be missing among the heads: the service writes it there right after."""


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """A place where the log is not as it was written; `seq` orders breaks by their place in the chain."""

    seq: int
    message: Message


@dataclass(slots=True)
class ChainReport:
    """Result of a check. `first` and `last` are the ends of the chain; without a chain both are None.

    `outside` counts the entries from before the chain. `agreed` is the newest head outside that the chain has.
    """

    first: ChainLink | None = None
    last: ChainLink | None = None
    entries: int = 0
    links: int = 0
    outside: int = 0
    heads: int = 0
    agreed: PublishedHead | None = None
    breaks: list[ChainBreak] = field(default_factory=list)
    more: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.breaks

    def add_break(self, seq: int, message: Message) -> None:
        """Note a break."""
        if len(self.breaks) < MOST_FOUND:
            self.breaks.append(ChainBreak(seq, message))
        else:
            self.more += 1


def verify(tx: Tx, heads: Sequence[PublishedHead] | None, now: float) -> ChainReport:
    """Check the whole log in one reading transaction. `heads` are those outside; None: nobody keeps any.

    The memory it takes does not grow with the log, except for a number for each head.
    """
    report = ChainReport()
    _Check(tx.audit_chain, report).run()
    if heads is not None:
        report.heads = len(heads)
        known = tx.audit_chain.hashes({head.seq for head in heads})
        _compare(report, heads, known)
        _compare_newest(report, heads, tx.audit_chain.newest_checkpoint(), now)
    report.breaks.sort(key=lambda found: found.seq)
    return report


class _Check:
    """One pass over links and entries, both in their order."""

    def __init__(self, chain: AuditChain, report: ChainReport) -> None:
        self._chain = chain
        self._report = report
        self._stale: dict[
            int, tuple[int, bytes | None]
        ] = {}  # entries unlike their last link: its seq, their digest
        self._entries = self._walk_entries(0)
        self._row: Any = None
        self._newest = 0

    def run(self) -> None:
        """Go through all of it."""
        report = self._report
        report.first = first = self._chain.first()
        if first is None:
            report.outside = self._chain.outside(ALL)
            return
        # the first link stands for what was before it; where that is no checkpoint, its own entry is looked at too
        whole = first.time is not None
        self._newest = first.entry if whole else first.entry - 1
        report.outside = self._chain.outside(self._newest)
        self._begin(first)
        self._entries = self._walk_entries(self._newest)
        self._row = next(self._entries, None)
        before: Any = first.hash if whole else None
        seq = first.seq if whole else first.seq - 1
        report.last = first
        row: Any = None
        for row in self._walk_links(seq):
            before = self._link(before, seq, row)
            seq = row[0]
            report.links += 1
        if row is not None:
            report.last = ChainLink(*row)
        while self._row is not None:
            self._inserted(seq)
        for entry, (at, _) in self._stale.items():
            report.add_break(at, msg("entry {n} was changed", n=entry))

    def _begin(self, first: ChainLink) -> None:
        """Check the link that the chain begins with."""
        report = self._report
        if first.time is None:
            why = msg("the beginning of the chain was removed: link {n} is not a checkpoint", n=first.seq)
            report.add_break(first.seq, why)
        elif first.seq == 0:
            if _hash(NO_HASH, 0, first.entry, first.again, first.time, first.digest) != first.hash:
                report.add_break(0, msg("the first link of the chain was changed"))
        elif report.outside:
            why = msg(
                "{n} entries up to {entry} are there although the log was cut after them: they were inserted",
                n=report.outside,
                entry=first.entry,
            )
            report.add_break(first.seq, why)

    def _link(self, before: Any, seq: int, row: Any) -> Any:
        """Check a link after the one of number `seq`, and its entry; return its hash."""
        number, entry, again, time, digest, made = row
        if number != seq + 1:
            self._report.add_break(
                seq + 1,
                msg("links {first} to {last} of the chain were removed", first=seq + 1, last=number - 1),
            )
        elif before is not None and _hash(before, number, entry, again, time, digest) != made:
            self._report.add_break(
                number,
                msg(
                    "link {n} of the chain, of entry {entry}, does not follow from the one before it: one of them was changed",
                    n=number,
                    entry=entry,
                ),
            )
        if time is None:
            if again:
                self._repeated(number, entry, digest)
            else:
                self._entry(number, entry, digest)
        return made

    def _entry(self, seq: int, entry: int, digest: Any) -> None:
        if entry <= self._newest:
            self._report.add_break(
                seq,
                msg("the id of entry {n} was given twice: the first entry with it was removed", n=entry),
            )
            self._repeated(seq, entry, digest)
            return
        self._newest = entry
        while self._row is not None and self._row[0] < entry:
            self._inserted(seq)
        if self._row is None or self._row[0] > entry:
            self._report.add_break(seq, msg("entry {n} was removed", n=entry))
            return
        found = _digest(self._row)
        if found != digest:
            self._stale[entry] = (seq, found)
        self._report.entries += 1
        self._row = next(self._entries, None)

    def _repeated(self, seq: int, entry: int, digest: Any) -> None:
        """Compare an entry with its newer link."""
        first = self._report.first
        if first is not None and entry <= first.entry and first.time is not None:
            return  # its entry was cut, with the log before this link
        known = self._stale.get(entry)
        if known is None:
            row = self._chain.entry(entry)
            if row is None:
                return  # named before
            found = _digest(row)
        else:
            found = known[1]
        if found == digest:
            self._stale.pop(entry, None)
        else:
            self._stale[entry] = (seq, found)

    def _inserted(self, seq: int) -> None:
        self._report.add_break(seq, msg("entry {n} was inserted: it is not in the chain", n=self._row[0]))
        self._report.entries += 1
        self._row = next(self._entries, None)

    def _walk_links(self, after: int) -> Iterator[Any]:
        while rows := self._chain.links(after, LOT):
            yield from rows
            after = rows[-1][0]

    def _walk_entries(self, after: int) -> Iterator[Any]:
        while rows := self._chain.entries(after, LOT):
            yield from rows
            after = rows[-1][0]


def _compare(report: ChainReport, heads: Sequence[PublishedHead], known: Mapping[int, bytes]) -> None:
    """Compare the chain with the heads outside of the database; `known` are the hashes of its links by their numbers."""
    first, last = report.first, report.last
    if first is None or last is None:
        if heads:
            end = max(heads, key=lambda head: head.seq)
            report.add_break(
                0,
                msg(
                    "the whole chain was removed: the newest head outside is link {n} of {time}",
                    n=end.seq,
                    time=utc_text(end.time),
                ),
            )
        return
    same = [head for head in heads if known.get(head.seq) == head.hash]
    report.agreed = max(same, key=lambda head: head.seq, default=None)
    other = [head for head in heads if head.seq in known and known[head.seq] != head.hash]
    if other:
        at = min(other, key=lambda head: head.seq)
        upto = max((head.seq for head in same if head.seq < at.seq), default=None)
        since = msg("its beginning") if upto is None else msg("link {n}", n=upto)
        report.add_break(
            at.seq,
            msg(
                "link {n} is not the one that was written outside at {time}: the log was rewritten after {since}, or an older "
                "backup was restored, or these heads are of another hub",
                n=at.seq,
                time=utc_text(at.time),
                since=since,
            ),
        )
    if beyond := [head for head in heads if head.seq > last.seq]:
        end = max(beyond, key=lambda head: head.seq)
        report.add_break(
            last.seq + 1,
            msg(
                "the chain ends at link {last}, but the newest head outside is link {n} of {time}: entries at its end were "
                "removed, or an older backup was restored",
                last=last.seq,
                n=end.seq,
                time=utc_text(end.time),
            ),
        )
    cut = max((head.seq for head in heads if head.cut), default=0)
    if cut < first.seq and any(head.seq < first.seq for head in heads):
        report.add_break(
            first.seq,
            msg(
                "the chain begins at link {n}, but retention removed links before {cut} at most: its beginning was removed",
                n=first.seq,
                cut=cut,
            ),
        )


def _compare_newest(
    report: ChainReport, heads: Sequence[PublishedHead], newest: ChainLink | None, now: float
) -> None:
    """Check that the newest checkpoint is among the heads outside, which the service sees to at once."""
    if newest is None or not newest.time or newest.time > now - FRESH_S:
        return
    if any(head.seq >= newest.seq for head in heads):
        return
    report.add_break(
        newest.seq,
        msg(
            "the checkpoint at link {n} of {time} is missing among the heads outside: their file was cut or replaced, or it "
            "could not be written",
            n=newest.seq,
            time=utc_text(newest.time),
        ),
    )


def _digest(row: Any) -> bytes | None:
    try:
        return entry_digest(*row)
    except (struct.error, TypeError):  # a value of another type than the column's
        return None


def _hash(*fields: Any) -> bytes | None:
    try:
        return link_hash(*fields)
    except (struct.error, TypeError):
        return None
