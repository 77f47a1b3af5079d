"""Runs inside a sandbox, as its tenant: starts ranks and tells the shim outside how they fare.

    inside.py gang     starts every rank of the plan side by side
    inside.py rank     starts the one rank whose number the launcher (mpiexec, torchrun) put into the environment; once all were
                       asked to end it stays until nothing of any rank is left, since launchers kill all as soon as one has gone

The plan is beside this file; so is the socket of the shim. A rank's output goes straight into pipes whose other
ends the shim holds.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any

_DEFAULTS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores the last two
_WORD = 16
ASKED, OVER = b"asked", b"over"
"""Messages of the shim: all are asked to end, and all processes of all ranks have ended."""
HERE = os.path.dirname(os.path.abspath(__file__))


class StartedRanks:
    """The ranks started by this process."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.shim = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.shim.connect(f"{HERE}/control.sock")
        self.ranks: dict[int, int] = {}

    def start(self, rank: int, extra: dict[str, str]) -> bool:
        """Start a rank; `False` when its program cannot be executed."""
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        program = self.plan["programs"][rank] if self.plan["programs"] else self.plan["program"]
        env = {**os.environ, "MLP_RANK": str(rank), "MLP_WORLD_SIZE": str(len(self.plan["roles"])), **extra}
        gate_r, gate_w = os.pipe()
        pid, trouble = _held(program, env, (gate_r, gate_w), (out_w, err_w))
        for fd in (gate_r, out_w, err_w):
            os.close(fd)
        self.ranks[pid] = rank
        fds = array.array("i", [out_r, err_r])
        self.tell({"t": "start", "rank": rank, "pid": pid}, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        os.close(out_r)
        os.close(err_r)
        with contextlib.suppress(OSError):
            self.shim.recv(
                1
            )  # the rank is where its memory is counted; a shim that is gone makes nobody wait
        os.close(gate_w)
        with os.fdopen(trouble) as file:
            error = file.read()
        if error:
            self.tell({"t": "fail", "rank": rank, "message": f"{program[0]}: {error}"})
        return not error

    def tell(self, message: dict[str, Any], ancillary: list[Any] | None = None) -> None:
        """Send one message to the shim."""
        self.shim.sendmsg([json.dumps(message).encode()], ancillary or [])

    def forward(self, signum: int, _frame: object) -> None:
        """Pass a signal on to all ranks."""
        for pid in self.ranks:
            with contextlib.suppress(OSError):
                os.kill(pid, signum)

    def linger(self) -> None:
        """Where the shim has said that all are asked to end, return once it says that nothing of any rank is left."""
        with contextlib.suppress(OSError):
            self.shim.setblocking(False)
            while self.shim.recv(_WORD) == ASKED:
                self.shim.setblocking(True)

    def wait(self) -> int:
        """Report each rank's end; return the first bad exit status as a shell would give it, else 0."""
        worst = 0
        while self.ranks:
            pid, status, used = os.wait3(0)
            rank = self.ranks.pop(pid, None)
            if rank is None:
                continue
            code = os.waitstatus_to_exitcode(status)
            self.tell(
                {
                    "t": "exit",
                    "rank": rank,
                    "code": code if code >= 0 else None,
                    "signal": max(0, -code) or None,
                    "cpu_s": round(used.ru_utime + used.ru_stime, 3),
                    "ram_kib": used.ru_maxrss,
                }
            )
            if code not in self.plan["success"]:
                worst = worst or (code if code >= 0 else 128 - code)
        return worst


def _held(
    program: list[str], env: dict[str, str], gate: tuple[int, int], output: tuple[int, int]
) -> tuple[int, int]:
    """Fork a process that becomes the program once the gate is closed; return it, and where it says why it could not."""
    trouble_r, trouble_w = os.pipe()
    signal.pthread_sigmask(
        signal.SIG_BLOCK, _DEFAULTS
    )  # ours would pass a signal on, which is not the rank's to do
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _DEFAULTS)
        os.close(trouble_w)
        return pid, trouble_r
    try:
        for one in _DEFAULTS:
            signal.signal(one, signal.SIG_DFL)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output[0], 1)
        os.dup2(output[1], 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.close(gate[1])
        os.read(gate[0], 1)
        os.execvpe(program[0], program, env)
    except OSError as error:
        os.write(trouble_w, str(error.strerror).encode())
    finally:
        os._exit(127)


def main() -> int:
    """Do what the first argument says."""
    with open(f"{HERE}/plan.json") as file:
        plan = json.load(file)
    gang = StartedRanks(plan)
    signal.signal(signal.SIGTERM, gang.forward)
    signal.signal(signal.SIGUSR1, gang.forward)
    envs = plan["envs"] or [{} for _ in plan["roles"]]
    ranks = range(len(plan["roles"])) if sys.argv[1] == "gang" else [int(os.environ[plan["rank_env"]])]
    if not all(gang.start(rank, envs[rank]) for rank in ranks):
        return 127
    status = gang.wait()
    gang.linger()
    return status


if __name__ == "__main__":
    sys.exit(main())
