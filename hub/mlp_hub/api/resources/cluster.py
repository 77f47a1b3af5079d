"""The cluster: nodes, the queue, resource requests, offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, structs

from mlp_api.jobs import JobCreate, JobShape, Offer, QueueEntry
from mlp_api.nodes import NodeDrainPreview, NodeDrainSet
from mlp_api.overview import Overview
from mlp_api.types import Name, Node, ResourceRequestKey, ResourceRequestTry, Scheduling
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import CLUSTER_READ, CLUSTER_WRITE, JOBS_READ, LEDGER_WRITE, TENANTS_READ
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.scheduler.policy import POLICIES
from mlp_language.message import msg
from mlp_language.render import render


class QueueQuery(Struct, forbid_unknown_fields=True):
    """Which part of the queue; `limit` is of those that wait."""

    tenant: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] | None = None


async def overview(call: Call) -> Overview:
    """Say how all stands: who holds what, what waits and why, what is wrong. Costs little; ask as often as every few seconds."""
    return await call.platform.overview.now()


async def nodes(call: Call) -> Sequence[Node]:
    """List the nodes with who uses what."""
    return await call.platform.nodes.list()


async def drained(call: Call) -> NodeDrainPreview:
    """Say what runs on a node, and whether it is out of service: what a drain would stop."""
    return await call.platform.drains.preview(call.params["node"])


async def drain(call: Call) -> NodeDrainPreview:
    """Take a node out of service until it is returned; repeating it is fine, and says anew why and how.

    It takes no new rank and no server. What runs there goes on, unless `evict` is true: jobs are asked to end as those that give
    way, so that they may save a checkpoint, and wait in the queue with their age; apps' replicas start elsewhere; notebook servers
    are stopped. The answer has what still runs. A cluster's nodes are drained by its own means.
    """
    return await call.platform.drains.drain(call.params["node"], call.body, call.principal.name)


async def give_back(call: Call) -> NodeDrainPreview:
    """Put a node into service again (the body is ignored); one that is, is left alone."""
    return await call.platform.drains.give_back(call.params["node"], call.principal.name)


async def scheduling(call: Call) -> Scheduling:
    """Say by which policy jobs are scheduled."""
    p = call.platform.policy.scheduling
    return Scheduling(
        policy=p.name,
        meaning=render(POLICIES[p.name].words, call.reader),
        placement=p.placement,
        backfill=p.backfill,
        preemption=p.preemption,
        half_life_s=p.half_life_s,
        min_run_s=p.min_run_s,
        restart_cost_s=p.restart_cost_s,
        aging_s=p.aging_s,
    )


async def queue(call: Call) -> Reply:
    """List what waits and what runs; with `limit` those that wait are the first of all lines, and `X-Total-Count` says how many there are in all."""
    found, total = await call.platform.cluster_queue.first(call.query.tenant, call.query.limit)
    return Reply(call.encode(found), headers={"X-Total-Count": str(total)})


async def tenant_queue(call: Call) -> list[QueueEntry]:
    """List what waits and what runs in one tenant."""
    return await call.platform.cluster_queue.entries(call.params["tenant"])


async def offer(call: Call) -> Offer:
    """Say what a job of this shape would get: now or when, on what."""
    # the program does not matter, but there must be one
    shape = JobCreate(name="offer", code="pass", **structs.asdict(call.query))
    if call.principal.kind is not CallerKind.USER:
        raise Refused(Reason.FORBIDDEN, msg("an offer is made to a user; this token is a service's"))
    return await call.platform.jobs.offer(call.principal.name, shape)


async def try_(call: Call) -> str:
    """Hold an amount, or give it back, until confirmed; repeating it is fine.

    A notebook server (applier `sp`) is admitted in one order with jobs. Where it waits it is refused with the reason, its
    `facts` and `Retry-After`; its place, and room that is being made for it, are kept for whoever repeats the try. Of others'
    work the refusal says what the `user` may see, to whom it is shown.
    """
    try:
        await call.platform.ledger.try_(call.body)
    except Refused as refused:
        if not call.body.user:
            raise
        raise refused.to(await call.platform.sights.of(call.body.user)) from refused
    return ""


async def confirm(call: Call) -> str:
    """Make a try last; one that does not exist is fine."""
    await call.platform.ledger.confirm(call.body)
    return ""


async def cancel(call: Call) -> str:
    """Take a try back; one that does not exist is fine."""
    await call.platform.ledger.cancel(call.body)
    return ""


_REQUEST = "/resource_request"
L, P = LEDGER_WRITE, Relation.PLATFORM

ROUTES = (
    Route("GET", "/overview", overview, "How the platform stands", P, CLUSTER_READ, reply=Overview),
    Route("GET", "/nodes", nodes, "List nodes", P, CLUSTER_READ, reply=list[Node]),
    Route(
        "GET",
        "/nodes/{node}/drain",
        drained,
        "What a drain would stop",
        P,
        CLUSTER_READ,
        reply=NodeDrainPreview,
    ),
    Route(
        "PUT",
        "/nodes/{node}:drain",
        drain,
        "Take a node out of service",
        P,
        CLUSTER_WRITE,
        body=NodeDrainSet,
        reply=NodeDrainPreview,
        bucket="change",
    ),
    Route(
        "PUT",
        "/nodes/{node}:return",
        give_back,
        "Put a node into service again",
        P,
        CLUSTER_WRITE,
        reply=NodeDrainPreview,
        bucket="change",
    ),
    Route("GET", "/scheduling", scheduling, "The policy in force", P, CLUSTER_READ, reply=Scheduling),
    Route("GET", "/queue", queue, "The queue", P, CLUSTER_READ, query=QueueQuery, reply=list[QueueEntry]),
    Route(
        "GET",
        "/tenants/{tenant}/queue",
        tenant_queue,
        "A tenant's queue",
        Relation.TENANT_ADMIN,
        TENANTS_READ,
        reply=list[QueueEntry],
    ),
    Route(
        "GET",
        "/offer",
        offer,
        "What a job of this shape would get",
        Relation.ANYBODY,
        JOBS_READ,
        query=JobShape,
        reply=Offer,
    ),
    Route("PUT", f"{_REQUEST}:try", try_, "Try to hold or give back quota", P, L, body=ResourceRequestTry),
    Route("PUT", f"{_REQUEST}:confirm", confirm, "Confirm a resource request", P, L, body=ResourceRequestKey),
    Route("PUT", f"{_REQUEST}:cancel", cancel, "Cancel a resource request", P, L, body=ResourceRequestKey),
)
