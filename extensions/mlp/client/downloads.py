"""Fetching files of a job or a model: each survives a cut connection, and has its name once it is whole."""

from __future__ import annotations

import http.client
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlp.client.connection import RETRIED, Answer
from mlp.client.rest import Client
from mlp.errors import Refused, UsageError
from mlp.language import say

Json = dict[str, Any]
PIECE = 1 << 20
WAIT = 0.3


@dataclass
class Fetched:
    """Result of a fetch: the files with their sizes, and the names of those that could not be fetched."""

    to: Path
    files: list[Json] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def fetch(client: Client, of: str, path: str, to: Path, name: str) -> Fetched:
    """Fetch a file, or a directory with all below, of the object `of` (`/users/ann/jobs/digits`).

    If `to` is a directory, into it, under its own name, or under `name` if it has none; otherwise as
    `to`. `.` and `./` are all of it.
    """
    client = client.patiently()
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    path = "" if path == "." else path
    own = path.rstrip("/").rpartition("/")[2] or name
    target = to / own if to.is_dir() else to
    found = Fetched(target)
    left = [(path, target)]
    while left:
        below, there = left.pop()
        try:
            entries = list(client.pages(f"{of}/files", path=below, limit=1000))
        except Refused as refused:
            if refused.reason != "Invalid" or below != path:
                raise
            _fetch_file(client, of, path, target, found)  # it is no directory, or its refusal says more
            return found
        there.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            inner, kind = str(entry["name"]), entry["kind"]
            inside = f"{below.rstrip('/')}/{inner}" if below else inner
            if kind not in {"file", "directory"} or inner in {"", ".", ".."} or set(inner) & {"/", "\0"}:
                found.left_out.append(inside)
            elif kind == "file":
                _fetch_file(client, of, inside, there / inner, found)
            else:
                left.append((inside, there / inner))
    return found


def fetch_model(client: Client, name: str, to: Path) -> tuple[Fetched, Json]:
    """Fetch all files of a version of a model, with the `MLmodel` that MLflow reads where it has none; return what it is too."""
    model = client.model(name)
    version = f"{model['name']}@{model['version']}"
    found = fetch(client, client.model_path(version), "", to, str(model["name"]))
    described = found.to / "MLmodel"
    if not any(f["path"] == "MLmodel" for f in found.files):
        size = download(client, f"{client.model_path(version)}/mlmodel", described)
        found.files.append({"path": "MLmodel", "size": size, "to": str(described)})
    return found, model


def _fetch_file(client: Client, of: str, path: str, to: Path, found: Fetched) -> None:
    size = download(client, f"{of}/files/content", to, path=path)
    found.files.append({"path": path, "size": size, "to": str(to)})


def download(client: Client, path: str, to: Path, /, **query: str) -> int:
    """Write an answer of any size to a file, going on where a connection was cut; return its size."""
    client = client.patiently()
    part = to.with_name(f".{to.name}.part")
    try:
        with open(part, "wb", opener=through_no_link) as file:
            size = _Download(client, path, query, file).run()
        part.replace(to)
    except OSError as error:
        raise UsageError(say("{path} cannot be written ({why})", path=str(to), why=str(error))) from error
    finally:
        part.unlink(missing_ok=True)
    return size


def through_no_link(path: str, flags: int) -> int:
    """Open a file that is being fetched: in a directory of several people somebody may have put a link of its name. Raises OSError."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


class _Download:
    """One file on its way: how much is there of which state of it."""

    def __init__(self, client: Client, path: str, query: dict[str, str], file: Any) -> None:
        self._client = client
        self._path = path
        self._query = query
        self._file = file
        self._done = 0
        self._most = 0
        self._tag = ""

    def run(self) -> int:
        """Fetch until it is whole; the end is a time without progress as long as the client's patience."""
        client = self._client
        until = client.clock() + client.patience
        while True:
            most, error = self._most, None
            try:
                if self._once():
                    return self._done
            except (ConnectionError, TimeoutError, http.client.HTTPException) as cut:
                error = cut
            if self._most > most:
                until = client.clock() + client.patience
            if client.clock() + WAIT > until:
                raise client.unreachable(error or ConnectionError(say("the file changes all the time")))
            client.sleep(WAIT)

    def _once(self) -> bool:
        asked = {"Range": f"bytes={self._done}-", "If-Range": self._tag} if self._done else {}
        with self._client.opened(self._path, asked, **self._query) as answer:
            headers = {k.lower(): v for k, v in answer.getheaders()}
            if answer.status in RETRIED:
                raise ConnectionError(f"HTTP {answer.status}")
            if answer.status not in {200, 206}:
                self._client.checked(Answer(answer.status, headers, answer.read()))
            if (
                answer.status == 200
            ):  # from its beginning: it is asked for the first time, or is another one by now
                self._file.seek(0)
                self._file.truncate()
                self._done = 0
            self._tag = headers.get("etag", "")
            whole = self._done + int(headers.get("content-length") or 0)
            while piece := answer.read(PIECE):
                self._file.write(piece)
                self._done += len(piece)
                self._most = max(self._most, self._done)
            return self._done == whole
