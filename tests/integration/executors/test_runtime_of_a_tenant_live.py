"""The page on runtimes of tenants does what it says: its runtime and its program, with real processes."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.platform import Platform
from mlp_hub.service.tenants.runtime_rules import runtime_from
from mlp_hub.store.database import Database
from support.executors.executor_lab import ROOT, Lab
from support.rigs.platform_rig import FAST
from support.waiting import until

PAGE = (Path(__file__).parents[3] / "docs/how-to/runtimes.md").read_text()
(RUNTIME,) = re.findall(r"```json runtime\n(.*?)```", PAGE, re.DOTALL)
(PROGRAM,) = re.findall(r"```python program\n(.*?)```", PAGE, re.DOTALL)


def described(**fields: Any) -> RuntimeUpdate:
    return msgspec.convert({"title": "Mine", **fields}, RuntimeUpdate)


async def test_parameter_servers_and_workers_of_the_page_run_as_it_says(lab: Lab) -> None:
    asked = msgspec.json.decode(RUNTIME, type=RuntimeUpdate)

    async with running_platform(lab) as platform:
        await platform.runtimes.store_runtime("default", "ps-workers", asked, actor="root", reviewer=True)
        made = await platform.jobs.submit(
            "ann",
            JobCreate(
                name="sum", code=PROGRAM, runtime="ps-workers", workers=3, ps=1, cpu=0.25, ram=200,
                args=["--upto", "101"],
            ),
        )  # fmt: skip
        assert made.runtime == "ps-workers"

        async def ended() -> Any:
            job = await platform.jobs.get(SYSTEM, "ann", "sum")
            return job if job.phase in ("finished", "failed") else None

        job = await until(ended)
        assert job.phase == "finished", job
        assert [r.role for r in job.ranks] == ["chief", "worker", "worker", "ps"]
        chief, *workers, server = (r.state for r in job.ranks)
        assert (chief, server) == ("finished", "stopped")
        # the chief's end is the job's; a worker whose part is told may not have ended quite yet
        assert set(workers) <= {"finished", "stopped"}
        lines = (await platform.jobs.log_chunk(SYSTEM, "ann", "sum", 0)).lines
        assert [line.text for line in lines] == ["sum 5050"]
        held = await platform.db.read(lambda tx: tx.ledger.in_use("default", time.time()))
        assert held == ZERO


@asynccontextmanager
async def running_platform(lab: Lab) -> AsyncIterator[Platform]:
    db = Database(str(lab.base / "mlp.sqlite"))
    db.create_schema()
    room = Resources(2000, 0, 4000)
    executor = lab.executor(nodes=(NodeInfo("here", room, room),))
    policy = replace(FAST, grace_s=10.0, first_uid=300_000 if ROOT else None)
    platform = Platform(db, executor, time.time, policy, alone=True)
    await platform.start()
    try:
        number = (await platform.users.ensure("ann")).number
        home = lab.base / "homes/ann"
        home.mkdir(parents=True, mode=0o700)
        if ROOT:
            os.chown(home, 300_000 + number, 300_000 + number)
        yield platform
    finally:
        await platform.stop()
        await executor.close()
        await asyncio.to_thread(db.close)


def test_shell_syntax_in_arguments_and_variables_is_passed_on_unchanged(lab: Lab) -> None:
    evil = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "| touch pwned", "*", "a\\ b", "{{rank}}"]
    asked = described(program=["{program}", *evil], env={"EVIL": "$(touch pwned){{"})
    runtime = runtime_from("red", "mine", asked)
    code = "import os, sys; print(sys.argv[1:], os.environ['EVIL'], os.path.exists('pwned'))"
    for workers in (1, 2):
        spec = lab.spec(code, runtime=runtime, workers=workers)
        assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
        given = [text.replace("{{", "{").replace("}}", "}") for text in evil]
        assert lab.output(spec, workers - 1) == [f"{given} $(touch pwned){{ False"]


def test_a_launcher_of_a_tenant_starts_the_ranks_and_tells_each_its_number(lab: Lab) -> None:
    start_all = (
        "import os, subprocess, sys\n"
        "n = int(sys.argv[1])\n"
        "all_ = [subprocess.Popen(sys.argv[2:], env={**os.environ, 'MY_RANK': str(r)}) for r in range(n)]\n"
        "sys.exit(max(p.wait() for p in all_))"
    ).replace("{", "{{").replace("}", "}}")  # fmt: skip
    asked = described(
        launcher=[
            "{python}",
            "-c",
            start_all.replace("\n", ";", 2).replace("\n", ";"),
            "{world_size}",
            "{start_rank}",
        ],
        rank_env="MY_RANK",
    )
    runtime = runtime_from("red", "mine", asked)
    spec = lab.spec(
        "import os; print(os.environ['MLP_RANK'], os.environ['MLP_WORLD_SIZE'])", runtime=runtime, workers=2
    )
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert [lab.output(spec, rank) for rank in (0, 1)] == [["0 2"], ["1 2"]]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exit_status_that_the_runtime_calls_success_is_one(lab: Lab, workers: int) -> None:
    runtime = runtime_from("red", "mine", described(success=[3]))
    assert (
        lab.run(lab.spec("raise SystemExit(3)", runtime=runtime, workers=workers)).phase
        is AttemptPhase.SUCCEEDED
    )
    seen = lab.run(lab.spec("raise SystemExit(4)", runtime=runtime, workers=workers))
    assert seen.failure is not None
    assert seen.failure.exit_code == 4


def test_a_runtimes_command_has_no_more_rights_than_the_users_own_program(lab: Lab) -> None:
    look = "import os, sys; print(os.getuid() != 0 or not sys.argv[1:], os.listdir('/home'), os.path.exists(sys.argv[2]))"
    own = lab.spec(look + "; ", args=("x", str(lab.base)))
    lab.home("bob")
    runtime = runtime_from(
        "red", "mine", described(program=["{python}", "-c", look, "{entry}", str(lab.base)])
    )
    spec = lab.spec("pass", runtime=runtime)
    assert lab.run(own).phase is lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == lab.output(own)
    assert "bob" not in lab.output(spec)[0]
