"""Directories that take minutes to remove hold up their owner's removals, and nothing else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume import workspace as shared_volume
from mlp_hub.service.state.leadership import NAME
from mlp_hub.store.records import Lease
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import PATIENCE_S, until

MANY = 12


class Endless:
    """Removes directories of a user for ever, as one with millions of files would take, until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, user: str = "mal") -> None:
        self.user = user
        self.open = threading.Event()
        self.begun: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self._real = shared_volume.remove_directory
        monkeypatch.setattr(shared_volume, "remove_directory", self.remove)

    def remove(self, workspace: Path, check_cancelled: Callable[[], None]) -> None:
        if self.user in workspace.parts:
            self._wait(workspace, check_cancelled)
        self._real(workspace, check_cancelled)

    def _wait(self, workspace: Path, check_cancelled: Callable[[], None]) -> None:
        with self._lock:
            self.begun.append(workspace.name)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            while not self.open.wait(0.005):
                check_cancelled()
        finally:
            with self._lock:
                self._now -= 1


async def gone(rig: Rig, name: str, user: str) -> None:
    async def look() -> bool:
        try:
            await rig.platform.jobs.get(SYSTEM, user, name)
        except Refused:
            return True
        return False

    await until(look, what=f"{name} to be gone")


async def ended(rig: Rig, names: list[str], user: str) -> None:
    for name in names:
        await rig.submit(name, user=user, cpu=0.1, sim={"DURATION": 0.01})
    for name in names:
        await rig.until(name, "finished", user=user)


async def test_one_users_huge_directories_take_no_threads_or_turns_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless(monkeypatch)

    try:
        async with running_rig(tmp_path, node(cpu=4)) as rig:
            mine = [f"m{i}" for i in range(MANY)]
            await ended(rig, mine, "mal")
            await ended(rig, ["v"], "vic")
            for name in mine:
                await rig.platform.jobs.delete(SYSTEM, "mal", name)
            await until(lambda: _is(bool(endless.begun)))
            async with asyncio.timeout(PATIENCE_S):
                assert await asyncio.to_thread(lambda: 42) == 42
            await rig.platform.jobs.delete(SYSTEM, "vic", "v")
            await gone(rig, "v", "vic")
            await ended(rig, ["w"], "vic")
            assert len(endless.begun) == 1
            endless.open.set()
            for name in mine:
                await gone(rig, name, "mal")
            assert sorted(endless.begun) == sorted(mine)
            assert endless.most == 1
    finally:
        endless.open.set()


async def test_a_service_that_loses_the_lease_leaves_its_removals_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless(monkeypatch)

    try:
        async with running_rig(tmp_path, policy=replace(FAST, lease_s=3.0)) as rig:
            await ended(rig, ["m"], "mal")
            await rig.platform.jobs.delete(SYSTEM, "mal", "m")
            await until(lambda: _is(bool(endless.begun)))
            # another one had the lease for a moment: to have it again, no act under the old epoch may be under way
            other = Lease("elsewhere/1/0", time.time(), rig.platform.lease.epoch + 1)
            await rig.db.write(lambda tx: tx.leases.put(NAME, other))
            await until(lambda: _is(len(endless.begun) == 2))
            endless.open.set()
            await gone(rig, "m", "mal")
    finally:
        endless.open.set()


async def _is(value: bool) -> bool:
    return value
