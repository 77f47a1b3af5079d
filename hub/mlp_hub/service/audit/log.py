"""Pages of the audit log: people's actions, and the scheduler's decisions about jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_api.localized import Text
from mlp_api.platform import audit as api
from mlp_hub.domain.audit_chain import ChainLink
from mlp_hub.domain.jobs import names
from mlp_hub.domain.span import NEWEST, RowSpan
from mlp_hub.service.audit.checked import CHECKED, CheckedChain
from mlp_hub.service.audit.keeper import ChainKeeper
from mlp_hub.service.audit.subtree import below_since
from mlp_hub.service.reasons.rows import to_wire
from mlp_hub.service.support.units import maybe_when, when
from mlp_hub.store.database import Database
from mlp_hub.store.records import AuditRecord
from mlp_hub.store.tx import Tx
from mlp_language.message import ALL, Message

MOST_BYTES = 512 * 2**10
"""Safety: bytes of details on one page, about: bounds what an answer takes."""
MOST_EXPORTED = 1_000_000
"""Safety: entries of one export; older ones need `until`."""
EXPORT_PAGE = 500
"""Tuning: entries of an export that are read at a time: memory, for the number of queries."""
MOST_SUBTREES = 100
"""Safety: tenants of which it is kept which tenants are below them since when: bounds memory."""
COLUMNS = ("id", "time", "actor", "action", "object", "tenant", "detail")
"""Given: columns of an export as CSV."""


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """The part of the log for the admins of a tenant: its entries and, with `below`, those of all tenants below it.

    Those of a tenant below it begin with its move there.
    """

    tenant: str
    below: bool = False


class AuditLog:
    """Reads what is stored anyway, the newest first; with each page comes the `before` of the next one, None after the last."""

    def __init__(self, db: Database, keeper: ChainKeeper) -> None:
        self._db = db
        self._keeper = keeper
        self._below: dict[str, tuple[str | None, Mapping[str, int]]] = {}
        """By tenant: the revision of all tenants, and the tenants below it with the last entry from before they were."""

    async def head(self) -> api.AuditHead:
        """Return the end of the chain, and when it was checked last."""

        def look(tx: Tx) -> tuple[ChainLink | None, ChainLink | None, CheckedChain | None]:
            chain = tx.audit_chain
            return chain.last(), chain.first(), CheckedChain.of(tx.settings.get(CHECKED))

        last, first, checked = await self._db.read(look)
        written = self._keeper.published
        return api.AuditHead(
            link=None if last is None else last.seq,
            hash=None if last is None else last.hash.hex(),
            begins=None if first is None else maybe_when(first.time),
            written=None if written is None else when(written.time),
            written_link=None if written is None else written.seq,
            checked=None if checked is None else when(checked.time),
            sound=None if checked is None else checked.sound,
        )

    async def export(
        self,
        span: RowSpan,
        *,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        own: OwnEntries | None = None,
    ) -> AsyncIterator[Sequence[api.AuditEntry]]:
        """Yield all entries that `entries` would return, page by page, `MOST_EXPORTED` at most. No transaction stays open."""
        left, following = MOST_EXPORTED, span.before
        while left > 0:
            page = replace(span, limit=min(EXPORT_PAGE, left), before=following)
            found, following = await self.entries(
                page, tenant=tenant, actor=actor, action=action, name=name, own=own
            )
            left -= len(found)
            yield found
            if following is None:
                return

    async def entries(
        self,
        span: RowSpan = NEWEST,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        own: OwnEntries | None = None,
    ) -> tuple[Sequence[api.AuditEntry], int | None]:
        """Return a page of changes; an action can be a prefix: `quota.`.

        `own`: only the entries that the admins of a tenant may see. Raises `NotFound`.
        """
        page = replace(span, most_bytes=MOST_BYTES)

        def look(tx: Tx) -> tuple[list[AuditRecord], int | None]:
            of = None if own is None else self._tenants_of(tx, own)
            return tx.audit.page(page, tenant=tenant, actor=actor, action=action, name=name, of=of)

        found, following = await self._db.read(look)
        entries = [
            api.AuditEntry(
                id=e.id,
                time=when(e.time),
                actor=e.actor,
                action=e.action,
                object=e.name,
                tenant=e.tenant,
                detail={
                    key: Text(value) if isinstance(value, Message) else value
                    for key, value in e.detail.items()
                },
            )
            for e in found
        ]
        return entries, following

    def _tenants_of(self, tx: Tx, own: OwnEntries) -> Mapping[str, int]:
        """Return whose entries these are, each with the entry after which they begin. Raises `NotFound`."""
        tx.tenants.made_at(own.tenant)
        if not own.below:
            return {own.tenant: 0}
        revision, known = tx.tenants.revision(), self._below.get(own.tenant)
        if known is None or known[0] != revision:
            if len(self._below) >= MOST_SUBTREES:
                self._below.clear()
            found = below_since(own.tenant, tx.tenants.parents_below(own.tenant), tx.audit.parent_moves())
            self._below[own.tenant] = known = revision, found
        return known[1]

    async def decisions(
        self,
        span: RowSpan = NEWEST,
        *,
        kind: str | None = None,
        user: str | None = None,
        job: str | None = None,
    ) -> tuple[Sequence[api.JobDecision], int | None]:
        """Return a page of decisions on all jobs with all names in them; a `job` is all runs of a name, or one."""
        name, run = (None, None) if job is None else names.parse_reference(job) or (job, 0)
        page = replace(span, most_bytes=MOST_BYTES)
        found, following = await self._db.read(
            lambda tx: tx.decisions.page(page, kind=kind, user=user, name=name, run=run)
        )
        decisions = [
            api.JobDecision(
                user=one.user,
                job=one.name,
                run=one.run,
                tenant=one.tenant,
                decision=to_wire(one.decision, ALL),
            )
            for one in found
        ]
        return decisions, following
