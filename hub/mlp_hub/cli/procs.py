"""Processes told apart from later ones with the same number. Only `os`: the supervisor uses this too."""

from __future__ import annotations

import os


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
