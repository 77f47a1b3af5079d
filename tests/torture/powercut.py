"""Power cuts: a hub's file system is copied while jobs begin, run and end, and each copy is started as after a boot.

What a copy of the device holds is what had been brought to it: what only the kernel had in memory is missing, torn or NUL bytes. The
process runs in a mount namespace of its own, where another boot id is laid over the kernel's, so that nothing of before counts as alive.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.hubs.live_hub import LiveHub
from support.ports import free_port
from support.waiting import wait_for
from torture.disk import Disk

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
INSIDE = "TORTURE_POWERCUT"
LINES = 12
AGES = (0.3, 2.5, 9.0, 30.0)
"""Seconds after the last answer to a submit at which the power goes: before anything, and until all was written back."""
PROGRAM = f"""
import os, time
for line in range({LINES}):
    print("line", line, flush=True)
    time.sleep({{pause}})
with open("/workspace/result", "w") as file:
    file.write("whole " * 100)
"""


@dataclass
class Cut:
    """One moment at which the power went: the copy, and what had been answered before."""

    age: float
    image: Path
    accepted: list[str]
    finished: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def why_not() -> str:
    """Say why no power can be cut here; empty where it can."""
    if os.geteuid() != 0:
        return "it takes root to mount a copy of a file system"
    if shutil.which("unshare") is None:
        return "unshare is missing"
    disk = Disk()
    try:
        return "" if disk.kind == "ext4" else "no ext4 can be mounted by a loop device"
    finally:
        disk.remove()


def run(ages: Sequence[float] = AGES) -> int:
    """Cut power in a process of its own; 1 where anything that was answered did not hold, 0 also where no power can be cut."""
    if why := why_not():
        _say(f"power cuts are left out: {why}")
        return 0
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "torture.powercut"]
    command += ["--ages", *map(str, ages)]
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode


def main() -> int:
    """Cut power at each of the ages; exit status 1 where anything that was answered did not hold."""
    parser = argparse.ArgumentParser(prog="torture.powercut", description=__doc__)
    parser.add_argument("--ages", type=float, nargs="*", default=AGES)
    args = parser.parse_args()
    if INSIDE not in os.environ:
        return run(args.ages)
    disk = Disk()
    try:
        hub, cuts = _run_until_cut(disk, args.ages)
        for cut in cuts:
            _start_after(disk, hub, cut)
            _say(
                f"power cut {cut.age:g} s after the last answer: {len(cut.accepted)} jobs were accepted, {len(cut.finished)} had "
                f"finished, {len(cut.wrong)} violations" + "".join(f"\n    {what}" for what in cut.wrong)
            )
    finally:
        disk.kind = ""  # nothing is mounted any more
        disk.remove()
    return 1 if any(cut.wrong for cut in cuts) else 0


def _run_until_cut(disk: Disk, ages: Sequence[float]) -> tuple[LiveHub, list[Cut]]:
    """Run a hub, copy its device at the ages, and end all of it."""
    hub = LiveHub(disk.home, free_port(), MLP_GRACE_S="2", MLP_NODE_CPU="4", MLP_JOB_NETWORK="none")
    accepted: list[str] = []
    cuts = []
    try:
        hub.up()
        hub.add_user("ann")
        hub.token("ann")
        _submit(hub, "early", 0.05, accepted)
        hub.wait_phase("ann", "early", "finished")
        for age in sorted(ages):
            for number in range(3):
                _submit(hub, f"j{age:g}-{number}".replace(".", "-"), (0.02, 0.3, 2.0)[number], accepted)
            time.sleep(age)
            finished = [name for name in accepted if hub.job("ann", name)["phase"] == "finished"]
            image = disk.root / f"cut-{age:g}"
            subprocess.run(["cp", "--sparse=always", disk.image, image], check=True)
            cuts.append(Cut(age, image, list(accepted), finished))
        return hub, cuts
    finally:
        with contextlib.suppress(AssertionError):
            hub.down(jobs="stop")
        _unmount(disk)
        disk.image.unlink()


def _submit(hub: LiveHub, name: str, pause: float, accepted: list[str]) -> None:
    hub.submit("ann", name, PROGRAM.format(pause=pause), cpu=0.1)
    accepted.append(name)


def _start_after(disk: Disk, hub: LiveHub, cut: Cut) -> None:
    """Start the hub of a copy as after a boot, and hold it against what had been answered."""
    boot = disk.root / f"boot-{secrets.token_hex(4)}"
    boot.write_text(f"{uuid.uuid4()}\n")
    subprocess.run(["mount", "--bind", boot, BOOT_ID], check=True)
    subprocess.run(["mount", "-o", "loop", cut.image, disk.mount], check=True)
    try:
        started = hub.run("up", check=False)
        if started.returncode:
            cut.wrong.append(
                f"`up` ended with {started.returncode}: {(started.stdout + started.stderr)[-800:]}"
            )
            return
        for command in ("status", "doctor"):
            if "Traceback" in (said := hub.run(command, check=False)).stdout + said.stderr:
                cut.wrong.append(f"`{command}` fell over: {said.stderr[-500:]}")
        for name in cut.accepted:
            cut.wrong += _compare(hub, name, ended=name in cut.finished)
    finally:
        with contextlib.suppress(AssertionError):
            hub.down(jobs="stop")
        _unmount(disk)
        cut.image.unlink()


def _compare(hub: LiveHub, name: str, *, ended: bool) -> list[str]:
    """Say what of an accepted job did not hold."""

    def done() -> dict[str, Any] | None:
        job = hub.job("ann", name)
        return job if job["phase"] in ("finished", "failed", "cancelled") else None

    try:
        first = hub.job("ann", name)
    except AssertionError as error:
        return [f"{name} was accepted and is not there: {error}"]
    wrong = []
    if ended and first["phase"] != "finished":
        wrong.append(f"{name} had finished, and is {first['phase']}")
    job = wait_for(done, 120, message=f"for {name} to end")
    if job["phase"] != "finished":
        wrong.append(f"{name} is {job['phase']}: {job['failure']}")
    lines = [line for line in hub.log("ann", name).splitlines() if "line" in line]
    if len(lines) < LINES:
        wrong.append(f"{name} is finished and its log has {len(lines)} of {LINES} lines")
    result = Path(hub.home, "mlp", "jobs", "ann", name, "result")
    size = result.stat().st_size if result.exists() else 0
    if size != len("whole " * 100):
        wrong.append(f"{name} is finished and its result has {size} bytes")
    if job["restarts"] > 1:
        wrong.append(f"{name} was started {job['restarts']} times again")
    return wrong


def _unmount(disk: Disk) -> None:
    for _ in range(100):
        if subprocess.run(["umount", disk.mount], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", disk.mount], check=False)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
