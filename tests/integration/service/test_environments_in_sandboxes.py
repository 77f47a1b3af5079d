"""An environment made by uv in real sandboxes, and jobs that run in it: one build for all of this file."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import msgspec
import pytest

from mlp_api.apps.apps import AppCreate
from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import AttemptKey
from mlp_hub.executors.workspace import JobRun
from support.rigs.environment_rig import SandboxRig, at_rest, create, delete, detail, gone, left, running_rig
from support.waiting import until

PROGRAM = """
import sys, os, importlib.util, iniconfig, mlp, numpy
print("iniconfig", iniconfig.__file__.startswith("/mlp/env/tools-"), iniconfig.__cached__ is not None)
print("python", sys.prefix.startswith("/mlp/env/tools-"), os.environ["VIRTUAL_ENV"] == sys.prefix)
print("base", numpy.__file__.startswith(sys.prefix), mlp.__name__)
print("compiled", os.path.exists(importlib.util.cache_from_source(iniconfig.__file__)))
try:
    open(sys.prefix + "/new", "w")
except OSError as error:
    print("written", error.strerror)
"""
APP = """
import http.server, os, iniconfig
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Hello).serve_forever()
"""
MPI = """
from mpi4py import MPI
import iniconfig
world = MPI.COMM_WORLD
print("sum", world.allreduce(world.rank + 1), iniconfig.__file__.startswith("/mlp/env/"))
"""


async def ran(rig: SandboxRig, name: str, code: str, **more: object) -> list[str]:
    """Run a job to its end and return what its ranks wrote."""
    await rig.platform.jobs.submit("ann", JobCreate(name=name, code=code, cpu=0.5, ram=512, **more))
    job = await rig.until(name, "finished", "failed")
    lines = []
    for rank in range(len(job.ranks)):
        key = AttemptKey(f"{job.uid}.0", JobRun("ann", name, 1, job.tenant))
        lines += [line.text for line in (await rig.executor.read_log(key, rank)).lines]
    assert job.phase == "finished", lines
    return lines


async def served_and_gone(rig: SandboxRig) -> None:
    """Have an app answer that needs a package of the environment, which stays as long as the app does."""
    asked = AppCreate(
        name="hello",
        model_name="",
        command=f"python -c {shlex.quote(APP)}",
        env_name="tools",
        cpu=0.5,
        ram=512,
    )
    with pytest.raises(Refused, match="environment other does not exist"):
        await rig.platform.apps.deploy(SYSTEM, "ann", msgspec.structs.replace(asked, env_name="other"))
    made = await rig.platform.apps.deploy(SYSTEM, "ann", asked)
    assert made.env_name == "tools"

    async def answers() -> bool:
        found = await rig.platform.apps.get(SYSTEM, "ann", "hello")
        assert found.phase != "error", (str(found.message), found.tail)
        return found.phase == "running"

    await until(answers, what="the app to answer")
    with pytest.raises(Refused, match="environment tools is used by app hello of ann"):
        await delete(rig)
    await until(lambda: rig.platform.apps.remove("ann"), what="the app to be gone")


async def test_it_is_resolved_installed_and_seen_by_the_ranks_of_jobs(tmp_path: Path) -> None:
    rig = SandboxRig(tmp_path)

    async with running_rig(rig):
        made = await create(rig, requirements="iniconfig>=2  # small\n")
        assert (made.state, made.packages, made.size) == ("creating", {}, 0)
        ready = await at_rest(rig)
        assert (ready.state, list(ready.packages)) == ("ready", ["iniconfig"]), str(ready.message)
        found = await detail(rig)
        assert found.requirements == "iniconfig>=2\n"
        assert "--hash=sha256:" in found.lock
        assert "iniconfig" in found.log
        held = await asyncio.to_thread(rig.held)
        assert held.rom == ready.size > 1000

        owners = await asyncio.to_thread(
            lambda: {os.lstat(path).st_uid for path in (rig.root / "environments").rglob("*")}
        )
        assert owners == {os.geteuid()}

        lines = await ran(rig, "one", PROGRAM, env_name="tools")
        assert lines == [
            "iniconfig True True",
            "python True True",
            "base False mlp",
            "compiled True",
            "written Read-only file system",
        ]
        job = await rig.platform.jobs.get(SYSTEM, "ann", "one")
        assert (job.env_name, job.env_lock) == ("tools", ready.lock)
        run = await rig.platform.runs.get(SYSTEM, "ann", "one")
        assert (run.env_name, run.env_lock) == ("tools", ready.lock)

        sums = await ran(rig, "two", MPI, workers=2, runtime="mpi", env_name="tools")
        assert sums == ["sum 3 True"] * 2

        await served_and_gone(rig)

        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "one")
        assert (again.env_name, again.env_lock) == ("tools", ready.lock)
        await rig.until("one", "finished")

        await create(rig, "same", "iniconfig >= 2")
        same = await at_rest(rig, "same")
        assert (same.state, same.lock, same.shared_with, same.size) == (
            "ready",
            ready.lock,
            ["tools"],
            ready.size,
        )
        assert (await asyncio.to_thread(rig.held)).rom >= ready.size

        kernels = rig.root / "environments/default/.kernels/kernels"
        assert await asyncio.to_thread(lambda: sorted(p.name for p in kernels.iterdir())) == [
            "mlp-env-same",
            "mlp-env-tools",
        ]
        await delete(rig)
        await gone(rig)
        assert await asyncio.to_thread(lambda: [p.name for p in kernels.iterdir()]) == ["mlp-env-same"]
        assert len(await asyncio.to_thread(left, rig)) == 1
        await delete(rig, "same")
        await gone(rig, "same")
        assert await asyncio.to_thread(left, rig) == []

        await create(rig, "never", "iniconfig==9999")
        never = await at_rest(rig, "never")
        assert never.state == "error"
        assert "no version of iniconfig==9999" in str(never.message)
        assert await asyncio.to_thread(left, rig) == []
        assert not await asyncio.to_thread(lambda: list((rig.root / "environments").rglob("*.txt")))
