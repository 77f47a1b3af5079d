"""Policies of teams for work that is held and not used, and what looks at such work have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlp_api.accounts.idle_servers import IdleServerPolicySet, TenantIdlePolicy
from mlp_api.jobs.idle_jobs import IdleJobPolicySet, TenantIdleJobPolicy
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.workload.idle_policy import IdleKind, IdleWorkPolicy
from mlp_hub.store import Database, Tx

MOST_PASSED_S = 120.0
"""Safety: seconds that one look counts at most: a machine that slept ends no server and no job when it wakes."""
HOUR_S, MINUTE_S = 3600, 60
"""Given: seconds."""
USUAL_GRACE_S = 3600
"""Tuning: seconds of the countdown that a new policy begins with: time to notice it, for how long servers and GPUs are held unused."""
_ACTIONS: Mapping[IdleKind, str] = {
    IdleKind.SERVER: "tenant.idle_policy",
    IdleKind.JOB: "tenant.idle_job_policy",
}
"""Actions of the audit log."""


class IdlePolicyService:
    """The policies of all kinds. Whether who asks may is for the caller to say."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock

    async def of_servers(self, tenant: str) -> TenantIdlePolicy:
        """Return a tenant's policy for notebook servers."""
        return TenantIdlePolicy(**await self._minutes(IdleKind.SERVER, tenant))

    async def of_jobs(self, tenant: str) -> TenantIdleJobPolicy:
        """Return a tenant's policy for jobs with GPUs."""
        return TenantIdleJobPolicy(**await self._minutes(IdleKind.JOB, tenant))

    async def put(
        self, kind: IdleKind, tenant: str, asked: IdleServerPolicySet | IdleJobPolicySet, *, actor: str
    ) -> None:
        """Store a tenant's policy; 0 minutes remove it. Raises `NotFound`."""
        new = IdleWorkPolicy(tenant, asked.after_minutes * MINUTE_S, asked.grace_minutes * MINUTE_S)

        def work(tx: Tx) -> None:
            if tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            if new.after_s:
                tx.idle_policies(kind).put(new)
            else:
                tx.idle_policies(kind).remove(tenant)
            detail = {"after_minutes": asked.after_minutes, "grace_minutes": asked.grace_minutes}
            tx.audit.add(self._clock(), actor, _ACTIONS[kind], tenant, tenant=tenant, detail=detail)

        await self._db.write(work)

    async def _minutes(self, kind: IdleKind, tenant: str) -> dict[str, int]:
        found = await self._db.read(lambda tx: tx.idle_policies(kind).get(tenant))
        policy = found or IdleWorkPolicy(tenant, 0, USUAL_GRACE_S)
        return {"after_minutes": policy.after_s // MINUTE_S, "grace_minutes": policy.grace_s // MINUTE_S}
