"""The cluster: nodes, the queue, resource requests, offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, structs

from mlp_api.jobs.jobs import JobCreate, Offer, OfferQuery, QueueEntry
from mlp_api.platform.nodes import NodeDrainPreview, NodeDrainSet
from mlp_api.platform.overview import Overview
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
    """Show the state of the platform: use, waiting work with reasons, and troubles.

    The request costs little, and can be repeated every few seconds.
    """
    return await call.platform.overview.now()


async def nodes(call: Call) -> Sequence[Node]:
    """List the nodes with their users."""
    return await call.platform.nodes.list()


async def drained(call: Call) -> NodeDrainPreview:
    """Show the work on a node that a drain would stop, and whether the node is out of service."""
    return await call.platform.drains.preview(call.params["node"])


async def drain(call: Call) -> NodeDrainPreview:
    """Take a node out of service until it is returned; a repeated request sets the reason and way again.

    The node takes no new rank and no server. Its work continues unless `evict` is true. With `evict`,
    jobs are asked to end like jobs that give way: they can save a checkpoint, and wait in the queue
    with their age. Replicas of apps start elsewhere. Notebook servers are stopped. The answer has the
    work that still runs. A cluster's nodes are drained by the cluster's own means.
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
    """Return an offer for a job of this shape: its start, now or later, and its resources."""
    # the program does not matter, but there must be one
    given = structs.asdict(call.query)
    name = given.pop("name")
    shape = JobCreate(name=name or "offer", code="pass", **given)
    if call.principal.kind is not CallerKind.USER:
        raise Refused(Reason.FORBIDDEN, msg("only a user can get an offer; this token belongs to a service"))
    return await call.platform.jobs.offer(call.principal.name, shape, named=name is not None)


async def try_(call: Call) -> str:
    """Hold an amount, or give it back, until it is confirmed; a repeated request is harmless.

    A notebook server (applier `sp`) is admitted in one order with jobs. If it has to wait, it is
    refused with the reason, its `facts` and `Retry-After`. Its place, and the room that is being made
    for it, are kept for a caller that repeats the request. The refusal is shown to the `user`. So it
    describes others' work only as far as the user may see it.
    """
    try:
        await call.platform.ledger.try_(call.body)
    except Refused as refused:
        if not call.body.user:
            raise
        raise refused.to(await call.platform.visibility.viewer_of(call.body.user)) from refused
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
        query=OfferQuery,
        reply=Offer,
    ),
    Route("PUT", f"{_REQUEST}:try", try_, "Try to hold or give back quota", P, L, body=ResourceRequestTry),
    Route("PUT", f"{_REQUEST}:confirm", confirm, "Confirm a resource request", P, L, body=ResourceRequestKey),
    Route("PUT", f"{_REQUEST}:cancel", cancel, "Cancel a resource request", P, L, body=ResourceRequestKey),
)
