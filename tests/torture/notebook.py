"""One notebook server that is there all the time: it goes on whatever dies around it, and its own death is noticed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import httpx

from torture.findings import Violation
from torture.site import READER, SERVER, Site

PATIENCE_S = 100.0  # the hub looks after its servers every half minute
LOOK_S = 0.5


class Notebook:
    """The reader's server on a site that is up."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._token = ""
        self._pid: int | None = None
        self._hits = 0  # of its processes, until the last look

    def start(self) -> None:
        """Start it unless it is there, and wait until it is ready."""
        if not self._token:
            wanted = {"scopes": ["servers!user", "read:users!user"], "expires_in": 86_400}
            service = self.site.settings.secret("service_token")
            made = self._hub("POST", f"/users/{READER}/tokens", service, wanted)
            self._token = made.json()["token"] if made is not None and made.is_success else ""
            if not self._token:
                self._add("server-not-started", f"no token for it: {made and made.text}")
                return

        def ready() -> bool:
            if not self._model():
                self._hub("POST", f"/users/{READER}/server", self._token, {})
            return bool(self._model().get("ready"))

        if not self._until(ready):
            self._add("server-not-started", f"it was not ready after {PATIENCE_S:g} s: {self._model()}")
        self._remember()

    def check(self) -> None:
        """It goes on unless it was hit; what the hub and the ledger tell of it is so."""
        hits = sum(hit.attempt == SERVER for hit in self.site.toll.hits)
        alive = self._pid_now()
        if hits == self._hits and self._pid is not None and alive != self._pid:
            self._add("server-lost", f"its shim {self._pid} is gone (now {alive}), and nobody killed it")
        elif not self._until(self._told_as_it_is if hits == self._hits else self._told):
            self._add(
                "server-untold",
                f"its shim is {self._pid_now()}, the hub tells {self._model()}, it holds {self._held()}",
            )
        self._remember()

    # ------------------------------------------------------------------- looks

    def _told(self) -> bool:
        return bool(self._model().get("ready")) == (self._pid_now() is not None)

    def _told_as_it_is(self) -> bool:
        # one that was killed while the service was away may hold its place until it is started again
        return self._told() and len(self._held()) == int(self._pid_now() is not None)

    def _remember(self) -> None:
        self._pid = self._pid_now()
        self._hits = sum(hit.attempt == SERVER for hit in self.site.toll.hits)

    def _pid_now(self) -> int | None:
        found = self.site.servers()
        return found[0].pid if found else None

    def _held(self) -> list[Any]:
        return [tuple(row) for row in self.site.held() or [] if row[1] == "sp"]

    def _model(self) -> dict[str, Any]:
        answer = self._hub("GET", f"/users/{READER}", self._token)
        servers = answer.json().get("servers", {}) if answer is not None and answer.is_success else {}
        found: dict[str, Any] = servers.get("", {})
        return found

    def _hub(self, method: str, path: str, token: str, body: Any = None) -> httpx.Response | None:
        headers = {"Authorization": f"Bearer {token}"}
        with contextlib.suppress(httpx.HTTPError):
            url = f"/hub/api{path}"
            return self.site.hub.http.request(method, url, headers=headers, json=body, timeout=10)
        return None

    def _until(self, good: Callable[[], bool]) -> bool:
        until = time.monotonic() + PATIENCE_S
        while not good():
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        return True

    def _add(self, kind: str, text: str) -> None:
        self.site.findings.add(Violation(kind, text, READER), None, self.site.settings.log_dir)
