"""Request to end: its receivers, and its result."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.asking import AskedProcesses, chain
from mlp_hub.sandbox.shim.programs.inside import ASKED, OVER

if TYPE_CHECKING:
    from mlp_hub.sandbox.shim.ranks import RankProcess
    from mlp_hub.sandbox.shim.supervise import RankSupervisor

LOOK_S = 0.05
"""Tuning: seconds between two looks whether anything is left: how soon a sandbox has ended, for reads of /proc."""
FINALIZE_S = 1.0
"""Tuning: seconds that ranks have to end together, once the program of each has come to its end."""
SOON_S = 0.01
"""Tuning: seconds until it is looked again whether bubblewrap has started the command."""


class Ending:
    """Request of a sandbox to end, its time, and whether the sandbox had to be killed.

    The sandbox lives until all processes in it have ended. Bubblewrap ends as soon as the command has,
    and with it everything inside, though its first process there would wait for the others. So
    bubblewrap is stopped meanwhile. Launchers kill all ranks as soon as one has gone. So a process that
    started a rank for a launcher stays until all processes of all ranks have ended. `due`: time of the
    next look.
    """

    def __init__(self, sandbox: RankSupervisor) -> None:
        self._sandbox = sandbox
        self.asked_at: float | None = None  # seconds since the epoch
        self.killed = False
        self.due: float | None = None
        self._held: int | None = None
        self._launcher: int | None = None  # the sandbox's command, once it has started a rank
        self._asked = AskedProcesses()
        self._spared: set[int] = set()
        self._told = False
        # servers and notebooks see to their kernels, which a SIGTERM would kill: these are asked once they have ended
        self._asks_all = sandbox.plan is not None and bool(sandbox.plan.get("asks_all", True))

    def ask(self) -> None:
        """Ask all to end."""
        sandbox = self._sandbox
        self.asked_at = time.time()
        self._hold()
        known = {rank.pid: rank for rank in sandbox.ranks if rank.state == "running" and rank.pid}
        if not known or sandbox.child is None:
            self._ask_command()
            return
        above = {pid: chain(pid, sandbox.child) for pid in known}
        if sandbox.mode == "launcher":
            self._launcher = next((line[-1] for line in above.values() if line), None)
            self._keep_starters()
        self._spared = {pid for line in above.values() for pid in line}
        for rank in known.values():
            rank.asked = True
        self._tell(known)

    def ask_rank(self, rank: RankProcess) -> None:
        """Ask one rank to end."""
        rank.asked = True
        if rank.pid and rank.state == "running" and files.start_time(rank.pid) == rank.start:
            self._asked.ask([rank.pid], below=False)
            self.due = time.monotonic() + LOOK_S

    def ask_late(self, rank: RankProcess) -> None:
        """Ask a rank to end that began after all were asked."""
        if self._launcher is not None:
            self._keep_starters()
        self.ask_rank(rank)

    def look(self, now: float) -> None:
        """Do delayed steps: after bubblewrap's start of the command, the first requests, or the ranks' remains."""
        self.due = None
        sandbox = self._sandbox
        if sandbox.child is None or (self.asked_at is not None and not self._told):
            self._ask_command()
            return
        if self._asked.look(now):
            self.due = now + LOOK_S
        elif not self._asks_all and self._told:
            self._asks_all = True
            self._asked.ask([sandbox.child], self._spared)
            self.due = now + LOOK_S
        if self._launcher is None:
            return
        running = [rank for rank in sandbox.ranks if rank.state == "running"]
        left = [
            pid for pid in files.children(sandbox.child) if pid != self._launcher and files.start_time(pid)
        ]
        if left or running:
            self.due = now + LOOK_S
            over = [rank.over_at for rank in running if rank.over_at is not None]
            if not left and over and len(over) == len(running) and now > max(over) + FINALIZE_S:
                sandbox.kill()  # they would wait for those that have gone for ever
        elif sandbox.reports is not None:
            sandbox.reports.say(OVER)

    def _tell(self, first: Collection[int]) -> None:
        """Ask all to end, or those that come first."""
        self._told = True
        if self._asks_all and self._sandbox.child is not None:
            self._asked.ask([self._sandbox.child], self._spared)
        else:
            self._asked.send({pid: at for pid in first if (at := files.start_time(pid)) is not None})
        self.due = time.monotonic() + LOOK_S

    def _ask_command(self) -> None:
        sandbox = self._sandbox
        sandbox.ranks[0].asked = True
        if pids := files.children(sandbox.child) if sandbox.child else []:
            self._tell(pids[:1])
        else:
            self.due = time.monotonic() + SOON_S

    def _keep_starters(self) -> None:
        if self._sandbox.reports is not None:
            self._sandbox.reports.say(ASKED)
        self.due = time.monotonic() + LOOK_S

    def _hold(self) -> None:
        """Keep the sandbox alive; the replacement of bubblewrap, where it runs, gets a signal for that."""
        bwrap = self._sandbox.bwrap
        if bwrap is None or self._sandbox.child_fd is None:
            return  # nothing to wait for, or nothing that would tell of its end
        if self._sandbox.host["mode"] == "open":
            files.send_signal(bwrap, signal.SIGUSR1)
            return
        self._held = bwrap
        files.send_signal(bwrap, signal.SIGSTOP)

    def release(self) -> None:
        """Let bubblewrap end, since all that was inside has."""
        if self._held is not None:
            files.send_signal(self._held, signal.SIGCONT)
            self._held = None

    def to_json(self) -> dict[str, Any] | None:
        """Return it for exit.json; None where nobody asked."""
        return None if self.asked_at is None else {"asked_at": self.asked_at, "killed": self.killed}
