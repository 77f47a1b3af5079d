"""A client that a generator makes of the served OpenAPI document does the main story."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

BIN = Path(sys.executable).parent
TRAINS = (
    "import mlp, time\n"
    "for epoch in range(1, 4):\n"
    "    mlp.report(epoch=epoch, loss=1 / epoch, f1=epoch)\n"
    "mlp.flush()\n"
    "print('trained', flush=True)\n"
    "time.sleep(600)\n"
)
FITS = (
    "import joblib, mlp, os\n"
    "from sklearn.linear_model import LinearRegression\n"
    "x, y = (float(v) for v in (mlp.data_path('points') / 'two').read_text().split())\n"
    "line = LinearRegression().fit([[0.0], [x]], [1.0, y])\n"
    "joblib.dump(line, os.path.join(os.environ['MLP_CHECKPOINT_DIR'], 'model.joblib'))\n"
)


@pytest.fixture(scope="module")
def made(hub: LiveHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Make a client of the document that the hub serves; nothing of it may be left out."""
    root: Path = tmp_path_factory.mktemp("generated")
    document = root / "openapi.json"
    document.write_bytes(hub.http.get("/api/v1/openapi.json").content)
    (root / "config.yaml").write_text("post_hooks: []\n")
    command = ["generate", "--path", str(document), "--meta", "none", "--fail-on-warning"]
    done = subprocess.run(
        [
            str(BIN / "openapi-python-client"),
            *command,
            "--output-path",
            str(root / "made_client"),
            "--config",
            str(root / "config.yaml"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module("made_client")
    finally:
        sys.path.remove(str(root))
        for name in [n for n in sys.modules if n.partition(".")[0] == "made_client"]:
            del sys.modules[name]


def route(name: str) -> Any:
    """Import the module that the generator made of a route, `jobs.jobs_submit`."""
    return importlib.import_module(f"made_client.api.{name}")


def test_the_main_story_by_a_generated_client(hub: LiveHub, made: ModuleType) -> None:
    models = importlib.import_module("made_client.models")
    base = f"http://127.0.0.1:{hub.port}/api/v1"
    with made.AuthenticatedClient(
        base_url=base, token=hub.token("bob"), raise_on_unexpected_status=True, timeout=120
    ) as client:
        assert route("session.session_auth").sync(client=client) == "bob"
        create = models.JobCreate(name="digits", code=TRAINS, cpu=0.2, ram=200)
        job = route("jobs.jobs_submit").sync("bob", client=client, body=create)
        assert isinstance(job, models.Job)
        assert (job.name, job.run, job.tenant, job.code) == ("digits", 1, "default", TRAINS)
        why = route("jobs.jobs_why").sync("bob", "digits", client=client)
        assert isinstance(why, models.Why)

        def points() -> list[Any]:
            return list(route("metrics.metrics_points").sync("bob", "digits", client=client))

        wait_for(lambda: len(points()) == 3, message="for three points")
        assert [(p.epoch, p.loss, p.values["f1"]) for p in points()] == [
            (1, 1, 1),
            (2, 1 / 2, 2),
            (3, 1 / 3, 3),
        ]
        wait_for(
            lambda: "trained" in route("jobs.jobs_logs").sync("bob", "digits", client=client),
            message="for the log",
        )
        running = route("jobs.jobs_get").sync("bob", "digits", client=client)
        assert (running.state, running.phase) == (models.JobState.RUNNING, models.JobPhase.RUNNING)
        again = route("jobs.jobs_submit").sync_detailed("bob", client=client, body=create)
        assert again.status_code == HTTPStatus.FORBIDDEN
        assert isinstance(again.parsed, models.Refusal)
        assert again.parsed.reason == models.RefusalReason.CONFLICT
        assert route("jobs.jobs_cancel").sync("bob", "digits", client=client).name == "digits"
        wait_for(
            lambda: route("jobs.jobs_get").sync("bob", "digits", client=client).phase == "cancelled",
            message="for the job to be cancelled",
        )
        assert [one.name for one in route("jobs.jobs_list").sync("bob", client=client)] == ["digits"]
        route("jobs.jobs_delete").sync("bob", "digits", client=client)
        wait_for(lambda: route("jobs.jobs_list").sync("bob", client=client) == [])


def test_data_models_and_apps_by_a_generated_client(hub: LiveHub, made: ModuleType) -> None:
    models = importlib.import_module("made_client.models")
    token = hub.token("bob")
    bearer = {"Authorization": f"Bearer {token}"}
    with made.AuthenticatedClient(
        base_url=f"http://127.0.0.1:{hub.port}/api/v1",
        token=token,
        raise_on_unexpected_status=True,
        timeout=120,
    ) as client:

        def ask(name: str, *path: str, **more: Any) -> Any:
            return route(name).sync("bob", *path, client=client, **more)

        dataset = ask("datasets.datasets_create", body=models.DatasetCreate(name="points", size=4))
        assert isinstance(dataset, models.Dataset)
        assert hub.http.put(f"{dataset.path}two", content=b"1 3\n", headers=bearer).status_code == 201
        ready = models.DatasetHeartbeat(state=models.DatasetHeartbeatState.READY, progress=100)
        ask("datasets.datasets_heartbeat", "points", body=ready)
        assert ask("datasets.datasets_get", "points").state == "ready"
        fit = models.JobCreate(name="fit", code=FITS, cpu=0.5, ram=1024, data=["points"])
        ask("jobs.jobs_submit", body=fit)
        wait_for(lambda: ask("jobs.jobs_get", "fit").state in ("finished", "error"), message="for fit to end")
        assert ask("jobs.jobs_get", "fit").state == "finished", ask("jobs.jobs_logs", "fit")
        assert [(f.name, f.kind) for f in ask("jobs.jobs_files", "fit", path="ckpt")] == [
            ("model.joblib", "file")
        ]
        model = ask("models.models_register", body=models.ModelCreate(name="line", src="jobs/fit/ckpt"))
        assert isinstance(model, models.Model)
        wait_for(lambda: ask("models.models_get", "line").state != "creating", message="for the model")
        model = ask("models.models_get", "line")
        assert (model.state, model.lineage.job) == ("ready", "fit")
        assert "points" in model.lineage.data[0]
        create = models.AppCreate(name="line", model_name="line", cpu=0.5, ram=1024)
        app = ask("apps.apps_deploy", body=create)
        assert isinstance(app, models.Application)
        wait_for(lambda: ask("apps.apps_get", "line").state == "ready", message="for the app to answer")
        rows = {"name": "input", "shape": [1, 1], "datatype": "FP64", "data": [2.0]}
        url = f"{app.url}v2/models/line/infer"
        answer = hub.http.post(url, json={"inputs": [rows]}, headers=bearer)
        assert answer.status_code == 200, answer.text
        assert answer.json()["outputs"][0]["data"] == pytest.approx([5.0])
        assert [one.name for one in ask("apps.apps_list")] == ["line"]
        assert ask("apps.apps_delete", "line").state == "deleting"
        wait_for(lambda: ask("apps.apps_list") == [], message="for the app to be gone")
        assert ask("models.models_delete", "line").state == "deleting"
        assert ask("datasets.datasets_delete", "points").state == "deleting"
        wait_for(lambda: [*ask("models.models_list"), *ask("datasets.datasets_list")] == [])


def test_a_generated_client_says_who_is_not_let_in(hub: LiveHub, made: ModuleType) -> None:
    models = importlib.import_module("made_client.models")
    base = f"http://127.0.0.1:{hub.port}/api/v1"
    with made.AuthenticatedClient(base_url=base, token="none", timeout=120) as client:
        refused = route("session.session_auth").sync_detailed(client=client)
    assert refused.status_code == HTTPStatus.UNAUTHORIZED
    assert isinstance(refused.parsed, models.Fault)
