"""Helpers for notebook servers that reclaim lent quota: their teams, requests and results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_api import types as api
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from support.rigs.platform_rig import FAST, Rig

LONG = {"DURATION": 60, "STOP": 0.1}
SLOW = replace(FAST, grace_s=30.0)


async def teams(rig: Rig, **more: Any) -> None:
    """Make red (ann's) and blue (bob's), four cores each, in one cohort; red's job borrows all that blue has."""
    for name, user in (("red", "ann"), ("blue", "bob")):
        await rig.platform.tenants.create(TenantCreate(name=name, cpu=4, cohort="main", **more))
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(name, user)


async def lent_out(rig: Rig, **sim: Any) -> None:
    await teams(rig)
    for name, more in (("inside", {}), ("lent", sim)):  # the one that started last is the cheapest to stop
        await rig.submit(name, workers=4, sim={**LONG, **more})
        await rig.until(name, "running")


def asked(user: str = "bob", tenant: str = "blue", cpu: float = 1, **more: Any) -> api.ResourceRequestTry:
    return api.ResourceRequestTry(
        id=f"{user}/",
        applier="sp",
        request_type="request",
        tenant=tenant,
        cpu=cpu,
        ram=512,
        user=user,
        holder=f"{user}'s notebook",
        **more,
    )


async def started(rig: Rig, **which: Any) -> str | None:
    """Try once; return the node that it got, None while room is being made."""
    row = await taken(rig, asked(**which))
    if row is None:
        return None
    assert row.phase is RequestPhase.TRIED
    return row.node


async def taken(rig: Rig, one: api.ResourceRequestTry) -> ResourceRequest | None:
    """Try; return the row, None while room is being made; any other refusal is raised."""
    try:
        return await rig.platform.ledger.try_(one)
    except Refused as refused:
        if refused.reason is not Reason.WAITING_FOR_PREEMPTED or refused.retry_after is None:
            raise
        return None


async def refusal(rig: Rig, **which: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await rig.platform.ledger.try_(asked(**which))
    return caught.value


def phase_of(rig: Rig, user: str = "bob") -> str | None:
    row = rig.db.read_now(lambda tx: tx.ledger.get("sp", f"{user}/"))
    return None if row is None else row.phase.value


async def running(rig: Rig, *names: str) -> list[str]:
    return [n for n in names if (await rig.platform.jobs.get(SYSTEM, "ann", n)).phase == "running"]


def server(i: int, cpu: float = 1, ram: int = 100) -> api.ResourceRequestTry:
    """Return the request of one of bob's servers."""
    one = asked(cpu=cpu)
    fields = {f: getattr(one, f) for f in one.__struct_fields__}
    return api.ResourceRequestTry(**{**fields, "id": f"bob/{i}", "ram": ram, "holder": f"bob/{i}"})
