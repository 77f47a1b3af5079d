"""Tenants, the ledger and nodes, to and from what crosses the wire.

Inside: thousandths of cores and devices, seconds since the epoch. On the wire: cores and devices as floats,
times as RFC 3339 UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from mlp_api import tenants as tenant_api
from mlp_api import types as api
from mlp_hub.domain.booking import BookedWindow
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.ledger import ResourceRequest
from mlp_hub.domain.resources import DIMENSIONS, MILLI, ZERO, Quota, Resources, milli, units
from mlp_hub.domain.tenant import Lowering, Member, Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.service.refusals import holder_of
from mlp_hub.service.sharing import Share
from mlp_hub.store.records import UsageSample

LONGEST_KIND = 64
MOST_KINDS = 64
"""Kinds of gpu that one limit of a tenant may name."""
"""Characters of the name of a kind of gpu."""


def when(time: float) -> datetime:
    """Turn seconds since the epoch into a time."""
    return datetime.fromtimestamp(time, UTC)


def maybe_when(time: float | None) -> datetime | None:
    """Turn seconds since the epoch, if any, into a time."""
    return None if time is None else when(time)


def amount_of_try(asked: api.ResourceRequestTry) -> Resources:
    """Return the amount of a resource request."""
    gpu = _thousandths("gpu", asked.gpu)
    kinds = ((asked.gpu_kind, gpu),) if asked.gpu_kind and gpu else ()
    return Resources(_thousandths("cpu", asked.cpu), gpu, asked.ram, asked.rom, kinds)


def tenant_from(asked: api.TenantCreate, name: str) -> Tenant:
    """Return the tenant that is described.

    Raises `Invalid` for a limit that is not a finite amount, and for a grade of isolation that cannot be had here.
    """
    if asked.isolation != "shared":
        msg = (
            f"isolation {asked.isolation} cannot be had on this hub: it keeps the files of all tenants in one tree, each "
            "user's in directories that only their own sandboxes see; choose shared, or give the tenant a hub of its own "
            "(another MLP_HOME, on storage of its own)"
        )
        raise Refused(Reason.INVALID, msg)
    return Tenant(
        name=name,
        quota=Quota(
            cpu=None if asked.cpu is None else _thousandths("cpu", asked.cpu),
            gpu=None if asked.gpu is None else _thousandths("gpu", asked.gpu),
            ram=asked.ram,
            rom=asked.rom,
            kinds=_kinds(asked.gpu_kinds),
        ),
        weight=_finite("weight", asked.weight),
        cohort=asked.cohort,
        parent=asked.parent,
        borrowing_limit=_limit("borrowing_limit", asked.borrowing_limit),
        lending_limit=_limit("lending_limit", asked.lending_limit),
        reserved=_limit("reserved", asked.reserved),
        queue_order=asked.queue_order,
        isolation=asked.isolation,
        description=asked.description,
    )


def tenant_to(
    tenant: Tenant,
    in_use: Resources,
    *,
    share: Share | None = None,
    members: int = 0,
    running: int = 0,
    waiting: int = 0,
    notes: Sequence[str] = (),
) -> api.Tenant:
    """Return a tenant with what is in use of it, and how it stands to those that it shares with."""
    q = tenant.quota
    share = share or Share()
    return api.Tenant(
        name=tenant.name,
        cpu=None if q.cpu is None else units(q.cpu),
        gpu=None if q.gpu is None else units(q.gpu),
        ram=q.ram,
        rom=q.rom,
        gpu_kinds={k: units(v) for k, v in q.kinds.items()},
        cpu_inuse=units(in_use.cpu),
        gpu_inuse=units(in_use.gpu),
        ram_inuse=in_use.ram,
        rom_inuse=in_use.rom,
        weight=tenant.weight,
        cohort=tenant.cohort,
        parent=tenant.parent,
        borrowing_limit=limit_to(tenant.borrowing_limit),
        lending_limit=limit_to(tenant.lending_limit),
        reserved=limit_to(tenant.reserved),
        borrowed=amounts_to(share.borrowed),
        lent=amounts_to(share.lent),
        lendable=amounts_to(share.lendable),
        free=amounts_to(share.free),
        over=amounts_to(share.over),
        lowered=lowering_to(tenant.lowered),
        queue_order=tenant.queue_order,
        isolation=tenant.isolation,
        description=tenant.description,
        members=members,
        running=running,
        waiting=waiting,
        notes=list(notes),
    )


def lowering_to(lowering: Lowering | None) -> api.LoweredGuarantee | None:
    """Return what of a guarantee holds while it is lowered."""
    if lowering is None:
        return None
    return api.LoweredGuarantee(
        since=when(lowering.since),
        share=lowering.share,
        lending_limit=limit_to(lowering.lending_limit),
        reserved=limit_to(lowering.reserved),
        message=lowering.message,
    )


def limit_to(quota: Quota | None) -> dict[str, float] | None:
    """Return a limit as the wire has it: only the dimensions that it limits, gpu kinds as `gpu:KIND`."""
    if quota is None:
        return None
    limits = {d: v for d in DIMENSIONS if (v := getattr(quota, d)) is not None}
    return amounts_to({**limits, **{f"gpu:{k}": v for k, v in quota.kinds.items()}})


def amounts_to(amounts: Mapping[str, int]) -> dict[str, float]:
    """Return amounts by dimension as the wire has them: cores, devices, MiB, bytes."""
    return {d: amount_to(d, v) for d, v in amounts.items()}


def amount_to(dimension: str, value: int) -> float:
    """Return an amount of one dimension as the wire has it."""
    return units(value) if dimension.startswith(("cpu", "gpu")) else value


def amount_from(field: str, amounts: Mapping[str, float]) -> Quota:
    """Return amounts of the wire by dimension. Raises `Invalid` for what is no resource or no finite amount."""
    return _limit(field, amounts) or Quota()


def booking_to(window: BookedWindow, now: float, *, notes: Sequence[str] = ()) -> tenant_api.Booking:
    """Return a booked window, with what else is to be known of it."""
    short = window.short
    return tenant_api.Booking(
        tenant=window.tenant,
        name=window.name,
        start=when(window.start),
        end=when(window.end),
        amount=limit_to(window.amount) or {},
        open=window.start <= now < window.end,
        made_by=window.made_by,
        made_at=when(window.made_at),
        short=None
        if short is None
        else tenant_api.BookingShort(
            since=when(short.since), left=limit_to(short.left) or {}, message=short.message
        ),
        notes=list(notes),
    )


def member_to(member: Member) -> api.Member:
    """Return a member."""
    return api.Member(tenant=member.tenant, user=member.user, role=member.role.value, source=member.source)


def holding_to(request: ResourceRequest, amount: Resources | None = None) -> api.Holding:
    """Return who holds how much; `amount` in place of the whole, where only a part counts (a node's)."""
    a = request.amount if amount is None else amount
    return api.Holding(
        holder=holder_of(request),
        user=request.user,
        applier=request.applier,
        cpu=units(a.cpu),
        gpu=units(a.gpu),
        ram=a.ram,
        rom=a.rom,
        since=when(request.created_at),
    )


def sample_to(sample: UsageSample) -> dict[str, object]:
    """Return one point of a tenant's usage over time."""
    a = sample.amount
    return {
        "time": when(sample.time).isoformat().replace("+00:00", "Z"),
        "cpu": units(a.cpu),
        "gpu": units(a.gpu),
        "ram": a.ram,
        "rom": a.rom,
        "running": sample.running,
        "waiting": sample.waiting,
    }


def node_to(node: NodeInfo, holders: Sequence[ResourceRequest]) -> api.Node:
    """Return a node with those who hold a part of it."""
    parts = [(request, share) for request in holders for name, share in request.shares if name == node.name]
    used = ZERO
    for _, share in parts:
        used += share
    return api.Node(
        name=node.name,
        up=node.up,
        cpu=units(node.physical.cpu),
        gpu=units(node.physical.gpu),
        gpu_kind=node.gpu_kind,
        ram=node.physical.ram,
        cpu_allocatable=units(node.capacity.cpu),
        ram_allocatable=node.capacity.ram,
        cpu_inuse=units(used.cpu),
        gpu_inuse=units(used.gpu),
        ram_inuse=used.ram,
        labels=dict(node.labels),
        holders=[holding_to(request, share) for request, share in parts],
    )


def _kinds(limits: Mapping[str, float]) -> dict[str, int]:
    """Return limits by kind of gpu. Refuses what no kind can be called, and too many of them."""
    check_kinds("gpu_kinds", len(limits))
    for kind in limits:
        if not _is_kind(kind):
            raise Refused(
                Reason.INVALID,
                f"gpu_kinds has {kind[:LONGEST_KIND]!r}, which names no kind of gpu; use 1 to {LONGEST_KIND} printable characters",
            )
    return {kind: _thousandths(f"gpu_kinds.{kind}", value) for kind, value in limits.items()}


def _is_kind(kind: str) -> bool:
    return 0 < len(kind) <= LONGEST_KIND and kind.isprintable()


def _limit(field: str, limits: Mapping[str, float] | None) -> Quota | None:
    """Return a limit of the wire as a quota. Refuses dimensions that do not exist."""
    if limits is None:
        return None
    plain: dict[str, int] = {}
    kinds: dict[str, int] = {}
    check_kinds(field, sum(":" in dimension for dimension in limits))
    for dimension, value in limits.items():
        base, colon, kind = dimension.partition(":")
        if colon and base == "gpu" and _is_kind(kind):
            kinds[kind] = _thousandths(f"{field}.{dimension}", value)
        elif dimension in ("cpu", "gpu"):
            plain[dimension] = _thousandths(f"{field}.{dimension}", value)
        elif dimension in ("ram", "rom"):
            plain[dimension] = _whole_number(f"{field}.{dimension}", value)
        else:
            raise Refused(
                Reason.INVALID,
                f"{field} has {dimension[:LONGEST_KIND]!r}, which is no resource; the resources are cpu, gpu, gpu:KIND, ram and rom",
            )
    return Quota(plain.get("cpu"), plain.get("gpu"), plain.get("ram"), plain.get("rom"), kinds)


def _finite(field: str, value: float) -> float:
    if not math.isfinite(value) or value < 0 or value > 2**60:
        raise Refused(Reason.INVALID, f"{field} is {value}; it must be a number from 0 to 2^60")
    return value


def _thousandths(field: str, value: float) -> int:
    return thousandths(field, _finite(field, value))


def thousandths(field: str, value: float) -> int:
    """Return cores or devices in thousandths. Refuses what is more than nothing and less than one of them."""
    if 0 < value < 1 / MILLI:
        raise Refused(
            Reason.INVALID, f"{field} is {value:g}, and 0.001 is the least there is; use that at least, or 0"
        )
    return milli(value)


def check_kinds(field: str, kinds: int) -> None:
    """Refuse a limit that names too many kinds of gpu."""
    if kinds > MOST_KINDS:
        raise Refused(Reason.INVALID, f"{field} names {kinds} kinds of gpu; {MOST_KINDS} are the most")


def _whole_number(field: str, value: float) -> int:
    if _finite(field, value) != int(value):
        raise Refused(Reason.INVALID, f"{field} is {value}; it must be a whole number")
    return int(value)
