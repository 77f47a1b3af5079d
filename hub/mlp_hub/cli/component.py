"""One component as the supervisor sees it: its process, its pid file, its log."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from mlp_hub.cli import procs
from mlp_hub.cli.backoff import Backoff


def say(text: str) -> None:
    """Write a line with the time to standard output, which is the supervisor's log."""
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stdout.flush()


class Component:
    """A process that has to be there, or the time at which it is started again.

    `start_at` is None while the process lives. `since` is when it was started or adopted.
    """

    def __init__(self, entry: dict[str, Any], plan: dict[str, Any], clock: Callable[[], float]) -> None:
        self.name: str = entry["name"]
        self.entry = entry
        self.directory: str = plan["directory"]
        self.log_max: int = plan["log_max"]
        self.clock = clock
        self.backoff = Backoff()
        self.pid: int | None = None
        self.pidfd: int | None = None
        self.start_ticks = 0
        self.since = clock()
        self.restarts = 0
        self.last_exit: str | None = None
        self.start_at: float | None = self.since
        self._adopt(plan["grace_s"])

    @property
    def pid_path(self) -> str:
        """Where this component's process is written down."""
        return os.path.join(self.directory, f"{self.name}.pid")  # noqa: PTH118 - see procs

    def state(self) -> dict[str, Any]:
        """Tell how it stands, for `state.json`."""
        return {
            "pid": self.pid,
            "start": self.start_ticks,
            "restarts": self.restarts,
            "last_exit": self.last_exit,
            "waits": self.start_at is not None,
        }

    def look(self, now: float) -> bool:
        """Notice a death, start what is due; return whether anything changed."""
        changed = False
        if self.pid is not None and not self._lives():
            self._ended()
            self.restarts += 1
            self.start_at = self.backoff.died(self.since, now)
            say(f"{self.name} {self.last_exit}; starting again in {self.start_at - now:.1f} s")
            changed = True
        if self.start_at is not None and now >= self.start_at:
            self._start(now)
            changed = True
        return changed

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
            say(f"the log of {self.name} cannot be rotated: {error}")

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
        if self.last_exit is None:
            self.last_exit = "ended"
        self.pid = self.pidfd = None
        try:
            os.unlink(self.pid_path)  # noqa: PTH108
        except FileNotFoundError:
            return

    def _adopt(self, grace: float) -> None:
        """Take over the process that an earlier supervisor started; end it first where the plan changed."""
        try:
            with open(self.pid_path) as file:  # noqa: PTH123
                found = json.load(file)
            living = procs.is_alive(found["pid"], found["start"], found["boot"])
        except (OSError, ValueError, KeyError):
            return
        if not living:
            return
        self._hold(found["pid"], found["start"])
        if found.get("digest") == self.entry["digest"]:
            say(f"{self.name} goes on as {self.pid}")
            self.start_at = None
        else:
            say(f"{self.name} is restarted, because its plan changed")
            self.stop(grace)
            self.start_at = self.clock()

    def _hold(self, pid: int, start: int) -> None:
        self.pid, self.start_ticks, self.since, self.last_exit = pid, start, self.clock(), None
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError:  # an old kernel: deaths are then noticed by looking
            self.pidfd = None

    def _start(self, now: float) -> None:
        entry = self.entry
        env = dict(entry["env"])
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
            return
        self.start_at = None
        self._hold(pid, procs.start_of(pid) or 0)
        with open(f"{self.pid_path}.new", "w") as file:  # noqa: PTH123
            json.dump(
                {"pid": pid, "start": self.start_ticks, "boot": procs.boot_id(), "digest": entry["digest"]},
                file,
            )
        os.replace(f"{self.pid_path}.new", self.pid_path)  # noqa: PTH105
        say(f"{self.name} started as {pid}")


def _describe(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
