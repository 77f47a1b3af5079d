"""Homes and teams of people are shown under the names that others' dashboards join on: few at a time, and nobody where that is off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.types import TenantCreate
from mlp_hub.domain.stored.storage import StoredItem, StoredKind, home_uid
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.config import MonitoringPolicy, RunPolicy
from mlp_hub.service.monitoring import service as monitoring
from mlp_hub.service.monitoring.people import escaped
from mlp_hub.store.tx import Tx
from support.monitoring.scraped import OPEN_METRICS, Scraped
from support.rigs.platform_rig import FAST, Rig, running_rig

GIB = 2**30


@pytest.fixture(autouse=True)
def _each_scrape_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 0.0)
    monkeypatch.setattr(monitoring, "SHARED_S", 0.0)
    monkeypatch.setattr(monitoring, "PEOPLE_S", 0.0)


def showing(most: int) -> RunPolicy:
    return replace(FAST, monitoring=MonitoringPolicy(most))


async def scraped(rig: Rig) -> Scraped:
    text, _ = await rig.platform.monitoring.scrape(OPEN_METRICS)
    return Scraped(text.decode(), is_open=True)


async def with_homes(rig: Rig, homes: Mapping[str, tuple[str, int]]) -> None:
    """Have measured homes, by user the team that each counts for and its bytes."""

    def work(tx: Tx) -> None:
        for user, (tenant, used) in homes.items():
            tx.stored.put(StoredItem(home_uid(user), StoredKind.HOME, tenant, user, user, 1.0, used=used))

    await rig.db.write(work)


async def known(rig: Rig, *users: str) -> None:
    await rig.db.write(lambda tx: tx.users.ensure_all(users, 1.0))


async def test_homes_have_their_size_and_what_their_team_has_left(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=showing(10)) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", rom=10 * GIB))
        await rig.platform.tenants.set_member("red", "ann")
        await rig.platform.tenants.set_member("red", "bob")
        await known(rig, "ann", "bob", "eve")
        await with_homes(rig, {"ann": ("red", 3 * GIB), "bob": ("red", GIB), "eve": ("default", 5)})
        found = await scraped(rig)
        assert found.by("dirsize_total_size_bytes", "directory") == {"ann": 3 * GIB, "bob": GIB, "eve": 5}
        limits = found.by("dirsize_hard_limit_bytes", "directory")
        assert (limits["ann"], limits["bob"]) == (9 * GIB, 7 * GIB)
        assert "eve" not in limits
        # a full team can grow by nothing
        await with_homes(rig, {"bob": ("red", 12 * GIB)})
        limits = (await scraped(rig)).by("dirsize_hard_limit_bytes", "directory")
        assert (limits["ann"], limits["bob"]) == (3 * GIB, 12 * GIB)


async def test_each_place_in_a_team_is_a_row_and_a_person_of_no_team_is_in_the_default_one(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=showing(10)) as rig:
        for tenant in ("red", "blue"):
            await rig.platform.tenants.create(TenantCreate(name=tenant))
            await rig.platform.tenants.set_member(tenant, "ann")
        await known(rig, "ann", "eve")
        found = {
            (dict(labels)["username"], dict(labels)["usergroup"])
            for (name, labels) in (await scraped(rig)).series
            if name == "jupyterhub_user_group_info"
        }
        assert found == {("ann", "red"), ("ann", "blue"), ("eve", "default")}


async def test_in_a_cluster_they_have_the_namespace_of_the_teams_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedExecutor, "namespace_of", lambda _, tenant: f"mlp-{tenant}")
    async with running_rig(tmp_path, policy=showing(10)) as rig:
        await known(rig, "ann")
        await with_homes(rig, {"ann": ("default", 7)})
        found = await scraped(rig)
        place = {"namespace": "mlp-default"}
        assert found.value("dirsize_total_size_bytes", directory="ann", **place) == 7
        names = {"username": "ann", "username_escaped": "ann", "username_safe": "ann"}
        assert found.value("jupyterhub_user_group_info", usergroup="default", **names, **place) == 1


async def test_the_largest_homes_come_first_and_no_more_people_than_the_setting_says(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=showing(3)) as rig:
        users = [f"user{n:02}" for n in range(20)]
        await known(rig, *users)
        await with_homes(rig, {users[n]: ("default", n) for n in range(10)})
        found = await scraped(rig)
        assert set(found.by("dirsize_total_size_bytes", "directory")) == {"user09", "user08", "user07"}
        assert set(found.by("jupyterhub_user_group_info", "username")) == {"user09", "user08", "user07"}


async def test_with_0_nobody_is_named_and_the_database_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "look_at_people", None)
    async with running_rig(tmp_path, policy=showing(0)) as rig:
        await known(rig, "annabel")
        await with_homes(rig, {"annabel": ("default", 7)})
        text, _ = await rig.platform.monitoring.scrape("")
        assert b"annabel" not in text


async def test_hostile_names_stay_within_their_labels(tmp_path: Path) -> None:
    names = ['a"} 1\nfake_metric{x="', "Ann.B@x", "ä\\n", "-", "a" * 255]
    async with running_rig(tmp_path, policy=showing(10)) as rig:
        await known(rig, *names)
        await with_homes(rig, {name: ("default", n) for n, name in enumerate(names)})
        found = await scraped(rig)
        assert not any("fake" in family for family in found.families)
        assert set(found.by("jupyterhub_user_group_info", "username")) == set(names)
        assert set(found.by("dirsize_total_size_bytes", "directory")) == {escaped(name) for name in names}
    assert escaped("Ann.B@x") == "-41nn-2e-42-40x"
    assert escaped("ä") == "-c3-a4"
    assert len({escaped(name) for name in (*names, "-2d", "a-2eb", "a.b")}) == len(names) + 3
