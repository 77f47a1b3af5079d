"""Actions and their reasons: the audit log, and the explanations of the scheduler's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Select, Table, bindparam, case, delete, exists, func, insert, select, update

from mlp_hub.domain.audit_chain import entry_digest
from mlp_hub.domain.span import NEWEST, RowSpan
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.store import codec
from mlp_hub.store.records import AuditRecord, OfJob, ParentMove, StoredDecision
from mlp_hub.store.repos.audit_chain import LAST_LINK, SAID, AuditChain, detail_of
from mlp_hub.store.repos.base import Repo, bounded, chunks
from mlp_hub.store.tables import audit, decision, job
from mlp_hub.store.tables import tenant as tenants
from mlp_language.message import Message, to_data

AGAIN_S = 600.0
"""So long what is done again counts as the same."""
ALONE = frozenset({"user.token"})
"""Actions with their own entry each time: every token is a separate credential, even if alike."""
COUNTS = ("times", "last", "jobs", "more")
MOST_NAMED = 100
LOOKED_AT = 100
"""Last entries of the same object, at most, among which the same is looked for."""
_OF_THIS_TENANT = exists().where(tenants.c.name == audit.c.tenant, tenants.c.created_at <= audit.c.time)
_OF_PARENTS = (
    select(audit.c.id, audit.c.object, audit.c.detail)
    .where(audit.c.action == "tenant.update", audit.c.detail.contains('"parent"'), _OF_THIS_TENANT)
    .order_by(audit.c.id.desc())
)
CUT = "audit.cut"
"""Action of the entry that is left where all entries were too old to be kept: ids are not given again."""
_INSERT = insert(audit).returning(audit.c.id, audit.c.time, *LAST_LINK)
_REPEATED = (
    update(audit)
    .where(audit.c.id == bindparam("number"))
    .values(detail=bindparam("detail"))
    .returning(audit.c.id, audit.c.time, *LAST_LINK)
)
_LAST = select(audit).where(audit.c.object == bindparam("name")).order_by(audit.c.id.desc()).limit(LOOKED_AT)
_RECENT = _LAST.subquery()
_OF_OBJECT = select(_RECENT).where(_RECENT.c.time >= bindparam("since")).order_by(_RECENT.c.id.desc())


class Decisions(Repo):
    """Why the scheduler did what it did with jobs."""

    __slots__ = ()

    def add(self, records: Sequence[StoredDecision]) -> None:
        """Store some."""
        rows = [{"job": r.job, "time": r.time, "kind": r.kind, "text": codec.text(r.text)} for r in records]
        self._insert_all(decision, rows)

    def last_of_job(self, uid: str, most: int) -> list[StoredDecision]:
        """Return the last `most` of a job, the oldest first."""
        d = decision
        query = select(d).where(d.c.job == uid).order_by(d.c.id.desc()).limit(most)
        return [StoredDecision(r.job, r.time, r.kind, r.text) for r in self._c.execute(query)][::-1]

    def page(
        self,
        span: RowSpan = NEWEST,
        *,
        kind: str | None = None,
        user: str | None = None,
        name: str | None = None,
        run: int | None = None,
    ) -> tuple[list[OfJob], int | None]:
        """Return decisions on all jobs that are there, the newest first, and the `before` of the next page (None: the last).

        Filters that are None let everything through.
        """
        d = decision
        query = select(d, job.c.user, job.c.name, job.c.run, job.c.tenant).join(job, job.c.uid == d.c.job)
        query = _newest(query, d, span)
        equal = ((d.c.kind, kind), (job.c.user, user), (job.c.name, name), (job.c.run, run))
        for column, value in equal:
            if value is not None:
                query = query.where(column == value)
        rows, more = bounded(self._c.execute(query), lambda r: len(r.text), span.limit, span.most_bytes)
        found = [
            OfJob(r.user, r.name, r.run, r.tenant, StoredDecision(r.job, r.time, r.kind, r.text))
            for r in rows
        ]
        return found, rows[-1].id if more else None

    def trim(self, uid: str, keep: int) -> int:
        """Remove all but the last `keep` of a job, so that one that is stopped and started for ever stays small."""
        d = decision
        first = select(d.c.id).where(d.c.job == uid).order_by(d.c.id.desc()).offset(keep).limit(1)
        last = self._c.scalar(first)
        if last is None:
            return 0
        return int(self._c.execute(delete(d).where(d.c.job == uid, d.c.id <= last)).rowcount)

    def delete_before(self, before: float) -> int:
        """Remove those from before a time; return how many."""
        return int(self._c.execute(delete(decision).where(decision.c.time < before)).rowcount)


class Audit(Repo):
    """Every change: who, what, when. The oldest are forgotten at last.

    Rows stay as they are, but that the same again of the same actor is counted in its row: nobody fills the log by repeating.
    Each row that is stored or counted once more has a link in the chain (`AuditChain`), in the same transaction.
    """

    __slots__ = ()

    def add(
        self,
        now: float,
        actor: str,
        action: str,
        name: str,
        *,
        tenant: str | None = None,
        detail: Mapping[str, object] | None = None,
        jobs: Sequence[str] = (),
    ) -> None:
        """Store that `actor` did `action` to the object of this name.

        An action that is equal except for its time and `jobs`, within `AGAIN_S` of the first time, adds to
        its entry. It adds the number of `times`, and the `last` time, or `jobs`. The first of these are
        named, and the others counted as `more`. `detail` has none of these four names; its sentences are
        messages. An action in `ALONE` always has its own entry.
        """
        stored = {key: _stored(value) for key, value in (detail or {}).items()}
        done = {"actor": actor, "action": action, "object": name, "tenant": tenant}
        row, before = self._same(now - AGAIN_S, done, stored)
        counts: dict[str, object] = {}
        if jobs:
            named = [*before.get("jobs", ()), *jobs]
            counts["jobs"] = named[:MOST_NAMED]
            if more := before.get("more", 0) + max(0, len(named) - MOST_NAMED):
                counts["more"] = more
        elif row is not None:
            counts["times"] = before.get("times", 1) + 1
        if row is not None:
            at = datetime.fromtimestamp(now, UTC)
            counts["last"] = at.isoformat(timespec="seconds").replace("+00:00", "Z")
        text = codec.dumps({**stored, **counts})
        if row is None:
            made: Any = self._few(_INSERT, time=now, detail=text, **done).one()
        else:
            made = self._few(_REPEATED, number=row, detail=text).one()
        number, first_at, seq, hashed = made
        team = None if tenant is None else tenant.encode()
        texts = (actor.encode(), action.encode(), name.encode(), team, text.encode())
        self._chain().append(
            seq, hashed, number, entry_digest(number, first_at, *texts), again=row is not None
        )

    def _same(
        self, since: float, done: Mapping[str, str | None], stored: Mapping[str, object]
    ) -> tuple[int | None, dict[str, Any]]:
        """Return the id and the detail of the row that says the same, if one of the last few does."""
        if done["action"] in ALONE:
            return None, {}
        wanted = codec.load_object(codec.dumps(stored))
        same = (done["actor"], done["action"], done["tenant"])
        for row in self._few(_OF_OBJECT, name=done["object"], since=since):
            if (row.actor, row.action, row.tenant) != same:
                continue
            detail = codec.load_object(row.detail)
            if {k: v for k, v in detail.items() if k not in COUNTS} == wanted:
                return row.id, detail
        return None, {}

    def _chain(self) -> AuditChain:
        return AuditChain(self._c)

    def page(
        self,
        span: RowSpan = NEWEST,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        of: Mapping[str, int] | None = None,
    ) -> tuple[list[AuditRecord], int | None]:
        """Return entries, the newest first, and the id to pass as `before` for the next page (None: this was the last).

        Filters that are None let everything through. An action that ends with a dot means all that begin with it. `of`
        are the only tenants whose entries are returned, each with the id after which they begin (0: all). Entries of an
        earlier tenant of the same name are not.
        """
        query = _newest(select(audit), audit, span)
        equal = ((audit.c.tenant, tenant), (audit.c.actor, actor), (audit.c.object, name))
        for column, value in equal:
            if value is not None:
                query = query.where(column == value)
        if of is not None:
            # one condition for all: SQLite takes a thousand alternatives at most
            query = query.where(audit.c.tenant.in_(of), _OF_THIS_TENANT)
            late = {name: after for name, after in of.items() if after}
            if late:
                query = query.where(audit.c.id > case(late, value=audit.c.tenant, else_=0))
        if action is not None:
            begins = audit.c.action.startswith(action, autoescape=True)
            query = query.where(begins if action.endswith(".") else audit.c.action == action)
        rows, more = bounded(self._c.execute(query), lambda r: len(r.detail), span.limit, span.most_bytes)
        return [_entry(r) for r in rows], rows[-1].id if more else None

    def parent_moves(self) -> list[ParentMove]:
        """Return all changes of tenants' parents that the log has, the newest first."""
        found: list[ParentMove] = []
        for row in self._c.execute(_OF_PARENTS):
            detail = codec.load_object(row.detail)
            before, after = detail.get("before"), detail.get("after")
            if not isinstance(before, dict) or not isinstance(after, dict) or "parent" not in before:
                continue
            entry = row.id
            if "last" in detail:  # counted again: the same change was undone and made again meanwhile
                until = datetime.fromisoformat(detail["last"]).timestamp() + 1
                newest = self._c.scalar(select(func.max(audit.c.id)).where(audit.c.time < until))
                entry = max(entry, newest or 0)
            found.append(ParentMove(entry, row.object, before["parent"]))
        return sorted(found, key=lambda move: move.entry, reverse=True)

    def delete_before(self, before: float, most: int, now: float, keep: int | None = None) -> int:
        """Delete entries from before a time, the oldest first; return their number.

        Entries outside of the chain go first, at most `most` at a time. The chain is cut only at a checkpoint that is older
        than `before`, together with the entries up to it. `keep` is the number of the checkpoint that the caller noted;
        None: the next one.
        """
        chain = self._chain()
        first = chain.first()
        if first is None:
            return self._delete_entries(select(audit.c.id).where(audit.c.time < before), most)
        outside = select(audit.c.id).where(audit.c.id <= first.entry, audit.c.time < before)
        if gone := self._delete_entries(outside, most, now):
            return gone
        found = chain.next_cut(before, most)
        if found is None or (keep is not None and found.seq != keep):
            return 0
        self._stay(found.entry, now)
        chain.cut(found.seq)
        return int(self._c.execute(delete(audit).where(audit.c.id <= found.entry)).rowcount)

    def _delete_entries(self, which: Select[Any], most: int, now: float | None = None) -> int:
        numbers = list(self._c.scalars(which.order_by(audit.c.id).limit(most)))
        if numbers and now is not None:
            self._stay(numbers[-1], now)
        return sum(
            int(self._c.execute(delete(audit).where(audit.c.id.in_(part))).rowcount)
            for part in chunks(numbers)
        )

    def _stay(self, number: int, now: float) -> None:
        """Leave an entry where all up to this id go: SQLite would give the ids of an empty table again."""
        newest = self._c.scalar(select(func.max(audit.c.id)))
        if newest is not None and newest <= number:
            self.add(now, THE_HUB, CUT, "audit", detail={"until": number})


def _entry(row: Any) -> AuditRecord:
    detail = detail_of(row.action, row.detail)
    return AuditRecord(row.id, row.time, row.actor, row.action, row.object, row.tenant, detail)


def _stored(value: object) -> object:
    return {SAID: to_data(value)} if isinstance(value, Message) else value


def _newest(query: Select[Any], table: Table, span: RowSpan) -> Select[Any]:
    """Leave of a table's rows those of a span, the newest first, and one more that tells whether there are others."""
    query = query.order_by(table.c.id.desc()).limit(span.limit + 1)
    if span.since is not None:
        query = query.where(table.c.time >= span.since)
    if span.until is not None:
        query = query.where(table.c.time < span.until)
    return query if span.before is None else query.where(table.c.id < span.before)
