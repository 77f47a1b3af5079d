"""Somebody who uploads through `/data` while all breaks; then bytes and ledger are compared with what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import httpx

from torture.findings import Violation
from torture.site import UPLOADER, Site

FILES = 4
LARGEST = 300_000
PATIENCE_S = 100.0  # the longest that anything may go unanswered
SETTLES_S = 60.0  # the longest until the ledger is exact once nothing is broken any more


class Uploads:
    """The uploads of one round, to a dataset of its own. `drain` ends them."""

    def __init__(self, site: Site, seed: str, number: int) -> None:
        self._site = site
        self._random = Random(f"{seed}:{number}:uploads")
        self._name = f"round-{number}"
        self._path = f"/users/{UPLOADER}/datasets"
        self._may: dict[str, set[bytes | None]] = {}
        """By file, what it may hold: what was acknowledged last, and what was sent since without an answer."""
        self._client = httpx.Client(base_url=str(site.hub.http.base_url), timeout=15, trust_env=False)
        self._made = False
        self._refusal = ""
        self._draining = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Upload nothing more."""
        self._draining.set()
        self._thread.join()

    def check(self) -> Iterator[Violation]:
        """Compare, once nothing is broken any more, and delete the dataset."""
        if not self._made:
            kind = "upload-refused" if self._refusal else "not-answered"
            yield self._violation(
                kind, f"POST of a dataset: {self._refusal or f'no answer in {PATIENCE_S:g} s'}"
            )
            return
        size = 0
        for file, may in sorted(self._may.items()):
            found = self._ask("GET", file)
            if found is None or found.status_code not in (200, 404):
                yield self._violation("upload-unreadable", f"{file}: {found and found.status_code}")
                continue
            content = found.content if found.status_code == 200 else None
            if content not in may:
                lengths = sorted(len(each or b"") for each in may)
                yield self._violation(
                    "upload-lost", f"{file} has {content and len(content)} bytes, of {lengths}"
                )
            size += len(content or b"")
        ready = {"state": "ready", "progress": 100}
        self._site.ask("PUT", f"{self._path}/{self._name}:heartbeat", UPLOADER, PATIENCE_S, ready)
        if not self._until(lambda: self._charged() == [size, size]):
            yield self._violation("storage-miscounted", f"{self._charged()} are charged, files take {size}")
        self._site.ask("DELETE", f"{self._path}/{self._name}", UPLOADER, PATIENCE_S)
        if not self._until(lambda: self._charged() == []):
            yield self._violation("storage-not-given-back", f"{self._charged()} are charged for nothing")

    def _run(self) -> None:
        body = {"name": self._name, "size": 1000}
        headers = {"Idempotency-Key": self._name}
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self._site.ask("POST", self._path, UPLOADER, PATIENCE_S, body, headers=headers)
            # who asks again because no answer came may find it made
            self._made = answer is not None and (answer.status_code == 201 or "already exists" in answer.text)
            if self._made or answer is None:
                break
            self._refusal = f"{answer.status_code} {answer.text[:300]}"
            if "the disk has" not in answer.text or time.monotonic() > until:
                break
            time.sleep(1.0)  # the disk is full for some seconds of a round, which is a refusal
        while self._made and not self._draining.is_set() and not self._site.closing.is_set():
            file = f"file{self._random.randrange(FILES)}"
            content = self._random.randbytes(self._random.randrange(1, LARGEST))
            may = self._may.setdefault(file, {None})
            may.add(content)  # before it is sent: it may happen without an answer
            if self._put(file, content):
                self._may[file] = {content}
            self._draining.wait(0.2)

    def _put(self, file: str, content: bytes) -> bool:
        try:
            answer = self._client.put(self._url(file), content=content, headers=self._token())
        except httpx.HTTPError:
            return False
        return answer.status_code in (201, 204)

    def _ask(self, method: str, file: str) -> httpx.Response | None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                answer = self._client.request(method, self._url(file), headers=self._token())
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.status_code not in (429, 502, 503, 504):
                return answer
            time.sleep(0.3)
        return None

    def _charged(self) -> list[int] | None:
        """Return what the dataset's row and its row of the ledger say; empty where it is gone."""
        rows = self._site.rows(
            "SELECT s.used, r.rom FROM stored s LEFT JOIN resource_request r ON r.applier = 'st' AND r.id = s.uid "
            "WHERE s.kind = 'dataset'"
        )
        return None if rows is None else [int(value or 0) for row in rows for value in row]

    @staticmethod
    def _until(done: Callable[[], bool]) -> bool:
        until = time.monotonic() + SETTLES_S
        while time.monotonic() < until:
            if done():
                return True
            time.sleep(0.3)
        return False

    def _url(self, file: str) -> str:
        return f"/data/{UPLOADER}/{self._name}/{file}"

    def _token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._site.hub.token(UPLOADER)}"}

    def _violation(self, kind: str, text: str) -> Violation:
        return Violation(kind, text, f"{UPLOADER}/{self._name}")
