"""An executor is told all tenants: at start, and after each change of a tenant or of who is in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import MessageError
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.base import TenantPlace
from mlp_hub.service.lifecycle.tenant_places import most_of
from mlp_hub.service.quota.accounting import tree_of
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


class Told:
    """What an executor was told last; the first `fails` times it cannot."""

    def __init__(self, rig: Rig, fails: int = 0) -> None:
        self.places: dict[str, TenantPlace] = {}
        self.epochs: list[int] = []
        self.fails = fails
        rig.executor.keep_tenants = self.keep  # type: ignore[method-assign]
        rig.executor.keeps_tenants = True

    async def keep(self, tenants: Sequence[TenantPlace], epoch: int = 0) -> None:
        self.epochs.append(epoch)
        self.fails -= 1
        if self.fails >= 0:
            raise MessageError(msg("the cluster is away"))
        self.places = {place.name: place for place in tenants}

    async def until(self, name: str, place: TenantPlace | None) -> None:
        async def look() -> bool:
            return bool(self.places) and self.places.get(name) == place

        await until(look, what=f"{name} to be told as {place}")


async def test_they_are_told_at_start_and_when_they_change(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        told = Told(rig)
        await rig.restart()
        await told.until("default", TenantPlace("default"))
        tenants = rig.platform.tenants
        await tenants.create(TenantCreate(name="red", cpu=4.0))
        await told.until("red", TenantPlace("red", Quota(cpu=4000)))
        await tenants.set_member("red", "ann")
        await told.until("red", TenantPlace("red", Quota(cpu=4000), ("ann",)))
        await tenants.update("red", TenantUpdate(cpu=2.0))
        await told.until("red", TenantPlace("red", Quota(cpu=2000), ("ann",)))
        await tenants.remove_member("red", "ann")
        await told.until("red", TenantPlace("red", Quota(cpu=2000)))
        await tenants.delete("red")
        await told.until("red", None)
        assert set(told.epochs) == {rig.platform.lease.epoch}


async def test_a_failed_update_of_the_executor_is_repeated(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        told = Told(rig, fails=3)
        await rig.restart()
        await told.until("default", TenantPlace("default"))


def test_the_most_of_a_tenant_counts_what_it_may_borrow() -> None:
    tree = tree_of(
        [
            Tenant("red", Quota(cpu=4000), cohort="lab"),
            Tenant("blue", Quota(cpu=6000), cohort="lab", borrowing_limit=Quota(cpu=1000)),
            Tenant("alone", Quota(ram=100)),
        ],
        {},
    )
    nothing = Resources()
    assert most_of(tree, "red", nothing).cpu == 10_000
    assert most_of(tree, "blue", nothing).cpu == 7_000
    assert most_of(tree, "alone", nothing) == Quota(ram=100)


def test_the_most_of_a_tenant_is_not_less_than_it_holds() -> None:
    tree = tree_of([Tenant("red", Quota(cpu=1000, gpu=0))], {})
    assert most_of(tree, "red", Resources(cpu=3000, ram=50)) == Quota(cpu=3000, gpu=0)
