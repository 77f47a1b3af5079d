"""Metric points in a real MLflow: one run for each job, whatever is killed and whatever programs report."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.outbound.mlflow_points import LAST_MS, key_of
from mlp_hub.service.config import ExportPolicy
from mlp_hub.service.exports import exporter
from mlp_hub.service.exports.exporter import PointExporter
from support.monitoring.mlflow_server import MlflowServer, mlflow_server
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig
from support.waiting import until

HERE = "mlp-hub/default"
LARGEST = 1.7976931348623157e308
"""What MLflow stores for infinity."""


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as found:
        yield found


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "RETRY_MOST_S", 0.05)
    monkeypatch.setattr(PointExporter.__init__, "__kwdefaults__", {"gather_s": 0.01, "retry_s": 0.01})


@contextlib.asynccontextmanager
async def rig_of(root: Path, url: str) -> AsyncIterator[Rig]:
    rig = Rig(root, policy=replace(FAST, exports=(ExportPolicy("mlflow", url),)))
    await rig.start()
    try:
        yield rig
    finally:
        await rig.close()


async def running(rig: Rig, name: str, **more: Any) -> str:
    await rig.submit(name, sim={"DURATION": 300}, **more)
    await rig.until(name, "running")
    job = await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", name))
    assert job is not None
    return job.uid


async def report(rig: Rig, name: str, points: list[MetricPoint], source: str = "0.0.a") -> None:
    await rig.platform.metrics.append(SYSTEM, "ann", name, MetricBatch(source=source, points=points))


def losses(first: int, last: int) -> list[MetricPoint]:
    return [
        MetricPoint(n=n, t=1_700_000_000.0 + n, v={"loss": n / 8, "step": n * 10})
        for n in range(first, last + 1)
    ]


async def sent(rig: Rig, points: int, dropped: int = 0) -> None:
    wanted = {"sent": float(points), "dropped": float(dropped)}

    async def look() -> bool:
        (one,) = rig.platform.exports.running
        found = {labels[1]: n for labels, n in rig.platform.monitoring.events.exported.samples()}
        return found == wanted and one.behind == 0

    await until(look, what=f"{wanted}")


async def status(mlflow: MlflowServer, uid: str, wanted: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        (run,) = mlflow.runs(HERE, uid)
        return run if run["info"]["status"] == wanted else None

    found: dict[str, Any] = await until(look, what=wanted)
    return found


async def test_a_job_is_a_run_with_its_parameters_metrics_and_end(
    tmp_path: Path, mlflow: MlflowServer
) -> None:
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "digits", params={"lr": 0.1, "name": "a" * 600, "bad%key": True})
        await report(rig, "digits", losses(1, 3))
        await report(rig, "digits", [MetricPoint(n=1, t=5.0, v={"loss": 9.0})], source="2.0.b")
        await sent(rig, 4)
        (run,) = mlflow.runs(HERE, uid)
        info, data = run["info"], run["data"]
        assert (info["run_name"], info["user_id"], info["status"]) == ("digits", "ann", "RUNNING")
        tags = {tag["key"]: tag["value"] for tag in data["tags"]}
        assert (tags["mlp.job"], tags["mlp.user"], tags["mlp.tenant"]) == (uid, "ann", "default")
        params = {param["key"]: param["value"] for param in data["params"]}
        assert params == {"lr": "0.1", "name": "a" * 497 + "...", key_of("bad%key"): "True"}
        second = 1_700_000_000_000
        assert mlflow.history(info["run_id"], "loss") == [
            (0.125, second + 1000, 10),
            (0.25, second + 2000, 20),
            (0.375, second + 3000, 30),
        ]
        assert mlflow.history(info["run_id"], "rank-2/loss") == [(9.0, 5000, 4)]
        job = await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", "digits"))
        assert job is not None
        rig.end(job)
        await rig.until("digits", "finished")
        assert (await status(mlflow, uid, "FINISHED"))["info"]["end_time"] > 0


async def test_a_cancelled_job_is_a_killed_run(tmp_path: Path, mlflow: MlflowServer) -> None:
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "cancelled")
        await report(rig, "cancelled", losses(1, 1))
        await sent(rig, 1)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "cancelled")
        await status(mlflow, uid, "KILLED")


async def test_a_kill_makes_no_second_run_and_doubles_no_value(tmp_path: Path, mlflow: MlflowServer) -> None:
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "killed")
        await report(rig, "killed", losses(1, 20))
        await sent(rig, 20)
        # as if it were killed before it stored how far it is
        await rig.db.write(
            lambda tx: tx.connection.exec_driver_sql("UPDATE point_export SET seq = 0, target = ''")
        )
        dead = rig.platform.exports.running[0]
        rig.crash()
        await dead._sender.stop()
        await rig.start()
        await sent(rig, 20)
        (run,) = mlflow.runs(HERE, uid)
        assert [step for *_, step in mlflow.history(run["info"]["run_id"], "loss")] == list(
            range(10, 210, 10)
        )
        # the end of a job that reports no more after the restart arrives too
        await rig.platform.jobs.cancel(SYSTEM, "ann", "killed")
        await status(mlflow, uid, "KILLED")


async def test_hostile_names_times_and_values_are_taken(tmp_path: Path, mlflow: MlflowServer) -> None:
    names = [
        "../../etc",
        "/abs",
        "a//b",
        ".",
        "a%b",
        "a&b",
        "a:b",
        "x\r\ny",
        "\x00",
        "é\u202e",
        " ",
        "val/acc",
        "n" * 100,
    ]
    values: dict[str, float | None] = dict.fromkeys(names, 1.0)
    odd: dict[str, float | None] = {
        "nan": math.nan,
        "inf": math.inf,
        "low": -math.inf,
        "step": math.nan,
        "big": 2.0**70,
    }
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "hostile")
        times = (-5.0, 1e300, math.inf, math.nan)
        await report(rig, "hostile", [MetricPoint(n=n, t=t, v=values) for n, t in enumerate(times, 1)])
        await report(rig, "hostile", [MetricPoint(n=5, t=1.0, v=odd)])
        await report(rig, "hostile", [MetricPoint(n=6, t=1.0, v={"far": 1.0, "step": 1e300})])
        await sent(rig, 6)
        (run,) = mlflow.runs(HERE, uid)
        of = run["info"]["run_id"]
        found = {one["key"] for one in run["data"]["metrics"]}
        assert found == {key_of(name) for name in (*names, *odd, "far")}
        assert len(found) == len(names) + len(odd) + 1  # no two became one
        assert [at for _, at, _ in mlflow.history(of, "val/acc")] == [0, LAST_MS, 0, 0]
        assert mlflow.history(of, "nan") == [("NaN", 1000, 5)]
        assert mlflow.history(of, "inf") == [(LARGEST, 1000, 5)]
        assert mlflow.history(of, "low") == [(-LARGEST, 1000, 5)]
        assert mlflow.history(of, "far") == [(1.0, 1000, 6)]


async def test_points_of_many_values_are_sent_in_batches_that_mlflow_takes(
    tmp_path: Path, mlflow: MlflowServer
) -> None:
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "wide")
        v = {f"m{n}": float(n) for n in range(100)}
        await report(rig, "wide", [MetricPoint(n=n, t=float(n), v=v) for n in range(1, 26)])
        await sent(rig, 25)
        (run,) = mlflow.runs(HERE, uid)
        assert len(mlflow.history(run["info"]["run_id"], "m99")) == 25


async def test_a_run_that_people_delete_in_mlflow_stays_deleted_and_stops_no_other_job(
    tmp_path: Path, mlflow: MlflowServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_of(tmp_path, mlflow.url) as rig:
        uid = await running(rig, "deleted")
        await report(rig, "deleted", losses(1, 2))
        await sent(rig, 2)
        (run,) = mlflow.runs(HERE, uid)
        mlflow.ask("runs/delete", {"run_id": run["info"]["run_id"]})
        await report(rig, "deleted", losses(3, 5))
        await sent(rig, 2, dropped=3)
        assert mlflow.runs(HERE, uid) == []
        assert "400 INVALID_PARAMETER_VALUE" in caplog.text
        other = await running(rig, "other")
        await report(rig, "other", losses(1, 2))
        await sent(rig, 4, dropped=3)
        assert len(mlflow.runs(HERE, other)) == 1


async def test_a_server_that_is_away_or_is_not_mlflow_costs_no_point(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with caplog.at_level(logging.DEBUG):
        async with rig_of(tmp_path / "rig", f"http://127.0.0.1:{port}") as rig:
            uid = await running(rig, "away")
            await report(rig, "away", losses(1, 5))

            async def told() -> bool:
                return [p.reason for p in await rig.platform.problems.now()] == ["PointExport"]

            await until(told, what="the problem")
            with mlflow_server(tmp_path / "mlflow", port) as server:
                await sent(rig, 5)
                assert len(server.runs(HERE, uid)) == 1
                assert await rig.platform.problems.now() == []


def test_a_changed_name_ends_with_a_hash_of_itself() -> None:
    assert key_of("val/acc") == "val/acc"
    assert key_of("a%b") == f"a_b-{hashlib.sha256(b'a%b').hexdigest()[:8]}"
    assert key_of("a%b") != key_of("a&b")
