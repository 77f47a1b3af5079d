"""What `mlp` has can be awaited, all of it, and both are typed for who uses them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import subprocess
import sys

import pytest

import mlp
from mlp import aio
from mlp.client.rest import Client
from mlp.errors import JobTimeout, Refused
from mlp.handles.job import Job
from mlp.handles.sweeping import Sweep
from support.clients.mlp_stand_in import FINISHED, StandIn, job_record
from support.clients.sweep_shapes import sweep as sweep_of

BY_ITS_OWN = {"wait", "result", "check", "late", "watch"}
"""Methods of a job that are written for asyncio, or are of no use there: a notebook shows a job, a program does not."""


@pytest.fixture
def world(monkeypatch, tmp_path):
    with StandIn() as stand_in:
        for name in ("JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN", "MLP_JOB", "MLP_USER", "MLP_JOB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("mlp.submitting.provenance.told", dict)  # where tests run is nobody's matter
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name, value in stand_in.env().items():
            monkeypatch.setenv(name, value)
        yield stand_in


OF_THE_CLIENT = {
    "app_path",
    "checked",
    "dataset_path",
    "opened",
    "pages",
    "job_path",
    "model_path",
    "sweep_path",
    "told",
    "unreachable",
    "within",
}
"""What others here are made of."""


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_all_that_a_client_does_can_be_awaited():
    own = {name for name in public(Client) if not isinstance(vars(Client)[name], classmethod)} - OF_THE_CLIENT
    missing = sorted(own - public(aio.AsyncClient))
    assert not missing, f"{missing}: AsyncClient of mlp/aio needs a line for each, NAME = _asked(Client.NAME)"
    for name in own - {"user"}:
        there = getattr(aio.AsyncClient, name)
        assert inspect.iscoroutinefunction(there), name
        assert inspect.getdoc(there) == inspect.getdoc(getattr(Client, name)), name


def test_all_that_a_job_does_can_be_awaited():
    assert public(Job) - public(aio.AsyncJob) <= BY_ITS_OWN
    for name in ("refresh", "cancel", "suspend", "resume", "resubmit", "delete", "metrics", "logs", "why"):
        assert inspect.iscoroutinefunction(getattr(aio.AsyncJob, name)), name
    assert mlp.aio is aio


async def test_the_main_story_from_asyncio(world):
    job = await aio.submit(code="pass", name="digits", workers=2)
    assert (job.name, job.user, job.final) == ("digits", "ann", False)
    assert [one.name for one in await aio.jobs()] == ["digits"]
    assert (await aio.job("digits")).reference == job.reference
    with pytest.raises(Refused):
        await aio.job("nothing")
    client = aio.AsyncClient.from_env()
    assert await client.user() == "ann"
    assert (await client.job("digits"))["name"] == "digits"


async def test_many_are_awaited_together_and_a_wait_that_is_cancelled_ends(world):
    world.jobs["stays"] = job_record("stays", phase="running", state="running")
    world.jobs["done"] = job_record("done", **FINISHED)

    stays, done = await asyncio.gather(aio.job("stays"), aio.job("done"))
    waits = asyncio.ensure_future(stays.wait())
    assert (await done.wait()).phase == "finished"
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    with pytest.raises(JobTimeout, match="still"):
        await stays.wait(timeout=0)


USES = """
import asyncio
import contextlib
from typing import Any
import mlp
from mlp import aio

def now(job: mlp.Job) -> str:
    reveal_type(job.wait())
    reveal_type(mlp.job("a"))
    reveal_type(mlp.Client.from_env().jobs(tenant="red"))
    return job.phase

async def later() -> None:
    job = await aio.submit("train.py", workers=2)
    reveal_type(job)
    reveal_type(await job.cancel())
    reveal_type(await job.logs(rank=0))
    reveal_type(await aio.AsyncClient.from_env().jobs(tenant="red"))
    await job.logs(rank="x")
    mlp.job(3)
"""
REVEALED = [
    "mlp.handles.job.Job",
    "mlp.handles.job.Job",
    "list[dict[str, Any]]",
    "mlp.aio.AsyncJob",
    "mlp.aio.AsyncJob",
    "mlp.handles.job.Log",
    "list[dict[str, Any]]",
]


def test_a_type_checker_knows_both_and_finds_mistakes(tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "uses.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = done.stdout
    shown = [
        line.split('Revealed type is "')[1].rstrip('"') for line in found.splitlines() if "Revealed" in line
    ]
    shown = [kind.replace("builtins.", "") for kind in shown]
    assert shown == REVEALED, found + done.stderr
    errors = [line for line in found.splitlines() if ": error:" in line]
    assert len(errors) == 2, found
    assert all("arg-type" in line for line in errors), found


def test_sweeps_are_started_waited_for_and_steered(monkeypatch):
    asked = []

    class Service:
        within = staticmethod(contextlib.nullcontext)

        def start_sweep(self, body):
            asked.append(body)
            return sweep_of(body["name"], state="running")

        def sweep(self, name, user=None):
            asked.append(name)
            return sweep_of("search", state="finished")

        def act_sweep(self, verb, name, user=None, more=None):
            asked.append((verb, more))
            return sweep_of("search", state="running")

        def sweeps(self, **_):
            return [sweep_of("search")]

        def delete_sweep(self, name):
            asked.append(name)

    monkeypatch.setattr(Client, "from_env", classmethod(lambda cls: Service()))

    async def go():
        found = await aio.sweep(code="1", name="search", grid={"lr": [1, 2]}, wait=True)
        assert (found.name, found.state, found.ended) == ("search", "finished", True)
        assert not (await found.extend(trials=3)).ended
        assert [one.reference for one in await aio.sweeps()] == [found.reference]
        await (await aio.get_sweep("search")).delete()

    asyncio.run(go())
    assert asked[0]["grid"] == {"lr": [1, 2]}
    assert ("extend", {"trials": 3}) in asked
    with pytest.raises(TypeError, match="dry run"):
        asyncio.run(aio.sweep(code="1", dry_run=True))


def test_all_that_a_sweep_does_is_there():
    assert public(Sweep) - {"note", "title", "user", "snapshot", "watch"} <= public(aio.AsyncSweep)
