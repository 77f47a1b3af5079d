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

from live_hub import LiveHub
from waiting import wait_for

BIN = Path(sys.executable).parent
TRAINS = (
    "import mlp, time\n"
    "for epoch in range(1, 4):\n"
    "    mlp.report(epoch=epoch, loss=1 / epoch, f1=epoch)\n"
    "mlp.flush()\n"
    "print('trained', flush=True)\n"
    "time.sleep(600)\n"
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


def test_a_generated_client_says_who_is_not_let_in(hub: LiveHub, made: ModuleType) -> None:
    models = importlib.import_module("made_client.models")
    base = f"http://127.0.0.1:{hub.port}/api/v1"
    with made.AuthenticatedClient(base_url=base, token="none", timeout=120) as client:
        refused = route("session.session_auth").sync_detailed(client=client)
    assert refused.status_code == HTTPStatus.UNAUTHORIZED
    assert isinstance(refused.parsed, models.Fault)
