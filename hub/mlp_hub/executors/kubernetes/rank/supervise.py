"""One rank: its program from the start to the last line of its output."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

from mlp_hub.executors.kubernetes.rank import report as reports
from mlp_hub.executors.kubernetes.rank.pump import ended, waker
from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.executors.kubernetes.rank.usage import OwnUse
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.asking import AskedProcesses
from mlp_hub.sandbox.shim.diagnosis.messages import Said, msg
from mlp_hub.sandbox.shim.logs import writer
from mlp_hub.sandbox.shim.logs.losses import Losses

_READ = 64 << 10
"""Tuning: bytes that are read at a time: calls, for memory."""
_READ_LEAST = 4 << 10
"""Safety: bytes that a read counts at least: a flood of single bytes is one too."""
_DRAIN_S = 10.0
"""Safety: seconds for the rest of the output: a process that a program left can hold it open for ever."""
_PDEATHSIG, _SUBREAPER = 1, 36
"""Given: numbers of the kernel's options."""
_LOOK_S = 0.1
"""Tuning: seconds between two looks whether what was asked to end has: how soon a rank has ended, for reads of /proc."""


class SupervisedRank:
    """Running rank; SIGTERM is passed on to all of its processes, and the rest is killed after the grace."""

    def __init__(self, told: OwnPlan, echo: tuple[int, int] = (1, 2)) -> None:
        self.told, self.plan = told, told.plan
        self.report = reports.Report(told)
        self.asked = False
        self._asked = AskedProcesses()
        self._look_at: float | None = None
        self._asks_all = bool(self.plan.get("asks_all", True))
        self._kill_at: float | None = None
        self._limit_at: float | None = None
        self._status: int | None = None
        self._ended_at: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._libc: Any = None
        self._streams: dict[int, writer.Stream] = {}
        self._both: list[writer.Stream] = []
        self._echo: dict[int, int] = {}
        self._echo_to = echo
        self._bucket = writer.Bucket()
        self._paused_until = 0.0
        self._poll = select.poll()
        self._kills = reports.memory_kills()
        self._use = OwnUse(told)

    # -- the start

    def open(self) -> bool:
        """Open the log and listen for signals; `False`, with the reason told, where the log cannot be written."""
        self._wake_fd = waker(self.ask)
        self._poll.register(self._wake_fd, select.POLLIN)
        try:
            self._log_dir = self.told.log()
            self._losses = self._noted_losses()
            self._log = writer.RankLog(self._log_dir, self.told.rank, self._bucket, self._losses)
        except OSError as error:
            said = msg("{path}: {error}", path=self.plan["log"], error=str(error.strerror))
            print(f"[mlp] {self.plan['log']}: {error.strerror}", file=sys.stderr)  # noqa: T201 - the log cannot be
            self.report.never_began(said)
            return False
        return True

    def _noted_losses(self) -> Losses | None:
        """Return where lost lines are counted for a rank that does not come to report them; None on a full disk."""
        try:
            return Losses(self.plan["log"], f"{self.plan['attempt']}.{self.told.rank}.lost", 0o644)
        except OSError as error:
            if not files.is_full(error):
                raise
            return None

    def run(self, argv: list[str], env: dict[str, str]) -> int:
        """Run the program to its end; return the exit status of the pod, or of the process that MPI started."""
        if self.asked:
            return self._conclude(None)
        try:
            self._start(argv, env)
        except OSError as error:
            self._log.close()
            if self._losses is not None:
                self._losses.close()
            return self.report.never_began(self._why_not(argv, error))
        self.report.begun()
        assert self._process is not None  # noqa: S101 - started above
        self._use.begin(self._process.pid)
        if self.plan["time_limit"]:
            self._limit_at = time.monotonic() + float(self.plan["time_limit"])
        self._loop(self._wake_fd)
        return self._conclude(self._status)

    def _why_not(self, argv: list[str], error: OSError) -> Said:
        """Say what could not be started; Popen names the directory where that could not be entered."""
        workdir = self.plan["workdir"]
        if workdir is None or error.filename != workdir:
            return msg("{program}: {error}", program=argv[0], error=str(error.strerror))
        return msg(
            "the program should start in {path}, which cannot be entered: {error}",
            path=workdir,
            error=str(error.strerror),
        )

    def _start(self, argv: list[str], env: dict[str, str]) -> None:
        home, workdir = self.plan["home"], self.plan["workdir"]
        if os.getpid() != 1:  # with a pod's first process all others go anyway
            from ctypes import CDLL  # noqa: PLC0415 - takes a moment

            self._libc = CDLL(None)
            self._libc.prctl(_SUBREAPER, 1, 0, 0, 0)  # what the program leaves behind stays ours
        self._process = subprocess.Popen(
            argv,
            env=env,
            cwd=workdir or (home if os.path.isdir(home) else "/"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            close_fds=False,  # MPICH hands one on
            preexec_fn=self._become,  # noqa: PLW1509 - there are no threads
        )
        for pipe, stream, to in zip(
            (self._process.stdout, self._process.stderr), writer.pair(self._log), self._echo_to, strict=True
        ):
            assert pipe is not None  # noqa: S101 - asked for above
            os.set_blocking(pipe.fileno(), False)
            self._streams[pipe.fileno()] = stream
            self._both.append(stream)
            self._echo[pipe.fileno()] = to
            self._poll.register(pipe.fileno(), select.POLLIN)

    def _become(self) -> None:
        if self._libc is not None:
            with contextlib.suppress(OSError):
                self._libc.prctl(_PDEATHSIG, signal.SIGKILL)
        if self.plan["file_max"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.plan["file_max"],) * 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)

    # -- what happens

    def ask(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ask all of it to end."""
        if self.asked:
            return
        self.asked = True
        self._end(float(self.plan["grace_s"]))

    def _end(self, grace: float) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + grace
        self.report.asked_to_end()
        if self._process is None:
            return
        own = self._process.pid
        if not self._asks_all:
            self._asked.send({own: at} if (at := files.start_time(own)) is not None else {})
        elif own in files.children(os.getpid()):
            self._asked.ask([os.getpid()])
        else:
            self._signal_group(signal.SIGTERM)  # it has gone, or nobody lists who is whose child
        self._look_at = time.monotonic() + _LOOK_S

    def _signal_group(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def _kill(self) -> bool:
        """Kill all that is left; return whether anything was."""
        left = files.descendants(os.getpid())[1:]
        self._signal_group(signal.SIGKILL)
        for pid in left:
            files.send_signal(pid, signal.SIGKILL)
        return bool(left) or self._status is None

    def _look(self) -> None:
        """See what has become of those that were asked to end, and ask those whose turn it is."""
        self._look_at = None
        if not self._asked.look(time.monotonic()) and not self._asks_all:
            self._asks_all = True
            self._asked.ask([os.getpid()])
        if self._left:
            self._look_at = time.monotonic() + _LOOK_S

    @property
    def _left(self) -> bool:
        """Whether processes are left that have the grace."""
        return self._kill_at is not None and len(files.descendants(os.getpid())) > 1

    def _loop(self, wake: int) -> None:
        while self._status is None or self._streams or self._left:
            for fd, _ in writer.steered_first(self._poll.poll(self._timeout()), self._streams):
                if fd == wake:
                    self._on_ended(wake)
                elif fd in self._streams and not self._paused_until:
                    self._on_output(fd)
            self._timers()

    def _timeout(self) -> int | None:
        now = time.monotonic()
        times = [at for at in (self._kill_at, self._limit_at, self._look_at, self._use.due) if at is not None]
        if self._paused_until:
            times.append(self._paused_until)
        if self._ended_at is not None:
            times.append(self._ended_at + _DRAIN_S)
        times += [
            now + wait for stream in self._streams.values() if (wait := stream.flush_idle()) is not None
        ]
        return max(0, int((min(times) - now) * 1000) + 1) if times else None

    def _on_ended(self, wake: int) -> None:
        for pid, status in ended(wake):
            if self._process is not None and pid == self._process.pid:
                self._status = self._process.returncode = status
                self._left_behind()

    def _left_behind(self) -> None:
        """Handle processes that the program left: after a request to end they have its grace, else none."""
        self._ended_at = time.monotonic()
        if self._kill_at is None:
            self._kill()  # it holds its output open
        else:
            self._ended_at = max(self._ended_at, self._kill_at)

    def _on_output(self, fd: int) -> None:
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return
        if not data:
            self._close(fd)
            return
        if self._use.first_line_at is None:
            self._use.first_line_at = time.time()
        before = self._bucket.taken
        self._streams[fd].feed(data)
        self._bucket.take(max(0, max(len(data), _READ_LEAST) - (self._bucket.taken - before)))
        self._pass_on(fd, data)
        if wait := self._bucket.wait():
            self._paused_until = time.monotonic() + wait
            for one in self._streams:
                self._poll.unregister(one)

    def _pass_on(self, fd: int, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._echo[fd], data) :]
        except BlockingIOError:
            pass  # nobody reads it, and the log has it
        except OSError:
            self._echo[fd] = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _close(self, fd: int) -> None:
        self._streams.pop(fd).end()
        if not self._paused_until:
            self._poll.unregister(fd)

    def _timers(self) -> None:
        now = time.monotonic()
        if self._paused_until and now >= self._paused_until:
            self._paused_until = 0.0
            for fd in self._streams:
                self._poll.register(fd, select.POLLIN)
        if self._limit_at is not None and now >= self._limit_at:
            self._limit_at = None
            limit = f"{self.plan['time_limit']:g}"
            self.report.blame("time-limit", msg("it ran longer than its time limit of {n} s", n=limit))
            self._end(float(self.plan["grace_s"]))
        if self._look_at is not None and now >= self._look_at:
            self._look()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self.report.data["killed"] = self._kill()
        if self._use.due is not None and now >= self._use.due:
            self._use.look()
        if self._ended_at is not None and now >= self._ended_at + _DRAIN_S:
            for fd in list(self._streams):
                self._close(fd)

    # -- the end

    def _conclude(self, status: int | None) -> int:
        tail = next((text for stream in reversed(self._both) if (text := stream.tail)), "")
        self._log.close()
        exit_status = self.report.ended(
            status,
            tail,
            asked=self.asked,
            killed_for_memory=reports.memory_kills() - self._kills,
            lost=self._log.lost,
            used=self._use.ended(),
        )
        if self._losses is not None:
            self._losses.close()
        return exit_status
