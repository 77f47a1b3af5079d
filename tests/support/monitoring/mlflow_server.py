"""A real MLflow tracking server, in an environment of its own: MLflow without its parts for machine learning, 90 MB.

python -m support.monitoring.mlflow_server fetch      # what `make test-tools` does, in `tests`
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from support.own_environments import OwnEnvironment
from support.programs import running_program
from support.waiting import PATIENCE_S

VERSIONS = ("mlflow-skinny==3.17.2", "flask==3.1.3", "flask-cors==6.0.5", "sqlalchemy>=2,<3", "alembic>=1.13")
MLFLOW = OwnEnvironment("mlflow-3.17.2", VERSIONS)
_SERVE = """
import sys, threading
from mlflow.server import app
from werkzeug.serving import make_server
server = make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"""


class MlflowServer:
    """One that runs."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}"

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of its REST API."""
        data = None if body is None else json.dumps(body).encode()
        address = f"{self.url}/api/2.0/mlflow/{path}"
        request = Request(address, data, {"Content-Type": "application/json"})  # noqa: S310 - its own address
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found

    def experiment(self, name: str) -> str | None:
        """Return the id of an experiment; None if there is none."""
        found = self.ask("experiments/search", {"max_results": 100, "view_type": "ALL"})
        return next((one["experiment_id"] for one in found["experiments"] if one["name"] == name), None)

    def runs(self, name: str, uid: str) -> list[dict[str, Any]]:
        """Return the runs of an experiment that are of a job, as `info` and `data`."""
        experiment = self.experiment(name)
        if experiment is None:
            return []
        body = {"experiment_ids": [experiment], "filter": f"tags.`mlp.job` = '{uid}'"}
        runs: list[dict[str, Any]] = self.ask("runs/search", body).get("runs", [])
        return runs

    def history(self, run: str, key: str) -> list[tuple[float | str, int, int]]:
        """Return value, time in milliseconds and step of each value of a metric."""
        found: list[tuple[float | str, int, int]] = []
        token = ""
        while True:
            path = f"metrics/get-history?run_id={run}&metric_key={quote(key)}&max_results=1000"
            page = self.ask(path + (f"&page_token={token}" if token else ""))
            found += [(one["value"], one["timestamp"], one["step"]) for one in page.get("metrics", [])]
            token = page.get("next_page_token", "")
            if not token:
                return sorted(found, key=lambda one: (one[2], one[1], str(one[0])))


@contextlib.contextmanager
def mlflow_server(root: Path, port: int = 0) -> Iterator[MlflowServer]:
    """Run one with its database in a directory; it ends with its standard input."""
    root.mkdir(parents=True, exist_ok=True)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{root / 'mlflow.db'}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(root / "artifacts"),
    }
    python = MLFLOW.fetch()

    def words(address: str) -> list[str | Path]:
        return [python, "-c", _SERVE, address.rpartition(":")[2]]

    with running_program(
        "MLflow", root / "log", words, MlflowServer, port=port, ready="/health", env=environ
    ) as found:
        yield found


if __name__ == "__main__":
    MLFLOW.main()
