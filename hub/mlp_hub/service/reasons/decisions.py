"""Why the scheduler admitted, preempted or resized a job, kept with the decision itself.

The cycle records the grounds of each decision; `DecisionLog.cycle(...)` says which of them are told, and
`Explanations.store(tx, uids)`, in the transaction that stores the decisions, puts those into rows that take effect. Of plans of very
many decisions, and where telling would take too much time, the short form is kept: the sentence alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mlp_api.platform import whatif as api
from mlp_hub.domain.errors import not_found
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.scheduler.cycle.grounds import Grounds
from mlp_hub.scheduler.model.types import Admit, Decision, Preempt, Resize
from mlp_hub.service.reasons.rows import to_wire
from mlp_hub.service.reasons.telling import Full, Short, Waited
from mlp_hub.service.state.former_members import has_left
from mlp_hub.store.database import Database
from mlp_hub.store.records import StoredDecision
from mlp_hub.store.tx import Tx
from mlp_language.message import ALL, Viewer

MOST_EXPLAINED = 50
"""Tuning: decisions of one cycle that are told in full, at most: time of a cycle, for how much is told."""
TELL_S = 100e-6
"""Tuning: estimated seconds to put one decision into words, to bound the time for that."""
PART = 0.025
"""Tuning: part of all time that telling may take: time of a cycle, for how much is told."""
SAVED_S = 0.1
"""Tuning: seconds that may be saved up for telling decisions: a few in a row are all told."""
MOST_SHOWN = 200
"""Limit of jobs: reasons of scheduling decisions about one job in one answer."""


class Explanations:
    """Explanations of one cycle's decisions, made when they are stored."""

    def __init__(self, records: Mapping[str, Callable[[], StoredDecision]]) -> None:
        self._records = records

    def store(self, tx: Tx, uids: Iterable[str]) -> None:
        """Store the explanations of these jobs, whose decisions take effect; nothing of one that was not decided about."""
        made = [self._records[uid]() for uid in uids if uid in self._records]
        if made:
            tx.decisions.add(made)


class DecisionLog:
    """Keeps and gives out explanations."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._budget = SAVED_S
        self._as_of = 0.0

    def cycle(
        self,
        plan: Sequence[Decision],
        grounds: Mapping[str, Grounds],
        waited: Mapping[str, Waited],
        policy: str,
        now: float,
    ) -> Explanations:
        """Return the explanations to keep of a plan; `grounds` and `waited`, the reasons before it, are by job."""
        acts = [d for d in plan if isinstance(d, Admit | Preempt | Resize)]
        self._budget = min(self._budget + max(now - self._as_of, 0.0) * PART, SAVED_S)
        self._as_of = now
        cost = len(acts) * TELL_S
        if len(acts) > MOST_EXPLAINED or cost > self._budget:
            return Explanations({d.uid: Short(d, waited.get(d.uid), policy, now) for d in acts})
        self._budget -= cost
        return Explanations({d.uid: Full(d, grounds[d.uid], waited.get(d.uid), policy, now) for d in acts})

    async def decisions_of(
        self, context: TenantContext, user: str, name: str, viewer: Viewer = ALL, *, asker: str | None = None
    ) -> list[api.Decision]:
        """Return the decisions about a job for a reader who is this `viewer`, the oldest first.

        An `asker` who is its user and has left the tenant gets none, unless they see all.
        """

        def work(tx: Tx) -> list[StoredDecision] | None:
            job = tx.jobs.find(context, user, name)
            if job is None:
                return None
            if asker == user and viewer.own is not None and has_left(tx, job.spec):
                return []
            return tx.decisions.last_of_job(job.uid, MOST_SHOWN)

        found = await self._db.read(work)
        if found is None:
            raise not_found("job", name)
        return [to_wire(record, viewer) for record in found]
