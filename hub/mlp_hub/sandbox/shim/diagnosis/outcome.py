"""How it ended: from exit statuses to a cause."""

from __future__ import annotations

import re
import resource
import signal
import time
from typing import TYPE_CHECKING, Any

from mlp_hub.sandbox.shim.diagnosis import blame
from mlp_hub.sandbox.shim.diagnosis.exception_line import TRACEBACK
from mlp_hub.sandbox.shim.diagnosis.messages import Said, english, msg

if TYPE_CHECKING:
    from mlp_hub.sandbox.shim.supervise import RankSupervisor

SHELL = 128  # an exit status of 128 + n stands for signal n
_KILL, _TERM = 9, 15
_LONGEST = 300  # characters of an exception that are shown in the headline; its tail has all
_RANK_OF_TORCH = re.compile(
    r"^\[rank\d+\]: ?", re.MULTILINE
)  # before each line of a traceback, once ranks know each other
_TRACEBACK = TRACEBACK.decode()
_AFTER_TRACEBACK = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?:: .*)?$", re.MULTILINE)
# what the C library, Python, curl, wget, apt, Java, Go, Node and Rust say of a name or an address in vain
_LOOKED_OUT = re.compile(
    r"""(?ix) temporary\ failure\ (?:in\ name\ resolution|resolving) | name\ or\ service\ not\ known
    | no\ address\ associated\ with\ hostname | could\ not\ resolve\ (?:host|proxy) | unable\ to\ resolve\ host
    | failed\ to\ (?:resolve|lookup) | NameResolutionError | socket\.gaierror | getaddrinfo\ (?:failed|EAI_AGAIN|ENOTFOUND)
    | UnknownHostException | no\ such\ host | network\ is\ unreachable | ENETUNREACH"""
)
_FULL = re.compile(r"No space left on device|\bENOSPC\b")
_ON_DISK = re.compile(r"""['"](?:/home|/workspace)/""")
_NO_PROCESS = re.compile(
    r"Resource temporarily unavailable|can't start new thread|pthread_create|Cannot fork|\bEAGAIN\b"
)
_NO_FILE = re.compile(r"Too many open files|\bEMFILE\b")
_ASKED = re.compile(r"^(?:EOFError: EOF when reading a line|bdb\.BdbQuit)$", re.MULTILINE)
_NOT_FROM_HERE = re.compile(
    r"^FileNotFoundError: \[Errno 2\] No such file or directory: '[^'/]|: can't open file '/[^']*': \[Errno 2\]",
    re.MULTILINE,
)
_CELL = re.compile(r"^Cell In\[", re.MULTILINE)
_NO_COMMAND = re.compile(r": (?:line )?\d+: (\S+): (?:command )?not found$", re.MULTILINE)
_FROM_SETTINGS = frozenset({"conda", "mamba", "micromamba", "ml", "module", "nvm", "pyenv", "source"})
"""Commands that a shell has by its settings, and `source`, which only bash has: without them all that follows fails too."""
_CONDA = re.compile(r"Run 'conda init' before|has not been properly configured to use 'conda activate'")
_NO_MODULE = "ModuleNotFoundError: No module named "
_NO_NAME = re.compile(r"NameError: name '(\w+)' is not defined")
_FRAME = re.compile(r'^  File "([^"]*)"', re.MULTILINE)
_TEXTS = "/workspace/code/"  # where a program lies that came as text, such as a cell
_LAUNCHER = re.compile(
    r'  File "(?:<frozen (?:runpy|importlib\._bootstrap)>|[^"]*/(?:runpy|by_mpi4py|by_python|mpi4py/(?:__main__|run))\.py)", '
)


class FirstFailure:
    """The first thing that went wrong."""

    def __init__(
        self,
        cause: str,
        rank: int | None = None,
        code: int | None = None,
        signal: int | None = None,
        message: str | Said = "",
        *,
        data: Said | None = None,
    ) -> None:
        self.data = data  # of a message that came as English text, and whose data is more than we can read
        self.cause, self.rank, self.code, self.signal, self.message = cause, rank, code, signal, message
        self.at = time.monotonic()
        self.taken = False  # by the launcher: its rank was killed for another one
        self.aborted: int | None = None  # the argument of the call by which its rank ended all

    def become(self, cause: str, rank: int, code: int | None) -> None:
        """Be that of another rank."""
        self.cause, self.rank, self.code, self.signal = cause, rank, code, None


def split_status(status: int) -> tuple[int | None, int | None]:
    """Split an exit status as a shell or `waitstatus_to_exitcode` gives it into (code, signal)."""
    if status < 0:
        return None, -status
    if SHELL < status <= SHELL + 64:
        return None, status - SHELL
    return status, None


def conclude(sandbox: RankSupervisor) -> dict[str, Any]:
    """Settle the ranks that did not report, find the cause and return what exit.json holds."""
    settle(sandbox)
    if not blame.aborter(sandbox):
        blame.leaver(sandbox)
    mark_stopped(sandbox)
    oom = bool(sandbox.groups.out_of_memory_kills())
    failure = sandbox.failure
    killed = _killed_for_memory(sandbox)
    if failure is not None and oom and failure.cause in ("signal", "program-error"):
        if failure.rank is None and killed:
            failure.rank = killed[0]
        if not sandbox.groups.ranks_apart or failure.rank in killed:
            failure.cause = "out-of-memory"
    sandbox.meter.conclude(oom=oom)
    cause = "stopped" if sandbox.stopped else failure.cause if failure else "ok"
    lead = sandbox.ranks[0]
    shown = sandbox.ranks[failure.rank] if failure and failure.rank is not None else None
    what = blame.after(sandbox, failure, describe(failure, sandbox)) if failure else ""
    started_at, finished_at = sandbox.ended()
    return {
        "cause": cause,
        "code": failure.code if failure else lead.code,
        "signal": failure.signal if failure else lead.signal,
        "rank": failure.rank if failure else None,
        "message": english(what) if isinstance(what, dict) else what,
        "said": what if isinstance(what, dict) else failure.data if failure else None,
        "tail": without_launcher(_tail(sandbox, shown.number if shown else None)) if failure else "",
        "oom": oom,
        "memory_kills": [] if failure and failure.cause == "out-of-memory" else killed,
        "ram_mib": sandbox.spec["limits"]["ram_mib"] or None,
        "hint": found[0] if (found := hint(failure, sandbox)) else None,
        "hint_limit": found[1] if found else 0,
        "stopped": sandbox.stopped,
        "ending": sandbox.ending.to_json(),
        "started_at": started_at,
        "first_line_at": sandbox.first_line_at,
        "finished_at": finished_at,
        "cpu_s": sandbox.groups.cpu_seconds(),
        "lost_lines": sandbox.lost_lines,
        "ranks": [{**rank.to_json(), **sandbox.meter.of(rank.number)} for rank in sandbox.ranks],
        "notes": sandbox.notes,
    }


def _killed_for_memory(sandbox: RankSupervisor) -> list[int]:
    """Return the ranks of which the kernel killed a process for lack of memory, as far as that can be told."""
    if len(sandbox.ranks) == 1:
        return [0] if sandbox.groups.out_of_memory_kills() else []
    return [rank.number for rank in sandbox.ranks if sandbox.groups.out_of_memory_kills(rank.number)]


def settle(sandbox: RankSupervisor) -> None:
    """Give each rank that did not report the end that the sandbox's own end implies."""
    status = sandbox.exit_code if sandbox.exit_code is not None else (sandbox.status or 0)
    code, signum = split_status(status)
    ranks = sandbox.ranks
    stderr = ranks[0].streams[1].tail if ranks[0].streams else sandbox.launcher.tail
    never = all(rank.state == "pending" for rank in ranks) and sandbox.exit_code is not None
    starters = ("bwrap: ", "setpriv: ", "env: ") if sandbox.host["mode"] == "root" else ("bwrap: ",)
    quiet = sandbox.failure is None and not sandbox.stopping
    broken = sandbox.exit_code is None and (sandbox.status or 0) > 0
    if quiet and (broken or (code and stderr.startswith(starters))):
        message = stderr.removeprefix("bwrap: ").replace("execvp", "cannot execute")
        last = message.splitlines()[-1] if message else msg("the sandbox could not be made")
        sandbox.failure = FirstFailure("start-failed", message=last)
        for rank in ranks:
            rank.end(None, None, excused=False)
    elif sandbox.mode == "single":
        if ranks[0].living:
            sandbox.rank_ended(ranks[0], code, signum)
    elif quiet and (not sandbox.is_success(code) or any(rank.living for rank in ranks)):
        if never and code:
            none = msg("the launcher ended with {code} before any rank started", code=code)
            sandbox.failure = FirstFailure("start-failed", None, code, signum, _last_line(stderr) or none)
        else:
            cause = "signal" if signum or not code else "program-error"
            sandbox.failure = FirstFailure(cause, None, code, signum or (None if code else _KILL))
    for rank in ranks:
        if rank.state == "running":
            rank.end(None, _KILL, excused=rank.asked and sandbox.failure is None)


def mark_stopped(sandbox: RankSupervisor) -> None:
    """Call a rank stopped that ended by a signal, or never began, only because of another or because it was asked to."""
    failure = sandbox.failure
    for rank in sandbox.ranks:
        if failure is None:
            stopped = rank.state == "pending" or rank.signal is not None
        elif rank.number == failure.rank or rank.code is not None:
            stopped = False
        else:
            killed = rank.signal in (_TERM, _KILL) and (failure.rank is not None or rank.asked)
            stopped = killed or rank.state == "pending"
        if stopped:
            rank.state = "stopped"


def describe(failure: FirstFailure, sandbox: RankSupervisor) -> str | Said:
    """Say in one sentence what happened."""
    if failure.message and failure.cause != "out-of-memory":
        return failure.message
    who = msg("rank {n}", n=failure.rank) if failure.rank is not None else msg("the launcher of the ranks")
    code = "-" if failure.code is None else failure.code
    if failure.cause == "out-of-memory":
        return _out_of_memory(who if failure.rank is not None else msg("a process"), failure.rank, sandbox)
    if failure.cause == "signal":
        return killed_by(who, failure.signal or 0)
    if error := exception_in(_tail(sandbox, failure.rank)):
        return msg("{who}: {error} (exit status {code})", who=who, error=error, code=code)
    if failure.aborted is not None:
        return msg("{who} called MPI_Abort({n}) (exit status {code})", who=who, n=failure.aborted, code=code)
    return msg("{who} ended with exit status {code}", who=who, code=code)


def _out_of_memory(who: Said, rank: int | None, sandbox: RankSupervisor) -> Said:
    """Say whose memory it was that ran out, and how much that is."""
    limits = sandbox.spec["limits"]
    ram, each = limits["ram_mib"], limits.get("rank_ram_mib") or 0
    if not each:
        return msg("{who} was killed: more memory than the {ram} MiB of this sandbox", who=who, ram=ram)
    if rank is not None and _had_its_own(sandbox, rank):
        return msg("{who} was killed: more memory than its {ram} MiB", who=who, ram=each)
    return msg(
        "{who} was killed: {n} ranks of {each} MiB share {ram} MiB here, and together used more",
        who=who,
        n=len(sandbox.ranks),
        each=each,
        ram=ram,
    )


def _had_its_own(sandbox: RankSupervisor, rank: int) -> bool:
    """Whether it was a limit of this rank alone that it came to."""
    return bool(sandbox.groups.ranks_apart) and sandbox.groups.memory_peak(rank) is None


def hint(failure: FirstFailure | None, sandbox: RankSupervisor) -> tuple[str, int] | None:
    """Return the cause behind a failure by the program's last words, and the number it is about (0: none).

    Causes are a missing network that the program looked for, and exhausted memory for files, processes
    or descriptors.
    """
    if failure is None or failure.cause != "program-error":
        return None
    tail, limits = _tail(sandbox, failure.rank), sandbox.spec["limits"]
    has = sandbox.spec["network"] == "outbound" or sandbox.host["mode"] == "open"
    if not has and looked_out(tail):
        return "no-network", 0
    held = sandbox.groups.memory_peak()  # None: all of it
    size = (limits.get("shm_mib") if "shm" in tail else 0) or limits["tmp_mib"]
    if full(tail) and sandbox.host["mode"] != "open" and (held is None or held >= size << 19):
        return "memory-files", size
    if refused_process(tail) and sandbox.groups.refused_processes():
        return "process-limit", limits["pids"]
    return descriptors(tail) or surprised(tail)


def killed_by(who: Said, number: int) -> Said:
    """Say that a signal ended somebody, with its name: nobody knows them by number."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    return msg("{who} was killed by signal {n} ({name})", who=who, n=number, name=name)


def surprised(tail: str) -> tuple[str, int] | None:
    """Tell how a job differs from a terminal or a notebook, if the program's last words are about that."""
    if _ASKED.search(tail):
        return "nobody-answers", 0
    if _missed_command(tail):
        return "command-missing", 0
    error = exception_in(tail)
    if error.startswith(_NO_MODULE):
        return "module-missing", 0
    if (name := _NO_NAME.match(error)) and (name[1] == "get_ipython" or _raised_in_text(tail)):
        return "own-program", 0
    if _NOT_FROM_HERE.search(tail) and not _CELL.search(tail):  # a notebook starts in its own directory
        return "starts-at-home", 0
    return None


def _missed_command(tail: str) -> bool:
    """Whether a script's shell missed a command, as its last words or before others that follow from it."""
    found = list(_NO_COMMAND.finditer(tail))
    last = bool(found) and not tail[found[-1].end() :].strip()
    return last or any(each[1] in _FROM_SETTINGS for each in found) or _CONDA.search(tail) is not None


def _raised_in_text(tail: str) -> bool:
    """Whether the last traceback ends in a program that came as text."""
    frames = _FRAME.findall(_RANK_OF_TORCH.sub("", tail))
    return bool(frames) and frames[-1].startswith(_TEXTS)


def full(tail: str) -> bool:
    """Whether a program's last words are of a full file system, and name none that is a disk."""
    return any(not _ON_DISK.search(line) for line in tail.splitlines() if _FULL.search(line))


def refused_process(tail: str) -> bool:
    """Whether a program's last words are of a process or thread that it could not start."""
    return _NO_PROCESS.search(tail) is not None


def descriptors(tail: str) -> tuple[str, int] | None:
    """Tell how many files a process may have open, where a program's last words are of too many."""
    if not _NO_FILE.search(tail):
        return None
    return "descriptor-limit", resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def looked_out(tail: str) -> bool:
    """Whether a program's last words are of another machine that it looked for in vain."""
    return _LOOKED_OUT.search(tail) is not None


def exception_in(text: str) -> str:
    """Find the line that names the exception which ended a Python program; empty when there is none."""
    text = _RANK_OF_TORCH.sub("", text)
    _, traceback, after = text.rpartition(_TRACEBACK)
    if traceback:  # its frames are indented; behind the exception may be more of its message, or other output
        first = _AFTER_TRACEBACK.search(after)
        return first[0][:_LONGEST] if first else ""
    found = _EXCEPTION.findall(after)
    return str(found[-1])[:_LONGEST] if found else ""


def without_launcher(text: str) -> str:
    """Remove the launcher's frames from tracebacks: those before the program's first own frame."""
    out: list[str] = []
    leading, dropped = True, False  # the text may begin within a traceback
    for line in text.split("\n"):
        if line.startswith("  File "):
            dropped = leading = leading and _LAUNCHER.match(line) is not None
        elif not (dropped and line.startswith("    ")):  # its line of source goes with a frame
            dropped = False
            leading = line.startswith(_TRACEBACK)
        if not dropped:
            out.append(line)
    return "\n".join(out)


def _tail(sandbox: RankSupervisor, number: int | None) -> str:
    if number is None:
        return (
            sandbox.ranks[0].streams[1].tail
            if sandbox.mode == "single" and sandbox.ranks[0].streams
            else (sandbox.launcher.tail)
        )
    streams = sandbox.ranks[number].streams
    return (streams[1].tail or streams[0].tail) if streams else sandbox.launcher.tail


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
