"""The stand-in's datasets: their records, and their files by WebDAV as far as pages ask for them."""

from __future__ import annotations

from typing import Any

from tornado.web import RequestHandler

from support.front.shapes import when

Json = dict[str, Any]
DATA = "/services/mlp/data"


def dataset(name: str, **change: Any) -> Json:
    """A dataset that is ready."""
    return {
        "name": name, "user": "ann", "tenant": "red", "size": 3 << 30, "used": 3 << 30, "state": "ready", "progress": 100,
        "path": f"/data/ann/{name}/", "message": "", "made_at": when(-86_400), "source": None, **change,
    }  # fmt: skip


class FrontFiles:
    """All datasets; `files` has the bytes of each path, None for a directory."""

    def __init__(self) -> None:
        self.rows = [
            dataset("clips", state="creating", progress=42, used=5 << 30, size=12 << 30),
            dataset("old.scans", state="error", progress=7, used=900 << 20),
            dataset("pets"),
            dataset("spare", state="deleting"),
        ]
        self.files: dict[str, bytes | None] = {
            "pets/train": None,
            "pets/train/cat-1.jpg": b"c" * 4096,
            "pets/labels.csv": b"l" * 2_000_000,
            "pets/<b>odd & 100%.txt": b"",
        }
        self.asked: list[str] = []
        self.refused: tuple[int, Json] | None = None
        """What is answered to who sends a file."""

    def answer(self, method: str, parts: list[str], verb: str, body: Json) -> tuple[int, Any]:
        """Answer a request to the API."""
        if method == "POST":
            made = dataset(body["name"], state="creating", progress=0, used=0, size=body["size"])
            self.rows = sorted([*self.rows, made], key=lambda row: str(row["name"]))
            return 201, made
        if len(parts) == 3:
            return 200, self.rows
        found = next((row for row in self.rows if row["name"] == parts[3]), None)
        if found is None:
            return 403, {"msg": f"dataset {parts[3]} does not exist", "reason": "NotFound"}
        if verb == "heartbeat":
            found |= body
        elif method == "DELETE":
            found["state"] = "deleting"
        return 200, found


class FrontDav(RequestHandler):
    """Files of the datasets."""

    SUPPORTED_METHODS = ("GET", "PUT", "DELETE", "MKCOL")  # type: ignore[assignment]

    def initialize(self, front: Any) -> None:
        self.front = front

    def check_xsrf_cookie(self) -> None:
        """Pages show the session's token by a header."""

    def _begin(self, path: str) -> str:
        files: FrontFiles = self.front.data.datasets
        at = path.removeprefix("ann/").rstrip("/")
        files.asked.append(f"{self.request.method} {at}")
        if self.request.method != "GET" and self.request.headers.get("X-XSRFToken") != self.front.data.xsrf:
            files.asked.append("without a token")
        self.files = files
        return at

    def get(self, path: str) -> None:
        top = self._begin(path)
        listed = [f for f in self.files.files if f.rpartition("/")[0] == top]
        entries = [
            {
                "name": at.rpartition("/")[2],
                "directory": (data := self.files.files[at]) is None,
                "size": len(data or b""),
                "modified": "Thu, 01 Jan 2026 10:00:00 GMT",
            }
            for at in sorted(listed, key=lambda at: (self.files.files[at] is not None, at))
        ]
        self.finish({"entries": entries, "next": None})

    def put(self, path: str) -> None:
        at = self._begin(path)
        if self.files.refused is not None:
            status, body = self.files.refused
            self.set_status(status)
            self.finish(body)
            return
        self.files.files[at] = self.request.body
        self.set_status(201)

    def mkcol(self, path: str) -> None:
        at = self._begin(path)
        self.files.files[at] = None
        self.set_status(201)

    def delete(self, path: str) -> None:
        at = self._begin(path)
        self.files.files = {
            f: b for f, b in self.files.files.items() if f != at and not f.startswith(f"{at}/")
        }
        self.set_status(204)
