"""Processes told apart from later ones with the same number. Only small modules: the supervisor uses this too."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

_EXECUTES_S = 2.0  # a process that is about to execute a program has no environment for a moment


def boot_id() -> str:
    """Return an id of the machine's present boot, so that a pid file from before it names nobody."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - pathlib costs the supervisor 2 MB
            return file.read().strip()
    except OSError:
        return ""


def start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None where it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            # the name, in parentheses, may hold anything; what follows the last one is plain
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(pid: int, start: int, boot: str) -> bool:
    """Whether this very process lives, not another one that got its number."""
    return boot == boot_id() and start_of(pid) == start


def is_ours(pid: int, start: int, boot: str, instance: str | None) -> bool:
    """Whether this very process lives and belongs to the state directory of that id; None: whichever it belongs to."""
    return is_alive(pid, start, boot) and (instance is None or belongs(pid, instance))


def belongs(pid: int, instance: str) -> bool:
    """Whether a process was started for the state directory of that id."""
    deadline = time.monotonic() + _EXECUTES_S
    while True:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                environ = file.read()
        except OSError:
            return False
        if environ or time.monotonic() > deadline:
            return f"MLP_INSTANCE={instance}".encode() in environ.split(b"\0")
        time.sleep(0.005)


def of_component(name: str, argv: Sequence[str], instance: str) -> list[int]:
    """List the processes that run this command as the component of that name of a state directory, noted down or not."""
    command = b"".join(word.encode() + b"\0" for word in argv)
    marks = {f"MLP_INSTANCE={instance}".encode(), f"MLP_COMPONENT={name}".encode()}
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs the supervisor 2 MB
        if not entry.isdecimal():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:  # noqa: PTH123
                if file.read() != command:
                    continue
            with open(f"/proc/{entry}/environ", "rb") as file:  # noqa: PTH123
                if marks <= set(file.read().split(b"\0")):
                    found.append(int(entry))
        except OSError:
            continue  # it has just ended
    return found


def cpu_s(pid: int) -> float | None:
    """Return the processor seconds that a process has used; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float | None:
    """Return the proportional share of memory of a process in MiB, else its resident size; None if gone."""
    for path, key in ((f"/proc/{pid}/smaps_rollup", "Pss:"), (f"/proc/{pid}/status", "VmRSS:")):
        try:
            with open(path) as file:  # noqa: PTH123
                for line in file:
                    if line.startswith(key):
                        return int(line.split()[1]) / 1024
        except OSError:
            continue
    return None


def send(pid: int, signum: int) -> bool:
    """Send a signal; False where nobody is there any more."""
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True


def send_group(pid: int, signum: int) -> bool:
    """Send a signal to all of the session that a component leads."""
    try:
        os.killpg(pid, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True
