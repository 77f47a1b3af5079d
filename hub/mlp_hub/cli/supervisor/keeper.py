"""Supervisor of the components: starts them, adopts living ones, restarts dead ones, bounds their logs.

It is a small separate program, run as `python -IS` with nothing but the standard library, because
it runs all the time. It reads a plan (plan.py writes it). It leaves next to the plan a pid file for
each component, and `state.json` for any reader. Signals: SIGTERM stops the components in the plan's
order and ends. SIGHUP executes it again to read the new plan, and restarts the components whose
entry changed. SIGUSR1 ends it and leaves the components running.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from mlp_hub.cli.supervisor import notes
from mlp_hub.cli.supervisor.component import Component
from mlp_hub.cli.supervisor.notes import say
from mlp_hub.cli.supervisor.procs import boot_id, start_of

LOOK_EVERY = 5.0  # seconds between looks at log sizes, and at adopted processes where there are no pidfds
LATE_S = (
    2.0  # a look that is so late was delayed by the machine, and the delay counts as no component's silence
)
DEATHS_KEPT = 100  # of the last ends that nobody asked for
Signals = set[int]


class Supervisor:
    """The loop over all components of a plan."""

    def __init__(self, plan: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self.directory: str = plan["directory"]
        self.plan_id: str = plan["id"]
        self.grace: float = plan["grace_s"]
        self.clock = clock
        self.meant: float | None = None  # when the next look was meant to be
        self.reported = True  # whether what is known is written down
        self.began = f"{os.getpid()}/{clock():.6f}"  # another one each time that it reads a plan
        earlier = self._earlier_state()
        self.deaths: list[dict[str, Any]] = earlier["deaths"]
        for name in earlier["components"].keys() - {entry["name"] for entry in plan["components"]}:
            # of an earlier plan: who finds another digest than its own in the entry ends it
            Component({"name": name, "argv": [], "digest": ""}, plan, clock)
        self.components = [Component(entry, plan, clock, self._died) for entry in plan["components"]]

    def tick(self) -> float:
        """Look after every component once and return the time of the next thing to do."""
        now = self.clock()
        late = max(0.0, now - self.meant) if self.meant is not None else 0.0
        changed = False
        for component in self.components:
            changed |= component.check_process(now, late=late if late > LATE_S else 0.0)
            component.bound_log()
        if changed or not self.reported:
            self.report()
        due = [at for c in self.components if (at := c.due()) is not None]
        self.meant = min([now + LOOK_EVERY, *due])
        return self.meant

    def report(self) -> None:
        """Write `state.json`; without room on the disk, it is kept in memory and written at a later look."""
        state = {c.name: c.state() for c in self.components}
        content = {"plan": self.plan_id, "began": self.began, "components": state, "deaths": self.deaths}
        self.reported = notes.write(self._state_path, content)

    def _died(self, name: str, why: str) -> None:
        self.deaths.append({"component": name, "at": round(time.time(), 3), "why": why})
        del self.deaths[:-DEATHS_KEPT]

    def _earlier_state(self) -> dict[str, Any]:
        try:
            with open(self._state_path) as file:  # noqa: PTH123
                found = json.load(file)
                return {"deaths": list(found["deaths"]), "components": dict(found["components"])}
        except (OSError, ValueError, KeyError, TypeError):
            return {"deaths": [], "components": {}}

    @property
    def _state_path(self) -> str:
        return os.path.join(self.directory, "state.json")  # noqa: PTH118 - see procs

    def stop(self) -> None:
        """Stop the components, each after the one before it in the plan has ended."""
        for component in self.components:
            component.stop(self.grace)
        self.report()


def run(plan_path: str) -> int:
    """Supervise until a signal says otherwise; return the exit status."""
    with open(plan_path) as file:  # noqa: PTH123
        plan = json.load(file)
    lock = _lock(plan["lock"])
    if lock is None:
        say("another supervisor is at work")
        return 3
    caught: Signals = set()
    wake = _catch_signals(caught)
    supervisor = Supervisor(plan)
    pid_path = os.path.join(plan["directory"], "supervisor.pid")  # noqa: PTH118
    noted = _write_pid(pid_path)
    say(f"supervisor {os.getpid()} looks after {', '.join(c.name for c in supervisor.components)}")
    while True:
        try:
            next_look = supervisor.tick()
        except Exception as error:  # noqa: BLE001 - nobody would start this process again
            say(f"looking after the components failed: {type(error).__name__}: {error}")
            next_look = time.monotonic() + 1.0
        noted = noted or _write_pid(pid_path)
        if not caught:
            _sleep(supervisor, wake, max(0.0, next_look - time.monotonic()))
        if signal.SIGTERM in caught or signal.SIGINT in caught:
            supervisor.stop()
            return 0
        if signal.SIGUSR1 in caught:
            say("supervisor ends and leaves the components running")
            return 0
        if signal.SIGHUP in caught:
            say("reading the plan again")
            os.set_inheritable(lock, True)
            os.environ["MLP_SUPERVISOR_LOCK"] = str(lock)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - itself, no shell
        caught.clear()


def _lock(path: str) -> int | None:
    """Take the lock that only one supervisor can hold; None where another one does."""
    inherited = os.environ.pop("MLP_SUPERVISOR_LOCK", None)
    if inherited is not None:
        os.set_inheritable(int(inherited), False)
        return int(inherited)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    try:  # for who finds the lock taken; it holds without this
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
    except OSError:
        say("there is no room to note this process in its lock")
    return lock


def _catch_signals(caught: Signals) -> int:
    """Collect signals in `caught`; return a file descriptor that becomes readable with each."""
    readable, writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)

    def note(signum: int, _frame: FrameType | None) -> None:
        caught.add(signum)

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(signum, note)
    signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)  # only to wake up
    return readable


def _sleep(supervisor: Supervisor, wake: int, seconds: float) -> None:
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    for component in supervisor.components:
        if component.pidfd is not None:
            poll.register(component.pidfd, select.POLLIN)
        if component.liveness is not None and component.liveness.fd is not None:
            poll.register(component.liveness.fd, select.POLLIN)
    poll.poll(seconds * 1000)
    try:
        os.read(wake, 512)
    except BlockingIOError:
        return


def _write_pid(path: str) -> bool:
    return notes.write(path, {"pid": os.getpid(), "start": start_of(os.getpid()), "boot": boot_id()})
