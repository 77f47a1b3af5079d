"""Keeps the components alive: starts them, adopts living ones, starts dead ones again, bounds their logs.

A small program of its own, run as `python -IS` with nothing but the standard library, because it is there all
the time. It reads a plan (plan.py writes it) and leaves beside it, for each component, a pid file, and
`state.json` for whoever asks. Signals: SIGTERM stops the components in the plan's order and ends; SIGHUP reads
the plan again by executing itself anew and restarts the components whose entry changed; SIGUSR1 ends it and
leaves the components running.
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

from mlp_hub.cli.component import Component, say
from mlp_hub.cli.procs import boot_id, start_of

LOOK_EVERY = 5.0  # seconds between looks at log sizes, and at adopted processes where there are no pidfds
Signals = set[int]


class Supervisor:
    """The loop over all components of a plan."""

    def __init__(self, plan: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self.directory: str = plan["directory"]
        self.plan_id: str = plan["id"]
        self.grace: float = plan["grace_s"]
        self.clock = clock
        self.components = [Component(entry, plan, clock) for entry in plan["components"]]

    def tick(self) -> float:
        """Look after every component once and return the time of the next thing to do."""
        now = self.clock()
        changed = False
        for component in self.components:
            changed |= component.look(now)
            component.bound_log()
        if changed:
            self.report()
        due = [c.start_at for c in self.components if c.start_at is not None]
        return min([now + LOOK_EVERY, *due])

    def report(self) -> None:
        """Write `state.json`, whole or not at all."""
        state = {c.name: c.state() for c in self.components}
        path = os.path.join(self.directory, "state.json")  # noqa: PTH118 - see procs
        with open(f"{path}.new", "w") as file:  # noqa: PTH123
            json.dump({"plan": self.plan_id, "components": state}, file)
        os.replace(f"{path}.new", path)  # noqa: PTH105

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
    _write_pid(os.path.join(plan["directory"], "supervisor.pid"))  # noqa: PTH118
    say(f"supervisor {os.getpid()} looks after {', '.join(c.name for c in supervisor.components)}")
    while True:
        next_look = supervisor.tick()
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
    poll.poll(seconds * 1000)
    try:
        os.read(wake, 512)
    except BlockingIOError:
        return


def _write_pid(path: str) -> None:
    with open(f"{path}.new", "w") as file:  # noqa: PTH123
        json.dump({"pid": os.getpid(), "start": start_of(os.getpid()), "boot": boot_id()}, file)
    os.replace(f"{path}.new", path)  # noqa: PTH105
