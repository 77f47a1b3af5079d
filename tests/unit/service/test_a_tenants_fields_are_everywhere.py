"""What is configured of a tenant reaches the store, the scheduler, scenarios, what-ifs and the panel."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import msgspec

from mlp_api import types as api
from mlp_api.platform.whatif import WhatIfTenant
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.service.quota.accounting import owner_of
from mlp_hub.service.tenants import wire
from mlp_hub.simulate import forms, recorded_file
from mlp_hub.simulate.scenario_reader import read_value
from mlp_hub.store.repos.tenants.tenants import TENANTS

QUOTA = {"cpu", "gpu", "ram", "rom", "gpu_kinds", "amounts"}
OF_THE_MOMENT = {"used", "decayed_usage", "member_usage", "others"}
FULL = api.TenantCreate(
    name="red",
    cpu=4,
    gpu=2,
    ram=4096,
    rom=2**30,
    amounts={"shm": 2048},
    gpu_kinds={"h100": 1},
    weight=2.5,
    cohort="main",
    parent="org",
    borrowing_limit={"cpu": 1},
    lending_limit={"cpu": 2, "gpu:h100": 0.5},
    reserved={"ram": 512},
    queue_order="fifo",
    isolation="dedicated",
    data_root="/srv/red",
    network="outbound",
    leavers="stop",
    datasets="members",
    joining="asked",
    description="a team",
)


def names(struct: type[msgspec.Struct]) -> set[str]:
    return {f.name for f in msgspec.structs.fields(struct)}


def test_the_example_sets_every_field_that_has_more_than_one_value_here() -> None:
    given = {f.name for f in msgspec.structs.fields(FULL) if getattr(FULL, f.name) != f.default}
    assert given == names(api.TenantCreate) == names(api.TenantUpdate)


def test_the_answer_shows_all_that_was_configured_and_a_row_keeps_it() -> None:
    tenant = wire.tenant_from(FULL, FULL.name)
    row = SimpleNamespace(**TENANTS.row(tenant))
    for kept in (tenant, TENANTS.of(row)):  # type: ignore[arg-type]
        shown = wire.tenant_to(kept, ZERO)
        assert {n: getattr(shown, n) for n in names(api.TenantCreate)} == msgspec.structs.asdict(FULL)


def test_the_scheduler_receives_every_tenant_field_it_needs() -> None:
    owner = owner_of(wire.tenant_from(FULL, FULL.name))
    plain = TenantQueue("other")
    told = {f.name for f in fields(TenantQueue) if getattr(owner, f.name) != getattr(plain, f.name)}
    assert told == {f.name for f in fields(TenantQueue)} - OF_THE_MOMENT
    assert told == {f.name for f in fields(TenantQueue)} & {f.name for f in fields(Tenant)}


def test_a_scenario_and_a_what_if_have_what_the_scheduler_knows() -> None:
    known = {f.name for f in fields(TenantQueue)} - OF_THE_MOMENT
    assert names(forms.TenantForm) == known
    owner = owner_of(wire.tenant_from(FULL, FULL.name))
    exported = recorded_file._tenant(owner)
    assert set(exported) == known
    scenario = {"version": 1, "nodes": [{"name": "n"}], "tenants": [{"name": "org"}, exported], "jobs": []}
    assert read_value(scenario).tenants[1] == owner
    assert names(WhatIfTenant) == QUOTA | known - {"name", "quota"}
