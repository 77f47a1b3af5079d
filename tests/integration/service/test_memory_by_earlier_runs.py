"""Memory that fits by earlier runs: in offers, previews and jobs, and chosen by `ram: auto`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from mlp_api.jobs.jobs import JobCreate, Resubmit
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, node, running_rig
from support.rigs.sweep_rig import over, sweep

BIG = node(ram=65_536)


def asked(name: str = "train", **fields: Any) -> JobCreate:
    return convert({"name": name, "code": "pass", "ram": "auto", **fields}, JobCreate)


async def finished(rig: Rig, name: str, *used: int, **fields: Any) -> None:
    for ram in used:
        await rig.submit(name, sim={"DURATION": 0.05, "RAM": ram}, **fields)
        await rig.until(name, "finished")


async def test_auto_takes_what_earlier_runs_used_and_a_margin_and_says_why(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, 2150, 1000, ram=8192)
        offer = await rig.platform.jobs.offer("ann", asked())
        assert offer.ram == 2624
        assert offer.memory is not None
        assert (offer.memory.runs, offer.memory.used, offer.memory.asked) == (3, 2150, 8192)
        assert str(offer.memory.text) == "the last 3 runs like it used at most 2.1 GiB of 8 GiB per rank"
        because = "2.56 GiB per rank was chosen: the last 3 runs like it used at most 2.1 GiB of 8 GiB per rank, and 20 % is added, at least 256 MiB"
        assert str(offer.ram_because) == because
        preview = await rig.platform.jobs.preview("ann", asked())
        assert (preview.offer.ram, str(preview.offer.ram_because)) == (2624, because)
        job = await rig.platform.jobs.submit("ann", asked())
        assert job.ram == 2624


async def test_an_amount_stays_as_it_was_given_and_the_memory_of_earlier_runs_is_told(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=8192)
        offer = await rig.platform.jobs.offer("ann", asked(ram=4096))
        assert (offer.ram, str(offer.ram_because)) == (4096, "")
        assert offer.memory is not None
        assert offer.memory.fitting == 1216
        job = await rig.platform.jobs.get(SYSTEM, "ann", "train")
        assert job.memory is not None
        assert str(job.memory.text) == "the last run like it used at most 900 MiB of 8 GiB per rank"


async def test_auto_without_earlier_runs_is_refused_in_words(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        for ask in (rig.platform.jobs.offer, rig.platform.jobs.preview, rig.platform.jobs.submit):
            with pytest.raises(Refused, match="no run like train has finished yet"):
                await ask("ann", asked())
        with pytest.raises(Refused, match="needs the name of the job"):
            await rig.platform.jobs.offer("ann", asked(), named=False)


async def test_a_run_that_ran_out_of_memory_makes_the_next_one_larger(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=2048)
        await rig.submit("train", sim={"DURATION": 0.05, "OOM": 1}, ram=2048)
        await rig.until("train", "failed")
        offer = await rig.platform.jobs.offer("ann", asked())
        assert offer.ram == 2496
        assert offer.memory is not None
        assert str(offer.memory.text).endswith("and one of them ran out of memory")


async def test_the_use_of_runs_is_known_after_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=2048)
        await rig.submit("other", sim={"DURATION": 0.05, "OOM": 1}, ram=2048)
        await rig.until("other", "failed")
        await rig.platform.summaries.turn()
        rig.crash()
        await rig.start()
        assert (await rig.platform.jobs.offer("ann", asked())).ram == 1216
        assert (await rig.platform.jobs.offer("ann", asked("other"))).ram == 2496


async def test_nobody_learns_what_others_runs_used(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=2048)
        assert (await rig.platform.jobs.offer("bob", asked(ram=512))).memory is None
        with pytest.raises(Refused, match="no run like train"):
            await rig.platform.jobs.offer("bob", asked())


async def test_one_key_is_one_job_even_when_more_is_known_meanwhile(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=2048)
        first = await rig.platform.jobs.submit("ann", asked(), idempotency_key="k")
        await finished(rig, "other", 9000, ram=16_384)
        again = await rig.platform.jobs.submit("ann", asked(), idempotency_key="k")
        assert (again.uid, again.ram) == (first.uid, first.ram)


async def test_a_resubmission_may_take_auto(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=2048)
        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "train", convert({"ram": "auto"}, Resubmit))
        assert again.ram == 1216


async def test_auto_includes_shared_memory(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        await finished(rig, "train", 900, ram=8192)
        offer = await rig.platform.jobs.offer("ann", asked(amounts={"shm": 4096}))
        assert offer.ram == 4096


async def test_trials_of_a_sweep_take_what_earlier_trials_used(tmp_path: Path) -> None:
    async with running_rig(tmp_path, BIG) as rig:
        env = {"SIM_DURATION": "0.05", "SIM_RAM": "900"}
        await sweep(rig, "lr", grid={"x": [1]}, env=env, ram=2048)
        await over(rig, "lr")
        found = await sweep(rig, "lr", grid={"x": [2]}, env=env, ram="auto")
        assert found.ram == 1216
