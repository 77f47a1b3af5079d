"""GPUs that jobs hold without use: the request to keep a job, a team's policy, and the list of a team's idle servers and jobs."""

from __future__ import annotations

from mlp_api.jobs.idle_jobs import IdleHolding, IdleJobPolicySet, JobKeep, TenantIdleJobPolicy
from mlp_api.jobs.jobs import Job
from mlp_hub.api.auth.scopes import JOBS_WRITE, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.workload.idle_policy import IdleKind


async def keep(call: Call) -> Job:
    """Keep a running job for some hours, whether it uses its GPUs or not: its countdown stops."""
    return await call.platform.idle_jobs.keep(
        call.context, call.user, call.params["job"], call.body, actor=call.principal.name
    )


async def policy(call: Call) -> TenantIdleJobPolicy:
    """Return a tenant's policy for jobs that hold GPUs without use."""
    return await call.platform.idle_policies.of_jobs(call.params["tenant"])


async def set_policy(call: Call) -> TenantIdleJobPolicy:
    """Store a tenant's policy for jobs that hold GPUs without use."""
    tenant, policies = call.params["tenant"], call.platform.idle_policies
    await policies.put(IdleKind.JOB, tenant, call.body, actor=call.principal.name)
    return await policies.of_jobs(tenant)


async def idle_work(call: Call) -> list[IdleHolding]:
    """List the notebook servers, and the jobs with GPUs, that nobody used for an hour, or that count down."""
    return await call.platform.idle_of_teams.of_team(call.params["tenant"])


_POLICY = "/tenants/{tenant}/idle_job_policy"

ROUTES = (
    Route(
        "PUT",
        "/users/{user}/jobs/{job}:keep",
        keep,
        "Keep a job that does not use its GPUs",
        Relation.OWNED,
        JOBS_WRITE,
        body=JobKeep,
        reply=Job,
        bucket="change",
    ),
    Route(
        "GET",
        _POLICY,
        policy,
        "A tenant's policy for unused GPUs of jobs",
        Relation.MEMBER,
        TENANTS_READ,
        reply=TenantIdleJobPolicy,
    ),
    Route(
        "PUT",
        _POLICY,
        set_policy,
        "Set a tenant's policy for unused GPUs of jobs",
        Relation.TENANT_ADMIN,
        TENANTS_WRITE,
        body=IdleJobPolicySet,
        reply=TenantIdleJobPolicy,
        bucket="change",
    ),
    Route(
        "GET",
        "/tenants/{tenant}/idle_work",
        idle_work,
        "Idle servers and GPUs of a tenant",
        Relation.TENANT_ADMIN,
        TENANTS_READ,
        reply=list[IdleHolding],
    ),
)
