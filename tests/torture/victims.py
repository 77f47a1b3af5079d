"""Finds what can be killed, by kind; in a fixed order, so that a number from the seed names the same one."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass

import psutil

from torture.site import COMPONENTS, SERVER, Site
from torture.toll import Toll

INSTEAD = ("shim", "rank", "sandbox", "service", "proxy", "hub")
"""Who is hit where none of the kind that was drawn is there."""


@dataclass(frozen=True)
class Victim:
    """A process, of which attempt (None: of the platform), and as what it is counted."""

    kind: str
    process: psutil.Process
    attempt: str | None = None

    def kill(self, toll: Toll) -> bool:
        """SIGKILL it; False where it was gone."""
        return self._send(signal.SIGKILL, toll)

    def freeze(self, toll: Toll) -> bool:
        """SIGSTOP it."""
        return self._send(signal.SIGSTOP, toll)

    def lives(self) -> bool:
        """Whether it is still there."""
        with contextlib.suppress(psutil.Error):
            return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
        return False

    def thaw(self) -> None:
        """SIGCONT it, if it is still there."""
        with contextlib.suppress(psutil.Error):
            self.process.send_signal(signal.SIGCONT)

    def _send(self, signum: int, toll: Toll) -> bool:
        with contextlib.suppress(psutil.Error):
            if self.lives():
                toll.hit(self.kind, self.process.pid, self.attempt, frozen=signum == signal.SIGSTOP)
                self.process.send_signal(signum)  # psutil looks whether the number is still this process's
                return True
        return False


def of_kind(site: Site, kind: str, operator_at_work: psutil.Process | None = None) -> list[Victim]:
    """List the living processes of a kind. `rank` is a program, `sandbox` what lies between it and its shim."""
    if kind in COMPONENTS:
        found = site.component(kind)
        return [Victim(kind, found)] if found else []
    if kind == "fork_server":
        found = site.fork_server()
        return [Victim(kind, found)] if found else []
    if kind == "server":
        return [Victim(kind, shim, SERVER) for shim in site.servers()]
    if kind == "up":
        return [Victim(kind, operator_at_work)] if operator_at_work else []
    return [v for attempt, shim in site.shims().items() for v in below(attempt, shim) if v.kind == kind]


def below(attempt: str, shim: psutil.Process) -> list[Victim]:
    """List a shim and all below it."""
    found = [Victim("shim", shim, attempt)]
    with contextlib.suppress(psutil.Error):
        for process in shim.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                program = not process.children() and "/workspace/code/main.py" in process.cmdline()
                found.append(Victim("rank" if program else "sandbox", process, attempt))
    return found


def everything(site: Site) -> list[Victim]:
    """List all processes of the hub and of its jobs."""
    found = [v for kind in (*COMPONENTS, "fork_server") for v in of_kind(site, kind)]
    found += [v for shim in site.servers() for v in below(SERVER, shim)]
    return found + [v for attempt, shim in site.shims().items() for v in below(attempt, shim)]
