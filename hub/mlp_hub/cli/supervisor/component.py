"""One component as the supervisor sees it: its process, its pid file, its log."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from mlp_hub.cli.supervisor import notes, procs
from mlp_hub.cli.supervisor.backoff import Backoff
from mlp_hub.cli.supervisor.liveness import Liveness
from mlp_hub.cli.supervisor.notes import say

LAST_WORDS_S = 5.0  # between SIGTERM and SIGKILL for one that does not answer


class Component:
    """A process that has to be there, or the time at which it is started again.

    `start_at` is None while the process lives. `since` is when it was started or adopted. `died` is told each end that
    nobody asked for.
    """

    def __init__(
        self,
        entry: dict[str, Any],
        plan: dict[str, Any],
        clock: Callable[[], float],
        died: Callable[[str, str], None] = lambda _name, _why: None,
    ) -> None:
        self.name: str = entry["name"]
        self.entry = entry
        self.directory: str = plan["directory"]
        self.log_max: int = plan["log_max"]
        self.instance: str | None = plan.get("instance")
        self.clock = clock
        self.died = died
        self.backoff = Backoff()
        self.pid: int | None = None
        self.pidfd: int | None = None
        self.start_ticks = 0
        self.since = clock()
        self.restarts = 0
        self.last_exit: str | None = None
        self.start_at: float | None = self.since
        self.liveness: Liveness | None = None
        self.given_up: str | None = None  # why it is being ended
        self.kill_at: float | None = None
        self.noted = True  # whether the pid file says what is
        self.no_rotation = ""  # why the log could not be rotated
        self._adopt(plan["grace_s"])
        self._end_unknown()

    @property
    def pid_path(self) -> str:
        """Where this component's process is written down."""
        return os.path.join(self.directory, f"{self.name}.pid")  # noqa: PTH118 - see procs

    def state(self) -> dict[str, Any]:
        """Return the component's state for `state.json`."""
        return {
            "pid": self.pid,
            "start": self.start_ticks,
            "restarts": self.restarts,
            "last_exit": self.last_exit,
            "waits": self.start_at is not None,
        }

    def due(self) -> float | None:
        """Return when to look again at the latest; None where nothing is to come."""
        times = [self.start_at, self.kill_at, self.liveness.due() if self.liveness is not None else None]
        return min((t for t in times if t is not None), default=None)

    def check_process(self, now: float, *, late: float = 0.0) -> bool:
        """Notice a death or a silence, start what is due; return whether anything changed.

        `late`: seconds by which this look comes later than it was meant to; a silence in them means nothing.
        """
        changed = False
        if self.pid is not None and not self._lives():
            self._ended()
            self.restarts += 1
            self.start_at = self.backoff.died(self.since, now)
            say(f"{self.name} {self.last_exit}; starting again in {self.start_at - now:.1f} s")
            self.died(self.name, self.last_exit or "ended")
            changed = True
        if self.start_at is not None and now >= self.start_at:
            self._start(now)
            changed = True
        if self.pid is not None:
            self._end_the_silent(self.pid, now, late=late)
            if not self.noted:
                self._note()
        return changed

    def _end_the_silent(self, pid: int, now: float, *, late: float) -> None:
        if self.kill_at is not None:
            if now >= self.kill_at:
                procs.send_group(pid, signal.SIGKILL)
                self.kill_at = now + LAST_WORDS_S
        elif self.liveness is not None:
            why = self.liveness.check_liveness(now, lambda: procs.cpu_s(pid), late=late)
            if why is not None:
                say(f"{self.name}, process {pid}, {why}; it is ended")
                self.given_up = why
                self.kill_at = now + LAST_WORDS_S
                self.liveness.close()
                self.liveness = None
                procs.send(pid, signal.SIGTERM)

    def stop(self, grace: float) -> None:
        """End the process: SIGTERM, after the grace SIGKILL for all of its session."""
        self.start_at = None
        if self.pid is None:
            return
        say(f"stopping {self.name}")
        pid = self.pid
        procs.send(pid, signal.SIGTERM)
        # wall clock on purpose: an injected clock does not advance while a real process ends
        deadline = time.monotonic() + grace
        while self._lives() and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._lives():
            say(f"{self.name} did not end within {grace:g} s and is killed")
        procs.send_group(pid, signal.SIGKILL)
        while self._lives():
            time.sleep(0.02)
        self._ended()

    def bound_log(self) -> None:
        """Keep the log below its limit: the older half of the story goes to NAME.log.1.

        The process keeps its file (opened for appending), so the content is copied away and the file emptied.
        """
        path: str = self.entry["log"]
        try:
            if os.stat(path).st_size <= self.log_max:  # noqa: PTH116
                return
            with open(path, "rb") as log, open(f"{path}.1", "wb") as old:  # noqa: PTH123
                log.seek(max(0, os.fstat(log.fileno()).st_size - self.log_max))
                while chunk := log.read(1 << 16):
                    old.write(chunk)
            os.truncate(path, 0)
        except OSError as error:
            if self.no_rotation != str(error):  # said once, not at each look
                say(f"the log of {self.name} cannot be rotated: {error}")
            self.no_rotation = str(error)
        else:
            self.no_rotation = ""

    # ------------------------------------------------------------------ process

    def _lives(self) -> bool:
        if self.pid is None:
            return False
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # adopted: not a child of this supervisor
            return procs.start_of(self.pid) == self.start_ticks
        if pid:
            self.last_exit = _describe(status)
        return not pid

    def _ended(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
        if self.liveness is not None:
            self.liveness.close()
        if self.given_up is not None:
            self.last_exit = f"{self.given_up}, and was ended"
        if self.last_exit is None:
            self.last_exit = "ended"
        # its pid file stays: it names nobody any more, and has the room for its successor's
        self.pid = self.pidfd = self.liveness = self.given_up = self.kill_at = None

    def _adopt(self, grace: float) -> None:
        """Take over the process that an earlier supervisor started; end it first where the plan changed."""
        try:
            with open(self.pid_path) as file:  # noqa: PTH123
                found = json.load(file)
            living = procs.is_ours(found["pid"], found["start"], found["boot"], self.instance)
        except (OSError, ValueError, KeyError, TypeError):
            return
        if not living:
            return
        self._hold(found["pid"], found["start"], heard=True)
        if found.get("digest") == self.entry["digest"]:
            say(f"{self.name} goes on as {self.pid}")
            self.start_at = None
        else:
            say(f"{self.name} is ended, because its plan changed")
            self.stop(grace)
            self.start_at = self.clock()

    def _end_unknown(self) -> None:
        """End what an earlier supervisor started and was killed before it could note it down: nobody would find it again."""
        if self.instance is None:
            return
        for pid in procs.of_component(self.name, self.entry["argv"], self.instance):
            with contextlib.suppress(ProcessLookupError):
                if pid == self.pid or os.getsid(pid) != pid:
                    continue
                say(f"{self.name}, process {pid}, was noted down nowhere; it is ended")
                procs.send_group(pid, signal.SIGKILL)
                while procs.start_of(pid) is not None:
                    time.sleep(0.02)

    def _hold(self, pid: int, start: int, *, heard: bool) -> None:
        self.pid, self.start_ticks, self.since, self.last_exit = pid, start, self.clock(), None
        asks = self.entry.get("asks")
        self.liveness = Liveness((asks["socket"], asks["path"]), self.since, heard=heard) if asks else None
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError:  # an old kernel: deaths are then noticed by looking
            self.pidfd = None

    def _start(self, now: float) -> None:
        entry = self.entry
        env = {**entry["env"], "MLP_COMPONENT": self.name}
        try:
            for name, path in entry["secret_env"].items():
                with open(path) as file:  # noqa: PTH123
                    env[name] = file.read().strip()
            log = os.open(entry["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pid = os.posix_spawn(
                    entry["argv"][0],
                    entry["argv"],
                    env,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, null, 0),
                        (os.POSIX_SPAWN_DUP2, log, 1),
                        (os.POSIX_SPAWN_DUP2, log, 2),
                    ],
                    setsid=True,
                    setsigdef=[signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP],
                )
            finally:
                os.close(log)
                os.close(null)
        except OSError as error:
            self.last_exit = f"cannot be started: {error}"
            self.restarts += 1
            self.start_at = self.backoff.died(now, now)
            say(f"{self.name} {self.last_exit}")
            self.died(self.name, self.last_exit)
            return
        self.start_at = None
        self._hold(pid, procs.start_of(pid) or 0, heard=False)
        say(f"{self.name} started as {pid}")
        self._note()

    def _note(self) -> None:
        """Record the component's process; if the disk has no room, do it at a later look."""
        content = {
            "pid": self.pid,
            "start": self.start_ticks,
            "boot": procs.boot_id(),
            "digest": self.entry["digest"],
        }
        before, self.noted = self.noted, notes.write(self.pid_path, content)
        if before and not self.noted:
            say(f"{self.pid_path} cannot be written; {self.name} runs, and is noted down later")


def _describe(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
