"""The program of all jobs here, and the reader of what each rank of it wrote down: the ground truth.

A rank takes a lock that a second living copy of it could not take, and makes a file of its own for its attempt, with
room for everything it will write there, so that a disk which is full later takes nothing of the truth. Into it go
32 bytes for each thing that happens, at once: `s` it began, `b n` it is about to do step n, `r n` the point of step n is
reported, `l n` its line is printed, `e` it ends well, `D` another copy of it lives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 32
NO_ROOM = 75
"""Exit status of a rank that found no room for the truth."""
TWICE = 76
"""Exit status of a rank whose attempt had been started before."""
SCRIPTED = 3
"""Exit status of a rank that was told to fail."""

PROGRAM = f"""
import fcntl, os, sys, time
if os.environ["TORTURE_RUNTIME"] == "mpi":
    from mpi4py import MPI
    MPI.COMM_WORLD.barrier()
import mlp

rank, attempt = int(os.environ["MLP_RANK"]), int(os.environ["MLP_RESTART_COUNT"])
steps, pause = int(os.environ["TORTURE_STEPS"]), float(os.environ["TORTURE_PAUSE"])
fails = attempt < int(os.environ["TORTURE_FAILS"]) and rank == 0
os.chdir(os.environ["MLP_WORKSPACE"])
name = f"truth.{{attempt}}.{{rank}}"
try:
    truth = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
except FileExistsError:
    os.open(f"twice.{{attempt}}.{{rank}}", os.O_CREAT | os.O_WRONLY)
    sys.exit({TWICE})
except OSError:
    sys.exit({NO_ROOM})
try:
    lock = os.open(f"lock.{{rank}}", os.O_RDWR | os.O_CREAT, 0o644)
    room = bytes({WIDTH} * (3 * steps + 4))
    if os.write(truth, room) != len(room):
        raise OSError
except OSError:
    os.unlink(name)
    sys.exit({NO_ROOM})
at = 0

def note(kind, n=0):
    global at
    os.pwrite(truth, f"{{kind}} {{n}} {{time.time():.6f}}".ljust({WIDTH - 1}).encode() + b"\\n", at)
    at += {WIDTH}

try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    note("D")
note("s")
for n in range(steps):
    note("b", n)
    mlp.report(step=n, attempt=attempt, value=n * 10 + rank, progress=100 * n // steps)
    note("r", n)
    os.write(1, f"LINE {{rank}} {{attempt}} {{n}}\\n".encode())
    note("l", n)
    time.sleep(pause)
if fails:
    sys.exit({SCRIPTED})
note("e")
"""

_NAME = re.compile(r"(truth|twice)\.(\d+)\.(\d+)")


@dataclass
class RankTruth:
    """What one rank of one attempt wrote down; times are seconds since the epoch."""

    attempt: int
    rank: int
    started: float | None = None
    ended: float | None = None
    double: bool = False
    begun: dict[int, float] = field(default_factory=dict)
    reported: dict[int, float] = field(default_factory=dict)
    printed: dict[int, float] = field(default_factory=dict)
    last: float = 0.0

    def take(self, line: str) -> None:
        """Take one record."""
        kind, n, at = line.split()
        when = self.last = float(at)
        match kind:
            case "s":
                self.started = when
            case "e":
                self.ended = when
            case "D":
                self.double = True
            case _:
                {"b": self.begun, "r": self.reported, "l": self.printed}[kind][int(n)] = when


@dataclass
class Truth:
    """What all ranks of a job wrote down, and which (attempt, rank) were started a second time."""

    ranks: list[RankTruth] = field(default_factory=list)
    twice: list[tuple[int, int]] = field(default_factory=list)

    def of(self, attempt: int) -> list[RankTruth]:
        """Return the ranks of one attempt."""
        return [r for r in self.ranks if r.attempt == attempt]


def read(workspace: Path) -> Truth:
    """Read what a job's ranks wrote into its directory; empty where it never ran."""
    truth = Truth()
    if not workspace.is_dir():
        return truth
    for path in sorted(workspace.iterdir()):
        if not (found := _NAME.fullmatch(path.name)):
            continue
        attempt, rank = int(found[2]), int(found[3])
        if found[1] == "twice":
            truth.twice.append((attempt, rank))
            continue
        one = RankTruth(attempt, rank)
        for line in path.read_bytes().rstrip(b"\0").decode().splitlines():
            one.take(line)
        truth.ranks.append(one)
    return truth
