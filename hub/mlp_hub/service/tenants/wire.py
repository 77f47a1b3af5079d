"""Tenants, members and usage, to and from their wire form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import groupby
from statistics import fmean
from typing import Any

from mlp_api import types as api
from mlp_api.localized import Text
from mlp_hub.domain.dimensions import COUNTED
from mlp_hub.domain.resources import HOUR_S, Resources, units
from mlp_hub.domain.tenants.relocation import Relocation
from mlp_hub.domain.tenants.tenant import Lowering, Member, Tenant
from mlp_hub.service.quota.lending import Share
from mlp_hub.service.support.units import (
    amounts_to,
    finite,
    limit_from,
    limit_to,
    maybe_when,
    quota_from,
    when,
)
from mlp_hub.store.records import RunTotals, UsageSample
from mlp_language.message import NOTHING, Message

AS_ASKED = tuple(
    f.name
    for f in fields(Tenant)
    if f.name in api.TenantCreate.__struct_fields__
    and f.name not in {"name", "weight", "borrowing_limit", "lending_limit", "reserved"}
)
"""Fields of a tenant that are the same here as on the wire."""


def tenant_from(asked: api.TenantCreate, name: str) -> Tenant:
    """Return the tenant that is described. Raises `Invalid` for a limit that is not a finite amount."""
    return Tenant(
        name=name,
        quota=quota_from(asked, asked.gpu_kinds),
        weight=finite("weight", asked.weight),
        borrowing_limit=limit_from("borrowing_limit", asked.borrowing_limit),
        lending_limit=limit_from("lending_limit", asked.lending_limit),
        reserved=limit_from("reserved", asked.reserved),
        **_as_asked(asked),
    )


def tenant_to(
    tenant: Tenant,
    in_use: Resources,
    *,
    share: Share | None = None,
    members: int = 0,
    running: int = 0,
    waiting: int = 0,
    notes: Sequence[Message] = (),
    job_network: str = "none",
    move: api.IsolationMove | None = None,
) -> api.Tenant:
    """Return a tenant with its use, and its standing to those that it shares with.

    `job_network` is the hub's setting, for tenants without their own.
    """
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
        amounts=dict(q.amounts),
        amounts_inuse=dict(in_use.amounts),
        weight=tenant.weight,
        borrowing_limit=limit_to(tenant.borrowing_limit),
        lending_limit=limit_to(tenant.lending_limit),
        reserved=limit_to(tenant.reserved),
        borrowed=amounts_to(share.borrowed),
        lent=amounts_to(share.lent),
        lendable=amounts_to(share.lendable),
        free=amounts_to(share.free),
        over=amounts_to(share.over),
        lowered=lowering_to(tenant.lowered),
        job_network=tenant.network or job_network,
        members=members,
        running=running,
        waiting=waiting,
        notes=[Text(n) for n in notes],
        move=move,
        **_as_asked(tenant),
    )


def move_to(relocation: Relocation | None, done: int) -> api.IsolationMove | None:
    """Return where a tenant's files are on their way; None where they were never moved."""
    if relocation is None:
        return None
    return api.IsolationMove(
        state=relocation.phase.value,
        old=relocation.old.grade,
        new=relocation.new.grade,
        done=min(done, relocation.total) if relocation.under_way else relocation.total,
        total=relocation.total,
        message=Text(relocation.message),
        asked_by=relocation.asked_by,
        asked_at=when(relocation.asked_at),
        ended_at=maybe_when(relocation.ended_at),
    )


def _as_asked(of: api.TenantCreate | Tenant) -> dict[str, Any]:
    return {name: getattr(of, name) for name in AS_ASKED}


def lowering_to(lowering: Lowering | None) -> api.LoweredGuarantee | None:
    """Return what of a guarantee holds while it is lowered."""
    if lowering is None:
        return None
    return api.LoweredGuarantee(
        since=when(lowering.since),
        share=lowering.share,
        lending_limit=limit_to(lowering.lending_limit),
        reserved=limit_to(lowering.reserved),
        message=Text(lowering.message),
    )


def member_to(member: Member, provider: str = "") -> api.Member:
    """Return a member; `provider` is who keeps those that groups brought."""
    return api.Member(
        tenant=member.tenant,
        user=member.user,
        role=member.role.value,
        source=member.source,
        note=Text(NOTHING),
        managed_by=provider if member.source == "group" else "",
    )


def total_to(total: RunTotals) -> api.UsageTotal:
    """Return what jobs took."""
    return api.UsageTotal(
        cpu_hours=round(total.cpu_s / HOUR_S, 6),
        gpu_hours=round(total.gpu_s / HOUR_S, 6),
        cpu_most=total.most_cpu,
        gpu_most=total.most_gpu,
    )


def hours_of(samples: Iterable[UsageSample]) -> list[api.UsageHour]:
    """Return a tenant's use by the hour of samples in order of time: means of its holdings, and the most jobs.

    There is an hour only with a sample.
    """
    found = []
    for hour, group in groupby(samples, lambda sample: sample.time // HOUR_S):
        of = list(group)
        found.append(
            api.UsageHour(
                time=when(hour * HOUR_S),
                cpu=units(round(fmean(each.amount.cpu for each in of))),
                gpu=units(round(fmean(each.amount.gpu for each in of))),
                ram=round(fmean(each.amount.ram for each in of)),
                rom=round(fmean(each.amount.rom for each in of)),
                amounts={
                    d: round(fmean(each.amount.part(d) for each in of))
                    for d in COUNTED
                    if any(each.amount.amounts for each in of)
                },
                running=max(each.running for each in of),
                waiting=max(each.waiting for each in of),
            )
        )
    return found
