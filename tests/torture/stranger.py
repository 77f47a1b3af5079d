"""A shell with a wrong variable: calls `mlp-hub up` with another database while everything else goes on; `up` must refuse."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import time
from pathlib import Path

from mlp_hub.cli.state import belonging, copies, state_dir
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from support.hubs.live_hub import BIN
from torture.findings import Violation
from torture.site import Site

PATIENCE_S = 150.0  # another `up` may be under way, and this one waits for it
REFUSED = "Nothing was started, ended or changed"
VARIABLES = {"platform": "MLP_DATABASE_URL", "hub": "MLP_HUB_DATABASE_URL"}


class Stranger:
    """Its calls run in threads, and `wait` ends when all have been answered."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._place = site.disk.root / "stranger"
        self._threads: list[threading.Thread] = []
        self._making = threading.Lock()

    def call(self, variable: str, *, owned: bool) -> None:
        """Name an empty database (`owned`: that of another hub) as the platform's or as the hub's."""
        thread = threading.Thread(target=self._call, args=(variable, owned), name="stranger")
        thread.start()
        self._threads.append(thread)

    def wait(self) -> None:
        """Wait for all answers."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _call(self, variable: str, owned: bool) -> None:
        file = self._place / ("mlp.sqlite" if owned else "empty.sqlite")
        with self._making:
            if owned and not file.exists():
                self._make_another_hubs()
        before, began = _digest(file), time.time()
        environ = {**self.site.hub.env, VARIABLES[variable]: f"sqlite:///{file}"}
        try:
            done = subprocess.run(
                [str(BIN / "mlp-hub"), "up"],
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            status, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            status, said = 0, f"it had not ended after {PATIENCE_S:g} s"
        what = f"`mlp-hub up` with {VARIABLES[variable]} set to {'the database of another hub' if owned else 'an empty database'}"
        if _digest(file) != before:
            self._add("stranger-changed", f"{what} changed that database: {said[-600:]}")
        # a full disk or an absent database may be what it fails with first
        if status == 0 or (REFUSED not in said and not self._outage(began, time.time())):
            self._add("stranger-not-refused", f"{what} ended with {status}: {said[-600:]}")

    def _outage(self, start: float, end: float) -> bool:
        return any(o.start <= end and (o.end is None or o.end >= start) for o in self.site.toll.outages)

    def _make_another_hubs(self) -> None:
        self._place.mkdir(exist_ok=True)
        other = Settings.load({"MLP_HOME": str(self._place / "home")})
        state_dir.prepare(other)
        copies.settle(other)
        migrate.upgrade(f"sqlite:///{other.service_db_file}")
        belonging.bind(other, "platform")
        other.service_db_file.rename(self._place / "mlp.sqlite")

    def _add(self, kind: str, text: str) -> None:
        self.site.findings.add(Violation(kind, text), None, self.site.settings.log_dir)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""
