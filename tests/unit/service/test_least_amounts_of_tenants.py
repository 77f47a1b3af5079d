"""Amounts that are less than anything, or lie between thousandths: refused, not rounded; and how many kinds of GPU a limit may name."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_api.platform.whatif import WhatIfTenant
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.service.support.units import MOST_KINDS
from mlp_hub.service.tenants.wire import tenant_from
from mlp_hub.service.whatif.service import _tenant

CRUMBS: list[dict[str, Any]] = [
    {"cpu": 0.0004},
    {"gpu": 0.00099},
    {"gpu_kinds": {"a100": 0.0004}},
    {"borrowing_limit": {"cpu": 0.0004}},
    {"lending_limit": {"gpu": 1e-9}},
    {"reserved": {"gpu:a100": 0.0009}},
]
BETWEEN: list[dict[str, Any]] = [
    {"cpu": 1.0005},
    {"gpu": 0.33333},
    {"gpu_kinds": {"a100": 2.5001}},
    {"borrowing_limit": {"cpu": 1.0005}},
    {"reserved": {"gpu:a100": 0.0019}},
]
MANY = {f"k{n}": 1.0 for n in range(MOST_KINDS + 1)}
TOO_MANY: list[dict[str, Any]] = [
    {"gpu_kinds": MANY},
    {"reserved": {f"gpu:{kind}": 1.0 for kind in MANY}},
]


@pytest.mark.parametrize("fields", CRUMBS, ids=str)
def test_a_limit_below_a_thousandth_is_refused_and_names_the_least(fields: dict[str, Any]) -> None:
    for make in (
        lambda: tenant_from(TenantCreate(name="red", **fields), "red"),
        lambda: _tenant(TenantQueue("red"), WhatIfTenant(**fields)),
    ):
        with pytest.raises(Refused, match=r"the smallest amount is 0\.001") as caught:
            make()
        assert caught.value.reason is Reason.INVALID


@pytest.mark.parametrize("fields", BETWEEN, ids=str)
def test_a_limit_between_two_thousandths_is_refused_and_names_both(fields: dict[str, Any]) -> None:
    for make in (
        lambda: tenant_from(TenantCreate(name="red", **fields), "red"),
        lambda: _tenant(TenantQueue("red"), WhatIfTenant(**fields)),
    ):
        with pytest.raises(Refused, match=r"three digits after the point; use [\d.]+ or [\d.]+"):
            make()


@pytest.mark.parametrize(
    ("cpu", "thousandths"), [(0.1 + 0.2, 300), (1.001, 1001), (999_999.999, 999_999_999)]
)
def test_an_amount_that_floats_only_come_near_to_is_taken(cpu: float, thousandths: int) -> None:
    assert tenant_from(TenantCreate(name="red", cpu=cpu), "red").quota.cpu == thousandths


@pytest.mark.parametrize("fields", TOO_MANY, ids=["gpu_kinds", "reserved"])
def test_the_number_of_gpu_kinds_in_a_limit_is_bounded(fields: dict[str, Any]) -> None:
    for make in (
        lambda: tenant_from(TenantCreate(name="red", **fields), "red"),
        lambda: _tenant(TenantQueue("red"), WhatIfTenant(**fields)),
    ):
        with pytest.raises(Refused, match="names 65 kinds of gpu; the limit is 64"):
            make()


def test_a_thousandth_nothing_and_the_most_kinds_are_taken() -> None:
    kinds = {f"k{n}": 0.001 for n in range(MOST_KINDS)}
    tenant = tenant_from(TenantCreate(name="red", cpu=0.001, gpu=0, gpu_kinds=kinds), "red")
    assert (tenant.quota.cpu, tenant.quota.gpu) == (1, 0)
    assert set(tenant.quota.kinds.values()) == {1}
