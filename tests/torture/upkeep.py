"""The operator: runs `mlp-hub up` when the supervisor is gone, and notices what died by itself."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time

import psutil

from support.hubs.live_hub import BIN
from torture.findings import Violation
from torture.site import COMPONENTS, Site

LOOK_S = 0.1
PATIENCE_S = 150.0
BEGINS_S = 30.0  # a component is up within this time, on a machine that has much to do


class Operator:
    """A thread that looks after a site's supervisor. `process` is the `up` under way."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.process: psutil.Process | None = None
        self.ups = 0
        self._pids: dict[str, int] = {}
        self._seen: dict[int, float] = {}  # when a process was first seen as a component
        self._up_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        gone_since: float | None = None
        while not self._stop.wait(LOOK_S):
            self._look_for_deaths()
            if self.site.component("supervisor"):
                gone_since = None
                continue
            gone_since = gone_since or time.monotonic()
            if time.monotonic() - gone_since > (self.ups % 4) * 0.7:  # at once, or somewhat later
                self._up()
                gone_since = None

    def _up(self) -> None:
        toll, began = self.site.toll, time.time()
        command = [str(BIN / "mlp-hub"), "up"]
        running = subprocess.Popen(
            command, env=self.site.hub.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        with contextlib.suppress(psutil.Error):
            self.process = psutil.Process(running.pid)
        try:
            said, _ = running.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            running.kill()
            said = running.communicate()[0] + f"\nit had not ended after {PATIENCE_S:g} s"
        self.process = None
        self.ups += 1
        self._up_at = time.time()
        excused = toll.disturbed(began - 5, self._up_at) or toll.killed(running.pid)
        if running.returncode and not excused:
            text = (
                f"`mlp-hub up` ended with {running.returncode}, nothing was broken meanwhile: {said[-600:]}"
            )
            self.site.findings.add(Violation("up-failed", text), None, self.site.settings.log_dir)

    def _look_for_deaths(self) -> None:
        """A component that is gone, or another one now, was killed by us or replaced by `up`; else it died by itself."""
        for name in COMPONENTS:
            found = self.site.component(name)
            before = self._pids.get(name)
            if found is None or found.pid != before:
                if before is not None and not self._explained(before):
                    text = f"the {name}, process {before}, is gone, and nobody killed it"
                    self.site.findings.add(
                        Violation("died-by-itself", text), None, self.site.settings.log_dir
                    )
                self._pids.pop(name, None)
            if found is not None:
                self._pids[name] = found.pid
                self._seen.setdefault(found.pid, time.time())

    def _explained(self, pid: int) -> bool:
        toll = self.site.toll
        if toll.killed(pid) or toll.frozen(pid) or time.time() - self._up_at < 3 or psutil.pid_exists(pid):
            return True
        # hub and service begin with their database, and end where they cannot read or write it: the supervisor tries again
        young = time.time() - self._seen.get(pid, 0.0) < BEGINS_S
        return young and any(toll.within(kind, time.time(), BEGINS_S) for kind in ("database", "disk"))
