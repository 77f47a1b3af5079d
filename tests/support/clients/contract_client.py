"""A client of the platform's interface document, and of nothing else: the paths, fields, values and codes it names.

It stands for programs that were written against that document before there was this hub: it knows no reason, no phase, no
header but the token's, and looks for nothing besides what is written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from websockets.sync.client import connect

BASE = "/api/v1"
NAME = re.compile(r"[a-z]{1,50}")
DATASET = re.compile(r"[a-z.]{1,50}")
PORTS = range(31_000, 50_001)

FIELDS: dict[str, tuple[str, ...]] = {
    "User": ("username", "state"),
    "Tenant": (
        "name", "cpu", "gpu", "ram", "rom", "cpu_inuse", "gpu_inuse", "ram_inuse", "rom_inuse",
    ),
    "Job": ("name", "user", "tenant", "runtime", "entry", "gpu", "cpu", "ram", "state", "progress"),
    "Dataset": ("name", "user", "tenant", "size", "state", "progress"),
    "Model": ("name", "user", "tenant", "size", "src", "state"),
    "Application": ("name", "user", "tenant", "gpu", "cpu", "ram", "model_name", "port", "state"),
    "JobMetrics": ("user", "name", "epoch", "accuracy", "loss", "progress"),
}  # fmt: skip
"""Fields of each object, which an answer has all of; a password goes in and never comes out."""
STATES = {
    "User": {"NotActive", "Actived"},
    "Job": {"creating", "running", "finished", "error", "deleting"},
    "Dataset": {"creating", "ready", "error", "deleting"},
    "Model": {"creating", "ready", "error", "deleting"},
    "Application": {"creating", "ready", "error", "deleting"},
}
WHOLE = {"size", "progress", "port", "epoch", "rom"}
"""Fields that the document has as whole numbers wherever they stand."""


@dataclass(frozen=True)
class DeniedError(Exception):
    """The document's two refusals, (403, {"msg"}) and (503, {"msg"}), and 401 for a token that is none."""

    status: int
    msg: str = field(compare=False)


class ContractClient:
    """Speaks as whose token it has."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url
        self._token = token
        self._http = httpx.Client(base_url=url, timeout=120, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send and return what a success holds; check that a refusal is one of the document's."""
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        content = None if body is None else json.dumps(body)
        answer = self._http.request(method, BASE + path, content=content, headers=headers)
        assert answer.headers["Content-Type"].startswith("application/json"), answer.headers
        found = answer.json()
        if answer.status_code in (401, 403, 503):
            assert isinstance(found["msg"], str)
            assert found["msg"]
            raise DeniedError(answer.status_code, found["msg"])
        assert answer.status_code == (201 if method == "POST" else 200), f"{answer.status_code} {found}"
        return found

    def _object(self, kind: str, found: Any) -> dict[str, Any]:
        assert set(FIELDS[kind]) <= set(found), set(FIELDS[kind]) - set(found)
        assert found.get("state") in STATES.get(kind, {None}), found
        for name in WHOLE & set(FIELDS[kind]):
            assert found[name] is None or type(found[name]) is int, (name, found)
        return dict(found)

    # ---------------------------------------------------------------- users

    def register(self, username: str, password: str) -> dict[str, Any]:
        made = self.send("POST", "/users", {"username": username, "password": password})
        assert "password" not in made
        return self._object("User", made)

    def deregister(self, user: str, body: Any = None) -> dict[str, Any]:
        return self._object("User", self.send("PUT", f"/users/{user}", body))

    def token(self, user: str) -> str:
        found = self.send("GET", f"/users/{user}/token")
        assert isinstance(found, str)
        return found

    def auth(self) -> str:
        found = self.send("GET", "/auth")
        assert isinstance(found, str)
        return found

    # ----------------------------------------------------------------- jobs

    def create_job(self, user: str, name: str, entry: str, **optional: Any) -> dict[str, Any]:
        assert NAME.fullmatch(name)
        return self._object(
            "Job", self.send("POST", f"/users/{user}/jobs", {"name": name, "entry": entry, **optional})
        )

    def jobs(self, user: str) -> list[dict[str, Any]]:
        return [self._object("Job", job) for job in self.send("GET", f"/users/{user}/jobs")]

    def job(self, user: str, name: str) -> dict[str, Any]:
        job = self._object("Job", self.send("GET", f"/users/{user}/jobs/{name}"))
        assert type(job["progress"]) is int
        assert 0 <= job["progress"] <= 100
        return job

    def delete_job(self, user: str, name: str) -> dict[str, Any]:
        return self._object("Job", self.send("DELETE", f"/users/{user}/jobs/{name}"))

    def heartbeat(self, user: str, name: str, state: str, progress: int) -> Any:
        return self.send(
            "PUT", f"/users/{user}/jobs/{name}:heartbeat", {"state": state, "progress": progress}
        )

    # ------------------------------------------------------------- datasets

    def create_dataset(self, owner: str, name: str, size: int, **optional: Any) -> dict[str, Any]:
        assert DATASET.fullmatch(name)
        return self._object(
            "Dataset", self.send("POST", f"/users/{owner}/datasets", {"name": name, "size": size, **optional})
        )

    def dataset(self, user: str, name: str) -> dict[str, Any]:
        found = self._object("Dataset", self.send("GET", f"/users/{user}/datasets/{name}"))
        assert 0 <= found["progress"] <= 100
        return found

    def dataset_heartbeat(self, user: str, name: str, state: str, progress: int) -> Any:
        body = {"state": state, "progress": progress}
        return self.send("PUT", f"/users/{user}/datasets/{name}:heartbeat", body)

    def delete_dataset(self, user: str, name: str) -> dict[str, Any]:
        return self._object("Dataset", self.send("DELETE", f"/users/{user}/datasets/{name}"))

    def _file(self, method: str, path: str, data: bytes | None = None) -> httpx.Response:
        bearer = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return self._http.request(method, f"/data/{path}", content=data, headers=bearer)

    def put_file(self, user: str, dataset: str, name: str, data: bytes) -> int:
        return self._file("PUT", f"{user}/{dataset}/{name}", data).status_code

    def get_file(self, user: str, dataset: str, name: str) -> bytes | int:
        answer = self._file("GET", f"{user}/{dataset}/{name}")
        return answer.content if answer.is_success else answer.status_code

    def delete_files(self, user: str, dataset: str) -> int:
        return self._file("DELETE", f"{user}/{dataset}").status_code

    # ------------------------------------------------------ models and apps

    def create_model(self, user: str, name: str, src: str, **optional: Any) -> dict[str, Any]:
        assert NAME.fullmatch(name)
        return self._object(
            "Model", self.send("POST", f"/users/{user}/models", {"name": name, "src": src, **optional})
        )

    def model(self, user: str, name: str) -> dict[str, Any]:
        """Not in the document, which has no other way to learn when a model is ready: as of all else."""
        return self._object("Model", self.send("GET", f"/users/{user}/models/{name}"))

    def delete_model(self, user: str, name: str) -> dict[str, Any]:
        return self._object("Model", self.send("DELETE", f"/users/{user}/models/{name}"))

    def create_app(self, user: str, name: str, model: str, **optional: Any) -> dict[str, Any]:
        assert NAME.fullmatch(name)
        body = {"name": name, "model_name": model, **optional}
        return self._app(self.send("POST", f"/users/{user}/apps", body))

    def app(self, user: str, name: str) -> dict[str, Any]:
        return self._app(self.send("GET", f"/users/{user}/apps/{name}"))

    def delete_app(self, user: str, name: str) -> dict[str, Any]:
        return self._app(self.send("DELETE", f"/users/{user}/apps/{name}"))

    def _app(self, found: Any) -> dict[str, Any]:
        app = self._object("Application", found)
        assert app["port"] in PORTS
        return app

    # -------------------------------------------------------------- metrics

    def metrics(self, user: str, name: str, verb: str) -> Any:
        return self.send("PUT", f"/users/{user}/job_metrics/{name}:{verb}")

    def points(self, user: str, name: str) -> Iterator[dict[str, Any]]:
        """Yield the points of a job as a browser's script gets them, until the server closes."""
        address = f"{self._url.replace('http', 'ws', 1)}{BASE}/users/{user}/job_metrics/{name}"
        with connect(
            address, additional_headers={"Authorization": f"Bearer {self._token}"}, proxy=None
        ) as socket:
            for message in socket:
                yield self._object("JobMetrics", json.loads(message))

    # ------------------------------------------------------------ resources

    def resource(self, verb: str, request: str, applier: str, **more: Any) -> Any:
        return self.send("PUT", f"/resource_request:{verb}", {"id": request, "applier": applier, **more})

    def tenant(self, name: str) -> dict[str, Any]:
        return self._object("Tenant", self.send("GET", f"/tenants/{name}"))
