"""Slurm by hand on loopback, tuned, as the peer to measure against; Debian's slurm-wlm has to be there.

Without the programs (`apt install slurm-wlm munge`) `measure` returns None and the benchmark says so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from support.waiting import wait_for

CONFIG = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CryptoType=crypto/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/ctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/ctld.log
SlurmdLogFile={dir}/slurmd.%n.log
SlurmctldPort=16817
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
MpiDefault=none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port=16818 CPUs=6 RealMemory=8000
PartitionName=p Nodes=n1 Default=YES State=UP
"""


@dataclass(frozen=True, slots=True)
class SlurmFigures:
    """Median seconds from sbatch to the job's first line, and jobs per minute."""

    start_s: float
    per_minute: float


class Slurm:
    """A slurmctld and one slurmd with as many cpus as the hub's node gives out."""

    def __init__(self, directory: Path) -> None:
        self.dir = directory
        self.env = {**os.environ, "SLURM_CONF": str(directory / "slurm.conf")}
        self.children: list[subprocess.Popen[bytes]] = []

    def measure(self, jobs: int) -> SlurmFigures | None:
        """Start it, submit, stop it. None when Slurm is not installed."""
        if not all(shutil.which(p) for p in ("slurmctld", "slurmd", "sbatch", "munged")):
            return None
        try:
            self._start()
            starts = sorted(self._start_delay() for _ in range(10))
            began = time.monotonic()
            for _ in range(jobs):
                self._run("sbatch", "-Q", "-n1", "-o", "/dev/null", "--wrap", "true")
            wait_for(lambda: not self._run("squeue", "-h").strip(), 300, 0.2)
            return SlurmFigures(starts[len(starts) // 2], jobs / (time.monotonic() - began) * 60)
        finally:
            for child in reversed(self.children):
                child.terminate()
                child.wait(20)

    def _start_delay(self) -> float:
        out = self.dir / f"out.{time.monotonic_ns()}"
        began = time.time()
        self._run("sbatch", "-Q", "-n1", "-o", str(out), "--wrap", "date +%s.%N")
        wait_for(lambda: out.exists() and out.read_text().endswith("\n"), 30, 0.01)
        return float(out.read_text()) - began

    def _start(self) -> None:
        (self.dir / "state").mkdir(parents=True)
        self.dir.chmod(0o755)
        (self.dir / "slurm.conf").write_text(CONFIG.format(dir=self.dir, host=socket.gethostname()))
        key = self.dir / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._child(
            "munged",
            "-F",
            "-f",
            f"--key-file={key}",
            f"--socket={self.dir}/munge.sock",
            f"--pid-file={self.dir}/munge.pid",
            f"--seed-file={self.dir}/seed",
            f"--log-file={self.dir}/munge.log",
        )
        wait_for((self.dir / "munge.sock").exists)
        self._child("slurmctld", "-D", "-c")
        self._child("slurmd", "-D", "-N", "n1")
        wait_for(lambda: "idle" in self._run("sinfo", "-h", "-o", "%T"), 60, 0.3)

    def _child(self, *args: str) -> None:
        path = shutil.which(args[0]) or args[0]
        self.children.append(
            subprocess.Popen(
                [path, *args[1:]], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )

    def _run(self, *args: str) -> str:
        return subprocess.run(
            args, env=self.env, capture_output=True, text=True, timeout=60, check=False, cwd=self.dir
        ).stdout
