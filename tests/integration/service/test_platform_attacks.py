"""People who stop, resume and cancel elastic jobs at every moment, while quotas change: nothing is held twice or for ever."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import MLPError
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, node, running_rig

TENANT_OF = {"ann": "red", "bob": "blue"}


class Crowd:
    """People who do what they like; the rig itself compares the kept core with one made anew in every cycle."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.rng = random.Random(seed)
        self.names: list[tuple[str, str]] = []
        self.done: Counter[str] = Counter()

    async def act(self) -> None:
        """Do one thing; a refusal is as good as an answer."""
        jobs, rng = self.rig.platform.jobs, self.rng
        user = rng.choice(list(TENANT_OF))
        mine = [n for n in self.names if n[0] == user][-6:]
        what = rng.choice(("submit", "cancel", "suspend", "hop", "hop", "resume", "quota"))
        try:
            if what == "submit" and len(self.rig.platform.board.jobs) < 10:
                name = f"j{len(self.names)}"
                workers, priority = rng.choice(["1:4", "2:8", 2, 1]), rng.choice(["low", "normal", "high"])
                sim = {"DURATION": rng.uniform(0.1, 1.0), "STOP": rng.uniform(0.01, 0.15)}
                await self.rig.submit(
                    name, user, tenant=TENANT_OF[user], workers=workers, priority=priority, sim=sim
                )
                self.names.append((user, name))
            elif what == "quota":
                asked = TenantUpdate(cpu=rng.choice([1, 2, 4]), cohort=rng.choice(["main", "main", None]))
                await self.rig.platform.tenants.update(rng.choice(["red", "blue"]), asked)
            elif mine and what == "hop":
                job = rng.choice(mine)
                await jobs.suspend(SYSTEM, *job)
                await jobs.resume(SYSTEM, *job)
            elif mine and what in ("cancel", "suspend", "resume"):
                await getattr(jobs, what)(SYSTEM, *rng.choice(mine))
        except MLPError:
            return
        self.done[what] += 1


async def test_whatever_people_do_to_elastic_jobs_nothing_is_held_twice_or_for_ever(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 8)) as rig:
        for user, tenant in TENANT_OF.items():
            await rig.platform.tenants.create(TenantCreate(name=tenant, cpu=4, cohort="main"))
            await rig.platform.users.ensure(user)
            await rig.platform.tenants.set_member(tenant, user)
        crowd = Crowd(rig, 8)

        async def person() -> None:
            for _ in range(60):
                await asyncio.sleep(crowd.rng.uniform(0, 0.06))
                await crowd.act()

        people = [asyncio.ensure_future(person()) for _ in range(4)]
        while not all(p.done() for p in people):
            await asyncio.sleep(0.01)
            used = await rig.db.read(lambda tx: tx.ledger.node_use(time.time()))
            assert all(amount.cpu <= 8000 for amount in used.values()), used
        await asyncio.gather(*people)
        for job in crowd.names:
            try:
                await rig.platform.jobs.cancel(SYSTEM, *job)
            except MLPError:
                continue  # it has ended
        for user, name in crowd.names:
            await rig.until(name, "finished", "cancelled", user=user)
        assert (rig.held("red"), rig.held("blue")) == (ZERO, ZERO)
        assert crowd.done["hop"]
