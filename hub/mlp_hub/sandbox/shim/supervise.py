"""The life of one sandbox, from its start to exit.json."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import termios
import time
from typing import Any

from mlp_hub.sandbox.shim import cgroups, files
from mlp_hub.sandbox.shim.diagnosis.messages import msg
from mlp_hub.sandbox.shim.diagnosis.outcome import FirstFailure, conclude
from mlp_hub.sandbox.shim.diagnosis.remarks import Remarks
from mlp_hub.sandbox.shim.ending import Ending
from mlp_hub.sandbox.shim.keep import Keeper
from mlp_hub.sandbox.shim.logs import writer
from mlp_hub.sandbox.shim.logs.losses import Losses
from mlp_hub.sandbox.shim.network import Outbound, wanted
from mlp_hub.sandbox.shim.rank_usage import Meter, hungriest, roots
from mlp_hub.sandbox.shim.ranks import RankProcess, Reports, host_pid, small_int
from mlp_hub.sandbox.shim.start import Started, make_listener, start

TEARDOWN_S = 5.0  # the longest that the other ranks get once one has failed
AGAIN_S = 1.0  # until what a full disk refused is tried again
_READ = 64 << 10
_READ_STEERED = 4 << 10  # of what moves its cursor: a few bytes may be much work, and others wait meanwhile
_READ_LEAST = 4 << 10  # what reading counts at least: a flood of single bytes is one too
_DRAIN_S = 10.0  # the longest that output is read after the end


class RankSupervisor:
    """Supervisor that waits for events of the sandbox and for requests in the run directory."""

    def __init__(self, run_dir: str, spec: dict[str, Any], host: dict[str, Any]) -> None:
        self.run_dir, self.spec, self.host = run_dir, spec, host
        self.plan = spec["ranks"]
        self.mode = self.plan["mode"] if self.plan else "single"
        roles = self.plan["roles"] if self.plan else ["worker"]
        self.ranks = [RankProcess(number, role) for number, role in enumerate(roles)]
        self.groups = cgroups.Groups(host["cgroup"], host["bases"], host["group"])
        self.meter = Meter(self.groups, spec["limits"], alone=len(self.ranks) == 1)
        self.started_at: float | None = None
        self._started = 0.0  # seconds since the machine was started: nobody sets that clock
        self.first_line_at: float | None = None  # of what ranks write
        self._first_told = False
        self.child: int | None = None
        self.exit_code: int | None = None  # the command's, as bubblewrap tells it
        self.status: int | None = None  # bubblewrap's own
        self.failure: FirstFailure | None = None
        self.stopped = False  # because somebody asked for it
        self.stopping = False
        self.ending = Ending(self)
        self.remarks = Remarks(self)
        self.kill_at: float | None = None
        self.linger_at: float | None = None
        self.changed = False
        self.notes: list[str] = []
        self._limit: float | None = None
        self._deadline: float | None = None
        self.launcher = writer.Stream(None, "stderr")
        self._poll = select.poll()
        self._pipes: dict[int, writer.Stream] = {}
        self._paused_until = 0.0
        self._deaf_until = 0.0
        self._again_at = 0.0
        self._bucket = writer.Bucket()
        self._losses: Losses | None = None
        self._rank_logs: list[writer.RankLog] = []
        self._status_rest = b""
        self._status_ended = False
        self.child_fd: int | None = None
        self._network: Outbound | None = None
        self.reports: Reports | None = None
        self.bwrap: int | None = None
        self.control: str | None = None
        self.listener: socket.socket | None = None

    # -- the start

    def listen(self) -> None:
        """Make the socket on which the program will be reached, if it wants one."""
        if self.spec["listen"]:
            self.listener = make_listener(self.spec["listen"])

    def run(self, wake: int) -> dict[str, Any]:
        """Start the sandbox, see it to its end and return what exit.json will hold."""
        self._wake = wake
        self._poll.register(wake, select.POLLIN)
        self.log_dir = os.open(
            self.spec["log_dir"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        self._losses = Losses(self.run_dir)
        self.notes += self.groups.create(self.spec["limits"], len(self.ranks))
        self.groups.enter(cgroups.SHIM)  # what we do for the job is the job's
        begun = start(self.run_dir, self.spec, self.host, self.groups, self.listener)
        self._begun = begun
        self.bwrap, self.control = begun.pid, begun.control
        self.reports = self._listen(begun)
        if self.mode == "single":
            self.ranks[0].streams = self._rank_streams(0)
            self._pipes = {begun.stdout: self.ranks[0].streams[0], begun.stderr: self.ranks[0].streams[1]}
        else:
            self._pipes = {begun.stdout: self.launcher, begun.stderr: self.launcher}
        for fd in (*self._pipes, begun.status):
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        limits = self.spec["limits"]
        has = self.host["bases"]
        self._watchdog = cgroups.Watchdog(limits, memory="memory" not in has, pids="pids" not in has)
        self._watch_at = time.monotonic()
        self._began_at = time.monotonic()
        self._began_wall = time.time() - 1
        self._keep_limit(self.spec["time_limit"])
        self._on_wake()  # a stop may have come before us
        self._loop()
        return self._finish()

    def _listen(self, begun: Started) -> Reports | None:
        if begun.control is None:
            return None
        reports = Reports(begun.control, self._report, len(self.ranks))
        self._poll.register(reports, select.POLLIN)
        return reports

    def _rank_streams(self, number: int) -> tuple[writer.Stream, writer.Stream]:
        log = writer.RankLog(self.log_dir, number, self._bucket, self._losses)
        self._rank_logs.append(log)
        return writer.pair(log)

    # -- what happens

    def _loop(self) -> None:
        while self.status is None or self.child_fd is not None:
            for fd, _ in writer.steered_first(self._poll.poll(self._timeout()), self._pipes):
                if fd == self._wake:
                    self._on_wake()
                elif fd == self.child_fd:
                    self._poll.unregister(fd)
                    os.close(fd)
                    self.child_fd = None
                    self.ending.release()
                elif fd == self._begun.status:
                    self._on_status()
                elif fd in self._pipes:
                    self._on_output(fd)
                elif self.reports is not None and fd == self.reports.fileno():
                    self._on_reports(self.reports)
            self._timers()

    def _timeout(self) -> int | None:
        due = (self._deadline, self.kill_at, self.linger_at, self.ending.due)
        times = [at for at in due if at is not None]
        times += [at for at in (self._paused_until, self._deaf_until, self._again_at, self.meter.due) if at]
        if self._watchdog.needed:
            times.append(self._watch_at)
        now = time.monotonic()
        times += [now + wait for stream in self._pipes.values() if (wait := stream.flush_idle()) is not None]
        return max(0, int((min(times) - now) * 1000) + 1) if times else None

    def _timers(self) -> None:
        now = time.monotonic()
        if self._paused_until and now >= self._paused_until:
            self._paused_until = 0.0
            for fd in self._pipes:
                self._poll.register(fd, select.POLLIN)
        if self._deaf_until and self.reports is not None and now >= self._deaf_until:
            self._deaf_until = 0.0
            self._poll.register(self.reports, select.POLLIN)
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            limit = self._limit
            self._fail(
                FirstFailure(
                    "time-limit", message=msg("it ran longer than its time limit of {n} s", n=f"{limit:g}")
                )
            )
            self.stop(self.spec["grace_s"])
        if self.linger_at is not None and now >= self.linger_at:
            self.linger_at = None
            self.stop(self.spec["grace_s"])
        if self.ending.due is not None and now >= self.ending.due:
            self.ending.look(now)
        self._looks(now)
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self.ending.killed = True
            self.kill()
        if now >= self._again_at:
            self._catch_up(now)

    def _looks(self, now: float) -> None:
        """Check the sandbox's use, when it is time."""
        if self._watchdog.needed and now >= self._watch_at and self.child:
            self._watch_at = now + self._watchdog.PERIOD
            self._watch()
        if self.meter.due and now >= self.meter.due:
            self.meter.look(roots(self.ranks, self.child))
            self.changed = self.remarks.look(now, self.meter.cpu_s) or self.changed
            if self.first_line_at and not self._first_told and time.time() > (self.started_at or 0) + 1:
                self.changed = True  # whoever ends sooner tells it with that
            if 0 < self.spec["limits"]["ram_mib"] << 20 < self.groups.sockets():
                self._fail(FirstFailure("out-of-memory", hungriest(self.ranks)))
                self.kill()

    def _catch_up(self, now: float) -> None:
        """Write what changed, and what could not be written; a full disk has us try again in a while."""
        done = not [log for log in self._rank_logs if not log.tell()]  # each is asked
        if self.changed:
            try:
                self._write_state()
            except OSError:
                done = False
        self._again_at = 0.0 if done else now + AGAIN_S

    def _watch(self) -> None:
        assert self.child is not None  # noqa: S101 - asked by the caller
        verdict = self._watchdog.verdict(self.child)
        limits = self.spec["limits"]
        if verdict == "memory":
            self._fail(FirstFailure("out-of-memory", hungriest(self.ranks)))
        elif verdict == "pids":
            self._fail(
                FirstFailure(
                    "program-error", message=msg("it started more than {n} processes", n=limits["pids"])
                )
            )
        if verdict:
            self.kill()

    def _keep_limit(self, limit: float | None) -> None:
        """Limit the program to `limit` seconds from its start."""
        self._limit = limit
        self._deadline = self._began_at + limit if limit else None

    def _on_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.bwrap:
                    self.status = os.waitstatus_to_exitcode(status)
        limited = files.read_json_if_whole(self.run_dir, "limit.json", "time_limit")
        if limited and limited["time_limit"] != self._limit and not self.stopping:
            self._keep_limit(limited["time_limit"])
        asked = files.read_json_if_whole(self.run_dir, "stop.json", "deadline")
        if asked:
            if why := asked.get("why"):
                self._fail(FirstFailure(why[0], message=why[1], data=why[2]))
            self.stopped = self.stopped or self.failure is None
            # of the steady clock; who asked may be of an earlier version, which told the wall clock's time only
            left = asked["ends"] - time.monotonic() if "ends" in asked else asked["deadline"] - time.time()
            self.stop(max(0.0, left))

    def _on_status(self) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._begun.status, 4096)
            if not data and not self._status_ended:
                self._status_ended = True
                self._poll.unregister(self._begun.status)
        *lines, self._status_rest = (self._status_rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "child-pid" in message:
                self._on_child(message["child-pid"])
            if "exit-code" in message:
                self.exit_code = message["exit-code"]

    def _on_child(self, child: int) -> None:
        self.child = child
        # bubblewrap may end before all that is inside has: we wait for both
        with contextlib.suppress(OSError):
            self.child_fd = os.pidfd_open(child)
            self._poll.register(self.child_fd, select.POLLIN)
        if self.stopping and self.started_at is None:
            self.kill()
            return
        if wanted(self.spec) and self.host["mode"] != "open":
            self._network = Outbound(child, self.host["wayout"], self.spec["uid"], self.groups)
        with contextlib.suppress(BrokenPipeError):  # it has failed already, and its exit status will say so
            os.write(self._begun.unblock, b"1")
        os.close(self._begun.unblock)
        if self.mode == "single":
            self.ranks[0].state = "running"
            self.meter.begin(self.ranks[0])
            self._starts()
        self.changed = True

    def _on_output(self, fd: int) -> None:
        if self._paused_until:
            return
        try:
            data = os.read(fd, self._most(fd))
        except BlockingIOError:
            return
        if not data:
            self._close_pipe(fd)
            return
        before = self._bucket.taken
        self._feed(fd, data)
        written = self._bucket.taken - before
        self._bucket.take(max(0, max(len(data), _READ_LEAST) - written))
        if wait := self._bucket.wait():
            self._paused_until = time.monotonic() + wait
            for one in self._pipes:
                self._poll.unregister(one)

    def _most(self, fd: int) -> int:
        """Return how many bytes of a pipe are taken at a time."""
        return _READ_STEERED if self._pipes[fd].steered else _READ

    def _feed(self, fd: int, data: bytes) -> None:
        stream = self._pipes[fd]
        stream.feed(data)
        if stream is not self.launcher:
            self.remarks.wrote()
            if self.first_line_at is None:
                self.first_line_at = time.time()

    def _close_pipe(self, fd: int) -> None:
        self._pipes.pop(fd).end()
        if not self._paused_until:
            self._poll.unregister(fd)
        os.close(fd)

    def _on_reports(self, reports: Reports) -> None:
        if wait := reports.take():
            self._deaf_until = time.monotonic() + wait
            self._poll.unregister(reports)

    def _report(self, kind: str, starter: int, message: dict[str, Any], fds: list[int]) -> None:
        number = small_int(message["rank"], 0, len(self.ranks) - 1)
        rank = self.ranks[number] if number is not None else None
        if rank is None or (kind == "start" and rank.state != "pending"):
            for fd in fds:
                os.close(fd)
        elif kind == "start":
            self._begin(rank, starter, message, fds)
        elif kind == "exit" and rank.state == "running":
            self.meter.ended(rank.number, message.get("cpu_s"), message.get("ram_kib"))
            self.rank_ended(
                rank, small_int(message.get("code"), 0, 255), small_int(message.get("signal"), 1, 64)
            )
        elif kind == "gone" and rank.state == "running":
            self.meter.ended(rank.number)
            self.rank_ended(rank, None, int(signal.SIGKILL), taken=self.mode == "launcher")
        elif kind == "over" and rank.state != "pending":
            rank.over_at, rank.told_over = rank.over_at or time.monotonic(), True
            rank.raised = message.get("raised") is True
        elif kind == "fail" and rank.living:
            rank.end(127, None, excused=False)
            self._fail(
                FirstFailure("start-failed", rank.number, 127, message=str(message.get("message"))[:500])
            )
            self.stop(0)
            self.changed = True

    def _starts(self) -> None:
        self.started_at, self._started = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)

    def ended(self) -> tuple[float | None, float]:
        """Return when the program started and ended: by the clock as it is now, and as far apart as it ran, whoever set it meanwhile."""
        now = time.time()
        if self.started_at is None:
            return None, now
        return now - (time.clock_gettime(time.CLOCK_BOOTTIME) - self._started), now

    def _begin(self, rank: RankProcess, starter: int, message: dict[str, Any], fds: list[int]) -> None:
        rank.streams = self._rank_streams(rank.number)
        rank.state = "running"
        self._place(rank, starter, message.get("pid"))
        self.meter.begin(rank)
        if self.started_at is None:
            self._starts()
        for fd, stream in zip(fds, rank.streams, strict=True):
            self._pipes[fd] = stream
            if not self._paused_until:
                self._poll.register(fd, select.POLLIN)
        if self.stopping:
            self.ending.ask_late(rank)
        self.changed = True

    def _place(self, rank: RankProcess, starter: int, inner: Any) -> None:
        """Find a rank's process, and have its memory counted as the rank's."""
        above = None if self.host["mode"] == "open" else self.child
        rank.pid = host_pid(starter, inner, above)
        rank.start = files.start_time(rank.pid) if rank.pid else None
        if rank.pid:
            self.groups.take(rank.number, rank.pid)

    # -- what follows from it

    def rank_ended(
        self, rank: RankProcess, code: int | None, signum: int | None, *, taken: bool = False
    ) -> None:
        """Record a rank's end and decide what that means for the others; `taken`: its launcher killed it."""
        self.changed = True
        if rank.end(code, signum, excused=(rank.asked and self.failure is None) or self.is_success(code)):
            cause = "signal" if signum else "program-error"
            if self.groups.out_of_memory_kills(rank.number if self.groups.ranks_apart else None):
                cause = "out-of-memory"
            first = FirstFailure(cause, rank.number, code, signum)
            first.taken = taken
            self._fail(first)
            self.stop(min(self.spec["grace_s"], TEARDOWN_S))
        elif self.plan and rank.number == self.plan["leader"] and not self.stopping:
            # the servers never end by themselves; the others may be about to
            for other in self.ranks:
                if other.role == "ps":
                    self.ending.ask_rank(other)
            self.linger_at = time.monotonic() + self.plan["linger_s"]

    def is_success(self, code: int | None) -> bool:
        """Whether a rank that ended with this status has succeeded."""
        return self.plan is not None and code in self.plan["success"]

    def _fail(self, failure: FirstFailure) -> None:
        """Store the first failure; its consequences are ignored."""
        if self.failure is None and not self.stopped:
            self.failure = failure

    def stop(self, grace: float) -> None:
        """Ask all to end, and see that they have within the grace."""
        at = time.monotonic() + grace
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)
        self.linger_at = None
        if self.stopping:
            return
        self.stopping = True
        self.ending.ask()

    def kill(self) -> None:
        """End all that is inside, at once."""
        self.stopping = True
        for rank in self.ranks:
            rank.asked = True
        # without a sandbox no namespace ends with its first process
        bare = self.host["mode"] == "open" and self.bwrap is not None
        for pid in (*(files.descendants(self.bwrap or 0) if bare else ()), self.child, self.bwrap):
            if pid:
                files.send_signal(pid, signal.SIGKILL)

    def abandon(self) -> None:
        """Kill and reap what was started, after an error of our own."""
        self.kill()
        if self._network is not None:
            self._network.end()
        if self.bwrap is not None and self.status is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.bwrap, 0)

    def _write_state(self) -> None:
        child = self.child
        files.write_json(
            self.run_dir,
            "state.json",
            {
                "child": child,
                "child_start": files.start_time(child) if child else None,
                "bwrap": self.bwrap,
                "mode": self.mode,
                "started_at": self.started_at,
                "first_line_at": self.first_line_at,
                "ranks": [rank.to_json() for rank in self.ranks],
                "memory": self.groups.memory_counter(len(self.ranks)),
                "notes": self.notes,
                "remark": self.remarks.now,
            },
        )
        self.changed = False
        self._first_told = self.first_line_at is not None

    # -- the end

    def _finish(self) -> dict[str, Any]:
        self._on_status()
        if self.reports is not None:
            self.reports.finish()
        end = time.monotonic() + _DRAIN_S
        self._paused_until = 1.0
        for fd in list(self._pipes):
            self._drain(fd, end)
            self._close_pipe(fd)
        if self._network is not None:
            self._network.end()
        for log in self._rank_logs:
            log.close()
        os.close(self.log_dir)
        # the ranks wrote what is to be found once it is told that they ended: logs, results, small checkpoints
        with contextlib.suppress(OSError):
            Keeper(self._began_wall).keep(os.path.dirname(self.spec["log_dir"]))
        return conclude(self)

    def _drain(self, fd: int, end: float) -> None:
        """Take what is in the pipe now, and nothing that comes later: its other end may have been handed to others."""
        left = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        until = self._bucket.taken + writer.SEGMENT
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (data := os.read(fd, min(left, self._most(fd)))):
                left -= len(data)
                if self._bucket.taken < until and time.monotonic() < end:
                    self._feed(fd, data)
                else:
                    self._pipes[fd].skip(data, "it wrote too much at once as it ended")

    @property
    def lost_lines(self) -> int:
        """How many lines of output could not be written."""
        return sum(log.lost for log in self._rank_logs)

    def leave_groups(self) -> list[str]:
        """Remove the control groups with all that is left in them; return the failures."""
        try:
            self.groups.leave()
        except OSError as error:
            return [f"could not leave the control groups: {error.strerror}"]
        return [f"could not remove {path}" for path in self.groups.remove()]
