"""One shim: claims its run directory, runs the sandbox, leaves exit.json."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
from typing import Any, NoReturn

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.supervise import AGAIN_S, RankSupervisor

CLAIMED, TAKEN = b"+", b"="


def run(run_dir: str, ready: int) -> NoReturn:
    """Be the shim of this run directory; `ready` is told `+` once it is ours, `=` when somebody else has it."""
    with contextlib.suppress(PermissionError):  # we may lead a session already
        os.setsid()
    os.umask(0o077)
    files.name_process("mlp-shim")
    os.chdir("/")
    _detach(run_dir)
    wake = _signals()
    if not files.claim(run_dir, os.getpid()):
        _answer(ready, TAKEN)
        os._exit(0)
    gc.disable()  # short, or idle: nothing to collect
    content: dict[str, Any] = files.read_json(run_dir, "spec.json") or {}
    supervisor = RankSupervisor(run_dir, content["spec"], content["host"])
    try:
        try:
            supervisor.listen()  # before anybody is told, who may connect at once
        finally:
            _answer(ready, CLAIMED)
        result = supervisor.run(wake)
    except Exception as error:  # noqa: BLE001 - whatever it is, the attempt must end and say why
        import traceback  # noqa: PLC0415 - each shim would hold it

        with contextlib.suppress(OSError):  # where our errors go may be full
            traceback.print_exc()
        supervisor.abandon()
        result = failed_start(str(error) or type(error).__name__, supervisor)
        if isinstance(error, OSError) and files.is_full(error) and supervisor.started_at is None:
            result["cause"] = (
                "node-lost"  # nothing ran, and it is none of the program's doing: it will be tried again
            )
    result["notes"] += supervisor.leave_groups()
    if listen := content["spec"]["listen"]:
        with contextlib.suppress(OSError):
            os.unlink(listen)
    if supervisor.control:
        import shutil  # noqa: PLC0415 - each shim would hold it

        shutil.rmtree(supervisor.control, ignore_errors=True)
    _last_word(run_dir, result)
    os._exit(0)


def _answer(ready: int, what: bytes) -> None:
    """Send an answer to the starter; if that is dead, its successor finds the claim."""
    with contextlib.suppress(BrokenPipeError):
        os.write(ready, what)
    os.close(ready)


def _last_word(run_dir: str, result: dict[str, Any]) -> None:
    """Leave exit.json, however long that takes: without it what ended well would be run once more."""
    while os.path.isdir(run_dir):
        try:
            return files.write_json(run_dir, "exit.json", result, durable=True)
        except OSError:
            time.sleep(AGAIN_S)
    return None


def failed_start(
    message: str, supervisor: RankSupervisor | None = None, said: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return what exit.json holds when the platform itself failed; `said` is the message as data."""
    return {
        "cause": "start-failed",
        "code": None,
        "signal": None,
        "rank": None,
        "message": message,
        "said": said,
        "tail": "",
        "oom": False,
        "stopped": supervisor.stopped if supervisor else False,
        "started_at": supervisor.started_at if supervisor else None,
        "finished_at": time.time(),
        "cpu_s": None,
        "lost_lines": supervisor.lost_lines if supervisor else 0,
        "ranks": [rank.to_json() for rank in supervisor.ranks] if supervisor else [],
        "notes": supervisor.notes if supervisor else [],
    }


def _detach(run_dir: str) -> None:
    """Leave nothing of the starter's open; our own errors go into the run directory."""
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    log = os.open(f"{run_dir}/shim.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    os.close(null)
    os.close(log)


def _signals() -> int:
    """Have signals wake the loop; return the descriptor that becomes readable."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for one in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(one, lambda _signum, _frame: None)
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGQUIT):
        signal.signal(one, signal.SIG_IGN)
    return read
