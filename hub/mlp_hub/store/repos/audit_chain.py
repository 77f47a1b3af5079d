"""The links of the audit log's chain, which make a change of its rows visible."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select, text

from mlp_hub.domain.audit_chain import NO_HASH, ChainLink, link_hash, made_link
from mlp_hub.domain.notices.mail_names import without_names
from mlp_hub.store import codec
from mlp_hub.store.records import ShippedLink
from mlp_hub.store.repos.base import Repo, bounded, chunks
from mlp_hub.store.tables import audit, audit_link
from mlp_language.message import from_data

_LAST = "SELECT seq, entry, again, time, digest, hash FROM audit_link ORDER BY seq DESC LIMIT 1"
_LINKS = text(
    "SELECT seq, entry, again, time, digest, hash FROM audit_link WHERE seq > :after ORDER BY seq LIMIT :most"
)
OF_CHANNELS = "notifications.set"
"""Contract: action of the entries whose detail lists a person's channels of notices."""
SAID = "said"
"""Given: key of a sentence in a stored detail."""
_TEXTS = ("actor", "action", "object", "tenant", "detail")
_NEWEST = audit_link.alias("newest")
LAST_LINK = tuple(
    select(_NEWEST.c[name]).order_by(_NEWEST.c.seq.desc()).limit(1).scalar_subquery()
    for name in ("seq", "hash")
)
"""Number and hash of the last link, as columns for RETURNING: a statement of its own would cost as much as storing the link."""
_INSERT = insert(audit_link)
_BYTES = {"sqlite": "CAST({} AS BLOB)", "postgresql": "convert_to({}, 'UTF8')"}
"""How a text is read as its bytes: a text that somebody broke by hand must not stop the one who looks for it."""


class AuditChain(Repo):
    """The chain of hashes. A writing transaction excludes all others, so the last link that it reads is the last one."""

    __slots__ = ()

    def append(
        self, seq: int | None, before: bytes | None, entry: int, digest: bytes, *, again: bool
    ) -> None:
        """Add the link of an entry that was stored, or counted once more, in this transaction.

        `seq` and `before` are of the last link, by `LAST_LINK`. Without one the chain begins: older entries are outside of it.
        """
        if seq is None or before is None:
            first = self._begin(0.0, entry - 1)
            seq, before = first.seq, first.hash
        made = link_hash(before, seq + 1, entry, again, None, digest)
        self._insert_quickly(
            _INSERT, seq=seq + 1, entry=entry, again=again, time=None, digest=digest, hash=made
        )

    def checkpoint(self, now: float) -> ChainLink:
        """Return the checkpoint at the end of the chain; it is made unless the last link is one. A chain without links begins."""
        last = self.last()
        if last is None:
            return self._begin(now, self._newest_entry())
        if last.time is not None:
            return last
        before = self.newest_checkpoint()
        since = -1 if before is None else before.seq
        # by the links, not by the entries: nobody else's row may decide what a later cut removes
        entry = self._c.scalar(select(func.max(audit_link.c.entry)).where(audit_link.c.seq >= since))
        return self._add_link(made_link(last.hash, last.seq + 1, int(entry or 0), NO_HASH, time=now))

    def last(self) -> ChainLink | None:
        """Return the last link; None before the first one."""
        return _link(self._c.exec_driver_sql(_LAST).first())

    def first(self) -> ChainLink | None:
        """Return the first link that is kept: a checkpoint, whose entry is the last one outside of the chain."""
        return self._link(select(audit_link).order_by(audit_link.c.seq))

    def newest_checkpoint(self) -> ChainLink | None:
        """Return the last checkpoint."""
        made = select(audit_link).where(audit_link.c.time.is_not(None))
        return self._link(made.order_by(audit_link.c.time.desc(), audit_link.c.seq.desc()))

    def next_cut(self, before: float, most: int) -> ChainLink | None:
        """Return the checkpoint up to which entries can go whose time is before a time; None: there is none.

        At most about `most` entries are before it, unless there are more up to the next checkpoint.
        """
        first = self.first()
        if first is None:
            return None
        seq = audit_link.c.seq
        made = select(audit_link).where(audit_link.c.time < before, seq > first.seq)
        near = self._link(made.where(seq <= first.seq + most).order_by(seq.desc()))
        return near or self._link(made.order_by(seq))

    def cut(self, seq: int) -> None:
        """Remove the links before a checkpoint, which is the first one from now on."""
        self._c.execute(delete(audit_link).where(audit_link.c.seq < seq))

    def hashes(self, numbers: Collection[int]) -> dict[int, bytes]:
        """Return the hashes of these links, by their numbers."""
        found: dict[int, bytes] = {}
        for part in chunks(numbers):
            query = select(audit_link.c.seq, audit_link.c.hash).where(audit_link.c.seq.in_(part))
            found |= {row.seq: bytes(row.hash) for row in self._c.execute(query)}
        return found

    def links(self, after: int, most: int) -> Sequence[Any]:
        """Return the rows of links after a number, as they are: (seq, entry, again, time, digest, hash)."""
        return self._c.execute(_LINKS, {"after": after, "most": most}).fetchall()

    def shipped(self, after: int, most: int, most_bytes: int) -> list[ShippedLink]:
        """Return the links after a number with their entries, one at least if there is one; `most_bytes` bounds the details.

        A text that somebody broke by hand is read as far as it goes: it must not hold up the entries behind it.
        """
        form = _BYTES[self._c.dialect.name]
        columns = ", ".join(form.format(f"a.{name}") for name in _TEXTS)
        query = text(
            f"SELECT l.seq, l.entry, l.again, l.time, l.hash, a.time, {columns} FROM audit_link l "  # noqa: S608 - names only
            "LEFT JOIN audit a ON a.id = l.entry AND l.time IS NULL WHERE l.seq > :after ORDER BY l.seq LIMIT :most"
        )
        rows = self._c.execute(query, {"after": after, "most": most})
        found, _ = bounded(rows, lambda row: len(row[-1] or b""), most, most_bytes)
        rows.close()
        return [_shipped(row) for row in found]

    def entries(self, after: int, most: int) -> Sequence[Any]:
        """Return the rows of entries after an id as they are, texts as bytes: (id, time, actor, action, object, tenant, detail)."""
        return self._entries("id > :at", after, most)

    def entry(self, number: int) -> Any:
        """Return one such row, or None."""
        return next(iter(self._entries("id = :at", number, 1)), None)

    def outside(self, entry: int) -> int:
        """Count the entries up to this id."""
        return int(self._c.scalar(select(func.count()).where(audit.c.id <= entry)) or 0)

    def _entries(self, which: str, at: int, most: int) -> Sequence[Any]:
        form = _BYTES[self._c.dialect.name]
        columns = ", ".join(form.format(name) for name in _TEXTS)
        query = text(f"SELECT id, time, {columns} FROM audit WHERE {which} ORDER BY id LIMIT :most")  # noqa: S608 - names only
        return self._c.execute(query, {"at": at, "most": most}).fetchall()

    def _begin(self, now: float, entry: int) -> ChainLink:
        return self._add_link(made_link(NO_HASH, 0, entry, secrets.token_bytes(32), time=now))

    def _newest_entry(self) -> int:
        return int(self._c.scalar(select(func.max(audit.c.id))) or 0)

    def _add_link(self, link: ChainLink) -> ChainLink:
        self._insert_quickly(
            _INSERT,
            seq=link.seq,
            entry=link.entry,
            again=link.again,
            time=link.time,
            digest=link.digest,
            hash=link.hash,
        )
        return link

    def _link(self, query: Any) -> ChainLink | None:
        return _link(self._c.execute(query.limit(1)).first())


def _shipped(row: Any) -> ShippedLink:
    seq, entry, again, checkpoint, made, time, *texts = row
    if time is None:
        return ShippedLink(seq, entry, bool(again), checkpoint, bytes(made))
    actor, action, name, tenant, detail = (
        None if one is None else bytes(one).decode(errors="replace") for one in texts
    )
    return ShippedLink(
        seq,
        entry,
        bool(again),
        checkpoint,
        bytes(made),
        time,
        actor or "",
        action or "",
        name or "",
        tenant,
        detail_of(action or "", detail or ""),
    )


def detail_of(action: str, column: str) -> dict[str, Any]:
    """Return the detail of an entry as readers see it, its sentences as messages; of a broken column its text, as `unreadable`.

    Older versions stored mail addresses in `OF_CHANNELS` entries. Their bytes stay, because the chain has their digest.
    """
    try:
        stored = codec.load_object(column)
        found = {key: loaded(value) for key, value in stored.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        found = {"unreadable": column}
    if action != OF_CHANNELS:
        return found
    return {key: without_names(value) if isinstance(value, str) else value for key, value in found.items()}


def loaded(value: object) -> object:
    """Return a value of a detail; a sentence is stored as an object with one key.

    Others name variables and roles in details too, so an object with this key that has no sentence is itself.
    """
    if isinstance(value, dict) and value.keys() == {SAID}:
        said = value[SAID]
        if isinstance(said, dict) and isinstance(said.get("id"), str):
            return from_data(said)
    return value


def _link(row: Any) -> ChainLink | None:
    if row is None:
        return None
    seq, entry, again, time, digest, made = row
    return ChainLink(seq, entry, bool(again), time, digest, made)
