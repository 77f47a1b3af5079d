"""Apps in pods: a replica answers who knows its key, alone; and a person's way from a dataset to an app that answers, and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import joblib
import numpy as np
import pytest
import tritonclient.http as triton
from sklearn.linear_model import LinearRegression

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.sandbox import open_shelf
from mlp_hub.service.apps.probing import ReplicaProbe, answers_now
from mlp_hub.service.apps.replicas import PROGRAM
from support.cluster.installs import InACluster
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab
from support.cluster.kube_lab import until as until_phase
from support.hubs.live_hub import BIN, LiveHub
from support.stores.object_stores import KEYS, real_store
from support.waiting import PATIENCE_S, until, wait_for

SERVES = Resources(cpu=500, ram=1024)
TRAINS = """
import csv, joblib, mlp, os
from mpi4py import MPI
from sklearn.linear_model import LinearRegression
rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
rows = [tuple(map(float, row)) for row in csv.reader(open(mlp.data_path("line") / "points.csv"))]
mine = rows[rank::size]
whole = MPI.COMM_WORLD.gather(mine)
if rank == 0:
    xs, ys = zip(*sorted(sum(whole, [])))
    model = LinearRegression().fit([[x] for x in xs], ys)
    mlp.report(loss=float(abs(model.predict([[x] for x in xs]) - ys).max()))
    os.makedirs("/workspace/ckpt/best", exist_ok=True)
    joblib.dump(model, "/workspace/ckpt/best/model.joblib")
print("rank", rank, "of", size, "had", len(mine))
print("names", sorted(p.name for p in mlp.data_path("names").rglob("*") if p.is_file()))
"""
PULLS = """
import os
from pathlib import Path
os.environ["MLP_TOKEN"] = Path("~/token").expanduser().read_text()
import mlp
print("at", os.environ["MLP_DATA_URL"].rpartition("/")[2])
mlp.data.pull("line", "/tmp/got")
print("pulled", sorted(os.listdir("/tmp/got")))
Path("/tmp/made").mkdir()
Path("/tmp/made/answer").write_text("42")
mlp.data.push("/tmp/made", "made")
"""


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


def ready(address: str) -> ReplicaProbe:
    return ReplicaProbe(address, "/v2/health/ready", any_answer=False)


async def test_a_replica_is_a_pod_that_answers_who_knows_its_key_and_nobody_else(lab: KubeLab) -> None:
    with open_shelf(lab.directories.root, "models", "ann", 0) as shelf, shelf.inside("line@1", make=0o750):
        joblib.dump(
            LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]),
            lab.directories.root / "models/ann/line@1/line.joblib",
        )

    async with lab.executing() as executor:
        spec = lab.spec(
            PROGRAM,
            args=("--name", "line"),
            env={"MLP_APP": "line"},
            per_worker=SERVES,
            listens=True,
            model="line@1",
            image="mlp.local/notebook:dev",
        )
        await executor.start(spec)
        await until_phase(executor, spec.attempt, AttemptPhase.RUNNING)

        async def answers() -> str:
            found = executor.address(spec.attempt)
            return found if found and await answers_now(ready(found)) else ""

        address: str = await until(answers, what="the replica to answer", every=0.1)
        key, _, place = address.partition("@")
        assert not await answers_now(ready(place))
        assert not await answers_now(ready(f"{'x' * len(key)}@{place}"))
        [pod] = lab.kube.get("pods", "-n", lab.namespace, "-l", "mlp-hub/app=line")["items"]
        assert key not in json.dumps(pod)
        assert key not in json.dumps(lab.kube.get("configmaps", "-n", lab.namespace))

        again = lab.executor()  # a hub that was killed knows it by what is in the cluster
        try:
            await again.open()
            assert again.address(spec.attempt) == address
        finally:
            await again.close()

        name = pod["metadata"]["name"]
        await asyncio.to_thread(lab, "delete", "pod", name, "--wait=false", "--now")
        await until_phase(executor, spec.attempt, AttemptPhase.LOST)
        assert executor.address(spec.attempt) == ""


class Person:
    """Somebody with the `mlp` command, outside the cluster."""

    def __init__(self, hub: LiveHub, name: str, home: Path) -> None:
        self.hub, self.name, self.home = hub, name, home
        home.mkdir()
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "MLP_API_URL": hub.url,
            "MLP_TOKEN": hub.token(name),
            "LANG": "C.UTF-8",
        }

    def __call__(self, *words: str) -> str:
        """Run `mlp WORDS`."""
        done = subprocess.run(
            [str(BIN / "mlp"), *words],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"mlp {' '.join(words)}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def app(self, name: str) -> dict[str, Any]:
        return self.hub.ok("GET", f"/users/{self.name}/apps/{name}", self.name)

    def running(self, name: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.app(name)
            assert found["state"] != "error", found
            return found if found["phase"] == "running" else None

        return wait_for(look, message=f"for app {name} to run")


def held(hub: LiveHub) -> dict[str, Any]:
    found = hub.ok("GET", "/tenants/default")
    return {key: found[f"{key}_inuse"] for key in ("cpu", "ram", "gpu", "rom")}


def infer(hub: LiveHub, key: str, values: list[float]) -> list[float]:
    """Ask as a client of Triton's does, by the gateway."""
    client = triton.InferenceServerClient(
        f"127.0.0.1:{hub.port}/services/mlp/apps/ann/line",
        network_timeout=PATIENCE_S,
        connection_timeout=PATIENCE_S,
    )
    try:
        rows = np.array(values).reshape(-1, 1)
        given = triton.InferInput("input", list(rows.shape), "FP64")
        given.set_data_from_numpy(rows)
        headers = {"Authorization": f"Bearer {key}"}
        answer = client.infer("line", [given], headers=headers).as_numpy("predict")
        return [round(float(value), 6) for value in answer]
    finally:
        client.close()


@pytest.mark.whole
def test_from_a_dataset_by_mpi_and_a_model_to_an_app_and_back_to_nothing(kube: Kube, tmp_path: Path) -> None:
    with (
        real_store() as store,
        InACluster(kube).hub(tmp_path / "home", MLP_DATA_ENDPOINTS=store.host) as hub,
    ):
        store.make("lab")
        for name in ("x", "y", "deep/z"):
            store.put("lab", f"names/{name}", b"of the store")
        hub.add_user("ann", "default")
        before = held(hub)
        ann = Person(hub, "ann", tmp_path / "laptop")
        (ann.home / "points").mkdir()
        rows = "".join(f"{x},{2 * x + 1}\n" for x in range(100))
        (ann.home / "points" / "points.csv").write_text(rows)
        (ann.home / "train.py").write_text(TRAINS)

        ann("data", "push", "points", "line")
        hub.ok("PUT", "/users/ann/secrets/lab", "ann", {"keys": KEYS})
        ann("data", "add", "s3://lab/names", "names", "--mode", "read-through", "--secret", "lab", "--endpoint", store.url)  # fmt: skip
        wait_for(
            lambda: hub.ok("GET", "/users/ann/datasets/names", "ann")["state"] == "ready",
            message="for the source to be looked at",
        )
        code = (ann.home / "train.py").read_text()
        data = ["line", "ann/names/deep"]
        hub.submit(
            "ann", "fit", code, runtime="mpi", workers=2, data=data, cpu=0.5, ram=512, tenant="default"
        )
        hub.wait_phase("ann", "fit", "finished")
        said = (hub.log("ann", "fit", 0) + hub.log("ann", "fit", 1)).splitlines()
        assert {f"rank {n} of 2 had 50" for n in (0, 1)} <= set(said)
        assert said.count("names ['z']") == 2, "of what is read through each rank has what the job named"
        ann("models", "register", "line", "jobs/fit/ckpt/best")
        wait_for(
            lambda: hub.ok("GET", "/users/ann/models/line", "ann")["state"] == "ready",
            message="for the model to be there",
        )
        ann("apps", "deploy", "line", "--cpu", "0.5", "--ram", "1024")
        ann.running("line")

        key = hub.ok("POST", "/users/ann/apps/line/keys", "ann", {"name": "curl"})["key"]
        assert infer(hub, key, [3.0, 4.0]) == [7.0, 9.0]
        at = f"{hub.url}/services/mlp/apps/ann/line/v2/models/line"
        curl = ["curl", "-sS", "--fail", "-H", f"X-API-Key: {key}", at]
        assert json.loads(subprocess.run(curl, capture_output=True, check=True).stdout)["name"] == "line"
        assert httpx.get(at).status_code == 401
        usage = hub.ok("GET", "/users/ann/apps/line/usage", "ann")
        assert usage["requests"] == sum(usage["latency"]) == 2

        [pod] = kube.get("pods", "-A", "-l", "mlp-hub/app=line,mlp-hub/user=ann")["items"]
        kube("delete", "pod", pod["metadata"]["name"], "-n", pod["metadata"]["namespace"], "--now")
        wait_for(lambda: len(ann.app("line")["running"]) == 1 and ann.running("line"))
        wait_for(lambda: answered(hub, key), message="for the replica that followed to answer")
        proxy, service = hub.kill("proxy"), hub.kill("service")
        hub.wait_back("proxy", proxy)
        hub.wait_back("service", service)
        wait_for(lambda: answered(hub, key), message="for the app to answer a hub that began anew")

        with asked_all_the_time(hub, key) as answers:
            ann("apps", "deploy", "line", "--cpu", "0.3", "--ram", "768", "--replicas", "2", "--replace")
            wait_for(lambda: two_of_the_new(ann.app("line")), message="for both of the new replicas alone")
        assert len(answers) > 1
        assert set(answers) == {""}
        ann("apps", "scale", "line", "0:1", "--idle", "10s")
        wait_for(
            lambda: not kube.get("pods", "-A", "-l", "mlp-hub/app=line")["items"], message="for its sleep"
        )
        assert ann.app("line")["phase"] == "waiting"
        assert infer(hub, key, [3.0]) == [7.0], "a request wakes it"

        (hub.homes / "ann" / "token").write_text(hub.token("ann"))
        os.chown(hub.homes / "ann" / "token", *_owner(hub.homes / "ann"))
        hub.submit("ann", "pulls", PULLS, cpu=0.2, ram=512)
        hub.wait_phase("ann", "pulls", "finished")
        assert "pulled ['points.csv']" in hub.log("ann", "pulls")
        ann("data", "pull", "made", "made")
        assert (ann.home / "made" / "answer").read_text() == "42"

        ann("apps", "rm", "line")
        wait_for(
            lambda: hub.call("GET", "/users/ann/apps/line", "ann").json().get("reason") == "NotFound",
            message="for the app to be gone",
        )
        ann("models", "rm", "line")
        for name in ("line", "made", "names"):
            ann("data", "rm", name)
        for job in ("fit", "pulls"):
            hub.ok("DELETE", f"/users/ann/jobs/{job}", "ann")
        (hub.homes / "ann" / "token").unlink()
        wait_for(lambda: held(hub)["cpu"] == before["cpu"], message="for nothing to be held")
        assert held(hub)["ram"] == before["ram"]


def answered(hub: LiveHub, key: str) -> bool:
    try:
        return infer(hub, key, [5.0]) == [11.0]
    except Exception:  # noqa: BLE001 - what is in between says so in many ways
        return False


@contextlib.contextmanager
def asked_all_the_time(hub: LiveHub, key: str) -> Iterator[list[str]]:
    """Have somebody ask one request after the other; yields what went wrong with each, or nothing."""
    over, answers = threading.Event(), list[str]()

    def ask() -> None:
        while not over.wait(0.05):
            try:
                answers.append("" if infer(hub, key, [5.0]) == [11.0] else "wrong")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test looks for
                answers.append(str(error) or repr(error))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def two_of_the_new(app: dict[str, Any]) -> bool:
    return bool(app["generation"] == 2 and app["ready"] == len(app["running"]) == 2)


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid
