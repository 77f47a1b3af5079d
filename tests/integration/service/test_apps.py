"""Apps in real sandboxes: a model is served, replicas that end are followed by others, and nothing is left when one is deleted."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from mlp_api.apps.apps import AppScale
from mlp_api.stored.models import ModelCreate
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub import sandbox
from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.apps.connecting import connect
from support.files.model_files import FORMATS
from support.rigs.app_rig import door, running_apps
from support.waiting import until


def infer(where: str, values: list[float], *, binary: bool, model: str = "line") -> list[float]:
    import tritonclient.http as triton

    client = triton.InferenceServerClient(where, network_timeout=60.0, connection_timeout=60.0)
    try:
        rows = np.array(values).reshape(-1, 1)
        given = triton.InferInput("input", list(rows.shape), "FP64")
        given.set_data_from_numpy(rows, binary_data=binary)
        wanted = triton.InferRequestedOutput("predict", binary_data=binary)
        answer = client.infer(model, [given], outputs=[wanted]).as_numpy("predict")
        return [round(float(value), 6) for value in answer]
    finally:
        client.close()


async def says(address: str, path: str = "/") -> str:
    reader, writer = await connect(address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n".encode())
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


async def test_a_model_is_served_killed_started_again_and_deleted_without_a_trace(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        await rig.model()
        made = await rig.deploy()
        assert (made.port, made.url, made.model_name) == (31_000, "/services/mlp/apps/ann/line/", "line@1")
        assert made.address == "http://hub.test/services/mlp/apps/ann/line/"
        first = await rig.endpoint(lambda e: bool(e.replicas))
        assert (first.user, first.tenant, first.version) == ("ann", "default", 1)
        async with door(first.replicas[0]) as where:
            for binary in (True, False):
                assert await asyncio.to_thread(infer, where, [3.0, 4.0], binary=binary) == [7.0, 9.0]
        running = await rig.app(lambda a: a.phase == "running")
        assert (running.ready, running.wanted, str(running.message)) == (1, 1, "")
        assert (await asyncio.to_thread(rig.held)).cpu == 500
        assert await rig.platform.jobs.list(SYSTEM, "ann") == ([], None)  # what people see is the app
        queued = await rig.platform.cluster_queue.entries()
        assert [(one.kind, one.name) for one in queued] == [("app", "line")]
        with pytest.raises(Refused) as refused:
            await rig.platform.models.delete(SYSTEM, "ann", "line", actor="ann")
        assert refused.value.reason is Reason.WRONG_STATE

        (attempt,) = await rig.executor.known()
        pid = (await asyncio.to_thread(sandbox.inspect, f"{rig.root}/jobs-run/{attempt}")).child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        second = await rig.endpoint(lambda e: bool(e.replicas) and e.replicas != first.replicas)
        async with door(second.replicas[0]) as where:
            assert await asyncio.to_thread(infer, where, [5.0], binary=True) == [11.0]

        await rig.platform.apps.delete(SYSTEM, "ann", "line", actor="ann")
        await rig.gone()
        assert await rig.executor.known() == []
        assert (await asyncio.to_thread(rig.held)).cpu == 0
        assert rig.platform.apps.endpoints.now() == {}
        assert not list((rig.directories.jobs / "ann").iterdir())
        assert (await rig.deploy()).port == 31_000  # it was given back


async def test_a_hub_that_restarts_finds_its_apps_and_asks_them_again(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        await rig.model()
        await rig.deploy()
        before = await rig.endpoint(lambda e: bool(e.replicas))
        await rig.restart()
        after = await rig.endpoint(lambda e: bool(e.replicas))
        assert after.replicas == before.replicas


async def test_a_new_version_answers_before_the_old_one_goes(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        await rig.model()
        await rig.model()
        await rig.deploy(model="line@1")
        old = await rig.endpoint(lambda e: bool(e.replicas))
        seen: list[tuple[str, ...]] = []
        rig.platform.apps.endpoints.listen(lambda _, e: seen.append(() if e is None else e.replicas))
        await rig.deploy(model="line@2", replace=True)
        new = await rig.endpoint(lambda e: bool(e.replicas) and old.replicas[0] not in e.replicas)
        assert new.version == 2
        assert all(seen), "at some moment nothing answered"
        async with door(old.replicas[0]) as where:  # who was told of it a moment ago is answered still
            assert await asyncio.to_thread(infer, where, [3.0], binary=True) == [7.0]
        done = await rig.app(lambda a: len(a.running) == 1)
        assert (done.generation, done.phase) == (2, "running")


async def test_a_command_is_an_app_and_its_replicas_follow_what_is_wanted(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        await rig.model()
        command = 'cd /model && exec python -m http.server "$PORT" --bind 127.0.0.1'
        await rig.deploy("files", command=command, command_port=9000)
        found = await rig.endpoint(lambda e: bool(e.replicas), "files")
        assert "line.joblib" in await says(found.replicas[0])
        await rig.platform.apps.scale(SYSTEM, "ann", "files", AppScale(replicas=2))
        await rig.endpoint(lambda e: len(e.replicas) == 2, "files")
        (uid,) = rig.platform.apps.endpoints.now()
        await rig.platform.apps.scale(
            SYSTEM, "ann", "files", AppScale(replicas="1:3", idle=10, concurrency=2)
        )
        use = AppUse(0.0, requests=1, last=1.0)
        await rig.platform.app_usage.store_report([("app", uid, "r", use)], [(uid, 5.0)])
        busy = await rig.endpoint(lambda e: len(e.replicas) == 3, "files")
        shown = await rig.platform.apps.get(SYSTEM, "ann", "files")
        assert (shown.wanted, shown.under_way, shown.replicas) == (3, 5.0, "1:3")
        assert (await asyncio.to_thread(rig.held)).cpu == 1500  # each takes of the quota as a job does
        rig.ahead += 60
        await rig.platform.apps.wake(uid)  # somebody asks, now and then
        rig.platform.app_worker.look_at(uid)
        quiet = await rig.endpoint(lambda e: len(e.replicas) == 1, "files")
        assert set(quiet.replicas) < set(busy.replicas)
        await rig.platform.apps.scale(SYSTEM, "ann", "files", AppScale(replicas="0:1", idle=10))
        rig.ahead += 60
        asleep = await rig.app(lambda a: a.wanted == 0 and not a.running, "files")
        assert asleep.phase == "waiting"
        assert "sleeps" in str(asleep.message)
        await rig.platform.apps.wake(asleep.uid)
        again = await rig.endpoint(lambda e: bool(e.replicas), "files")
        assert "200 OK" in await says(again.replicas[0])


async def test_an_invalid_model_and_an_endless_fork_are_reported_with_their_cause(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:

        def no_model(directory: Path) -> None:
            (directory / "notes.txt").write_text("not a model")

        await rig.model("notes", no_model)
        await rig.deploy("notes", "notes")
        bomb = "import os\nwhile True: os.fork()"
        await rig.deploy("bomb", "", command=f"python -c '{bomb}'", ram=256)
        told = await rig.app(lambda a: a.state == "error", "notes")
        assert "notes.txt" in told.tail
        assert "known are MLmodel" in told.tail
        assert told.failures >= 2
        overview = await rig.platform.overview.now()
        found = {one.name: one for one in overview.app_troubles}
        assert (found["notes"].user, str(found["notes"].message)) == ("ann", str(told.message))
        assert overview.apps_failing == len(found)
        assert "a replica ended" in str(told.message)
        assert "no model that can be served is in it, but notes.txt" in str(told.message)
        bombed = await rig.app(lambda a: a.failures >= 1, "bomb")
        assert bombed.ready == 0
        for name in ("notes", "bomb"):
            await rig.platform.apps.delete(SYSTEM, "ann", name, actor="ann")
            await rig.gone(name)
        assert (await asyncio.to_thread(rig.held)).cpu == 0


async def test_a_command_that_never_listens_is_ended_with_the_reason(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        rig.platform.app_worker.probing._patience_s = 1.0
        await rig.deploy("mute", "", command="sleep 600", command_port=9001)
        told = await rig.app(lambda a: a.failures >= 1, "mute")
        assert "nothing answered on port 9001" in str(told.message)


async def test_an_app_waits_for_room_as_a_job_does_and_says_why(tmp_path: Path) -> None:
    async with running_apps(tmp_path, room=Resources(1500, 0, 8000, 0)) as rig:
        job = await rig.submit("long", code="import time; time.sleep(600)", cpu=1.0, ram=100)
        await rig.until("long", "running")
        await rig.model()
        waits = await rig.deploy(cpu=1.0)
        told = await rig.app(lambda a: bool(a.running) and a.running[0].reason is not None)
        assert told.phase in ("starting", "waiting")
        assert told.uid == waits.uid
        assert told.running[0].position == 1
        assert str(told.running[0].message)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "long")
        await rig.app(lambda a: a.phase == "running")
        assert job.name == "long"


async def test_the_apps_of_a_leaving_user_are_removed(tmp_path: Path) -> None:
    async with running_apps(tmp_path) as rig:
        await rig.model()
        await rig.deploy()
        await rig.endpoint(lambda e: bool(e.replicas))
        await until(lambda: rig.platform.apps.remove("ann"), what="apps to be gone")
        assert await rig.executor.known() == []


async def test_an_app_of_a_former_member_ends_with_the_reason_even_where_jobs_may_finish(
    tmp_path: Path,
) -> None:
    async with running_apps(tmp_path) as rig:
        tenants = rig.platform.tenants
        await tenants.create(TenantCreate(name="red", leavers="finish"))
        await tenants.set_member("red", "ann")
        await rig.submit("long", code="import time; time.sleep(600)", tenant="red", cpu=0.5, ram=100)
        await rig.until("long", "running")
        await rig.deploy(
            "web", "", command='exec python -m http.server "$PORT" --bind 127.0.0.1', tenant="red"
        )
        await rig.endpoint(lambda e: bool(e.replicas), "web")
        await tenants.remove_member("red", "ann", actor="rita")
        told = await rig.app(lambda a: a.phase == "waiting" and not a.running, "web")
        assert "ann is no longer a member of team red, so this app cannot run there any more" in str(
            told.message
        )
        await rig.endpoint(lambda e: not e.replicas, "web")
        assert (await rig.until("long", "running")).phase == "running"
        await rig.platform.jobs.cancel(SYSTEM, "ann", "long")
        await rig.until("long", "cancelled")
        await rig.restart()
        told = await rig.app(lambda a: a.phase == "waiting", "web")
        assert not told.running, "nothing starts it anew"


async def test_replicas_end_for_a_move_of_their_tenants_files_and_come_back(tmp_path: Path) -> None:
    async with running_apps(tmp_path / "hub") as rig:
        await rig.model()
        await rig.deploy()
        first = await rig.endpoint(lambda e: bool(e.replicas))
        root = tmp_path / "volume"
        await rig.platform.tenants.update(
            "default", TenantUpdate(isolation="dedicated", data_root=str(root)), actor="admin"
        )

        async def moved() -> bool:
            found = (await rig.platform.tenants.get("default")).move
            assert found is None or found.state != "failed", str(found.message)
            return found is not None and found.state == "done"

        await until(moved, what="the files to be moved")
        second = await rig.endpoint(lambda e: bool(e.replicas) and e.replicas != first.replicas)
        async with door(second.replicas[0]) as where:
            assert await asyncio.to_thread(infer, where, [5.0], binary=True) == [11.0]
        assert (root / "models" / "ann").is_dir()
        assert (await asyncio.to_thread(rig.held)).cpu == 500


async def test_weights_without_a_program_are_deployed_with_a_command_alone(tmp_path: Path) -> None:
    def weights(place: Path) -> None:
        for name, data in FORMATS["safetensors"].items():
            (place / name).write_bytes(data)

    async with running_apps(tmp_path) as rig:
        place = rig.directories.homes / "ann" / "line"
        await asyncio.to_thread(place.mkdir, parents=True)
        await asyncio.to_thread(weights, place)
        await rig.platform.models.register(SYSTEM, "ann", ModelCreate(name="line", src="home/line"))

        async def ready() -> bool:
            return (await rig.platform.models.get(SYSTEM, "ann", "line")).state == "ready"

        await until(ready, what="the weights to be copied")
        with pytest.raises(Refused) as refused:
            await rig.deploy()
        assert refused.value.reason is Reason.INVALID
        assert "model line@1 is model.safetensors: weights without a program" in str(refused.value.message)
        assert await rig.platform.apps.list(SYSTEM, "ann") == ([], None)
        await rig.deploy(command='exec python -m http.server "$PORT" --bind 127.0.0.1')
        await rig.app(lambda a: a.phase == "running")
