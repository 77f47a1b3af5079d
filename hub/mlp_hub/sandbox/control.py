"""Launch, inspect, signal, stop and remove sandboxes by their run directories."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal as signals
import subprocess
import sys
import time
import zlib
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlp_hub.domain.text import one_line, readable
from mlp_hub.sandbox import shim
from mlp_hub.sandbox.capabilities import Capabilities, capabilities
from mlp_hub.sandbox.errors import SandboxUnavailable
from mlp_hub.sandbox.fork_server import ForkServer
from mlp_hub.sandbox.open_mode import translate
from mlp_hub.sandbox.shim import cgroups, files
from mlp_hub.sandbox.shim.logs.losses import count_of
from mlp_hub.sandbox.shim.main import CLAIMED, failed_start
from mlp_hub.sandbox.spec import SandboxSpec
from mlp_hub.sandbox.state import ABSENT, SandboxExit, SandboxPhase, SandboxState, rank_state

SHIM = str(
    Path(shim.__file__).resolve().parent / "__main__.py"
)  # of this version, whatever is installed later
_CLAIM = ("pid", "start", "boot")
ANSWERS_S = 5.0
"""Tuning: seconds until a shim that was told to end all at once is killed itself: its word on the end, for those who wait."""
Why = tuple[str, str, Any]
"""Reason for a request to end: a cause, a message, and the message as data."""
_OUTSIDE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def prepare(spec: SandboxSpec, run_dir: str, caps: Capabilities | None = None) -> bool:
    """Write the run directory; return `False` if a shim claimed it before and nothing has to be done.

    Files that must be written into it later have their room from now on. Without that room, nothing
    starts. From here on an end of the machine counts as the sandbox's: it is not started in another
    boot.
    """
    caps = caps or capabilities()
    _check(spec, caps)
    Path(run_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.path.lexists(f"{run_dir}/claim"):
        return False
    host = {
        "mode": caps.mode,
        "bwrap": caps.bwrap,
        "proc": caps.proc,
        "disable_userns": caps.disable_userns,
        "cgroup": caps.cgroup,
        "bases": dict(caps.bases),
        "group": _group_name(spec.id, run_dir),
        "seccomp": b64encode(caps.seccomp).decode() if caps.seccomp else None,
        "wayout": asdict(caps.wayout) if caps.wayout else None,
    }
    described = translate(spec) if caps.mode == "open" else spec
    content = {"boot": files.boot_id(), "host": host, "spec": described.to_json()}
    _reserve(run_dir, len(spec.ranks.roles) if spec.ranks else 1)
    files.write_json(run_dir, "spec.json", content, durable=True)
    files.sync_directory(str(Path(run_dir).parent))
    return True


def launch(spec: SandboxSpec, run_dir: str, fork_server: ForkServer | None = None) -> None:
    """Start the sandbox unless this run directory ever started one; blocks for some 20 ms.

    Returns once its shim has claimed the run directory: from then on neither the caller's death nor a second
    call changes anything. With a fork server its shim is forked from there, which takes 2 ms. Raises
    `SandboxUnavailable` where the machine allows no such sandbox, `ValueError` when the spec is wrong and
    `OSError` when the run directory cannot be written or no shim comes up.
    """
    if not prepare(spec, run_dir):
        return
    ready, ready_w = os.pipe()
    try:
        try:
            if fork_server is not None:
                fork_server.ask(run_dir, ready_w)
            else:
                _spawn(run_dir, ready_w)
        finally:
            os.close(ready_w)
        answer = os.read(ready, 1)
    finally:
        os.close(ready)
    check_claimed(run_dir, answer)


def check_claimed(run_dir: str, answer: bytes) -> None:
    """Raise `OSError` unless a shim has claimed the run directory, now or before."""
    if answer == CLAIMED or os.path.lexists(f"{run_dir}/claim"):
        return
    log = Path(run_dir, "shim.err")
    said = log.read_text(errors="replace")[-500:] if log.exists() else ""
    raise OSError(f"the sandbox's shim did not start in {run_dir}: {said.strip() or 'it said nothing'}")


def record_failure(run_dir: str, message: str, said: dict[str, Any] | None = None) -> None:
    """Record that the sandbox could not even be described: it counts as started, and as failed. `said`: the message as data."""
    Path(run_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    _reserve(run_dir, 1)
    if not files.claim(run_dir, 0):
        return
    end = failed_start(message, said=said)
    files.write_json(run_dir, "exit.json", end, durable=True)


def _reserve(run_dir: str, ranks: int) -> None:
    """Keep room for the claim, for a stop and for the end with the results of each rank."""
    for name, size in (("claim", 4096), ("stop.json", 4096), ("exit.json", (48 << 10) + 512 * ranks)):
        files.reserve(run_dir, name, size)


def _spawn(run_dir: str, ready: int) -> None:
    subprocess.run(  # it forks and ends at once
        [sys.executable, "-IS", SHIM, run_dir, str(ready)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_OUTSIDE,
        cwd="/",
        pass_fds=(ready,),
        start_new_session=True,
        check=False,
    )


def _check(spec: SandboxSpec, caps: Capabilities) -> None:
    if caps.mode is None:
        reasons = "; ".join(f"{m.what}: {m.effect}. Remedy: {m.remedy}" for m in caps.missing)
        raise SandboxUnavailable(f"no sandbox can be made on this machine. {reasons}")
    if spec.network == "outbound" and not caps.outbound and caps.mode != "open":
        raise SandboxUnavailable("network outbound was asked for, but slirp4netns cannot be used here")
    if caps.mode in ("root", "root-userns") and not spec.uid:
        raise ValueError("a hub that runs as root needs a uid above 0 for each sandbox")
    for text in (spec.user_name, spec.home_mount, spec.hostname):
        if not text or re.search(r"[:\n\0]", text):
            raise ValueError(
                f"{text!r} cannot stand in a sandbox's accounts: it is empty, or has a colon or a line end"
            )
    for text in (*spec.argv, *spec.env, *spec.env.values()):
        if "\0" in text:
            raise ValueError(f"{text[:40]!r} holds a NUL character")
    for key in spec.env:
        if not key or "=" in key:
            raise ValueError(f"{key!r} is no name of an environment variable")


def _group_name(name: str, run_dir: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:80].lstrip(".")
    return f"{safe}-{zlib.crc32(os.path.abspath(run_dir).encode()):08x}"  # noqa: PTH100


def inspect(run_dir: str) -> SandboxState:
    """Return the state of the sandbox; it takes some 0.1 ms.

    If a decisive file of it cannot be read, the sandbox is lost, and the state names the file.
    """
    try:
        return _inspect(run_dir)
    except files.UnreadableFile as torn:
        lost_lines = count_of(run_dir)
        return SandboxState(SandboxPhase.LOST, unreadable=torn.path, holds=torn.what, lost_lines=lost_lines)


def _inspect(run_dir: str) -> SandboxState:
    # how it ended is known whatever became of the claim, which is not brought to disk: it is of one boot only
    if (end := _exited(run_dir)) is not None:
        return end
    claim = files.read_json(run_dir, "claim", *_CLAIM)
    if claim is None:
        spec = files.read_json(run_dir, "spec.json", "boot")
        lost = spec is not None and spec["boot"] != files.boot_id()
        return SandboxState(SandboxPhase.LOST, lost_lines=count_of(run_dir)) if lost else ABSENT
    alive = _alive(claim)
    state: dict[str, Any] = files.read_json_if_whole(run_dir, "state.json") or {}
    if not alive:  # it may have ended between the two looks
        if (end := _exited(run_dir)) is not None:
            return end
        phase = SandboxPhase.LOST
    else:
        phase = SandboxPhase.RUNNING if state.get("started_at") else SandboxPhase.STARTING
    return SandboxState(
        phase,
        claim["pid"],
        state.get("child"),
        state.get("started_at"),
        tuple(map(rank_state, state.get("ranks", ()))),
        first_line_at=state.get("first_line_at"),
        notes=tuple(state.get("notes", ())),
        memory=tuple(state.get("memory", ())),
        remark=state.get("remark"),
        lost_lines=0 if alive else count_of(run_dir),
    )


def _exited(run_dir: str) -> SandboxState | None:
    """Return how it ended; `None` where that is not written down."""
    done = files.read_json(run_dir, "exit.json")
    if done is None:
        return None
    claim = files.read_json_if_whole(run_dir, "claim", *_CLAIM) or {"pid": None}
    try:
        return _end_of(claim, done)
    except (LookupError, TypeError, AttributeError) as error:
        raise files.UnreadableFile(f"{run_dir}/exit.json", "other JSON than what belongs there") from error


def _end_of(claim: dict[str, Any], done: dict[str, Any]) -> SandboxState:
    end = SandboxExit(
        done["cause"],
        done["finished_at"],
        done["code"],
        done["signal"],
        done["rank"],
        one_line(done["message"]),  # both may be the tenant's words
        readable(done["tail"]),
        done["oom"],
        done["stopped"],
        done["cpu_s"],
        done.get("lost_lines", 0),
        done.get("ram_mib"),
        _one_line_each(done.get("said")),
        asked_at=(done.get("ending") or {}).get("asked_at"),
        killed=(done.get("ending") or {}).get("killed", False),
        hint=done.get("hint"),
        hint_limit=done.get("hint_limit", 0),
        memory_kills=tuple(done.get("memory_kills", ())),
    )
    ranks = tuple(map(rank_state, done["ranks"]))
    return SandboxState(
        SandboxPhase.EXITED,
        claim["pid"],
        None,
        done["started_at"],
        ranks,
        end,
        done.get("first_line_at"),
        tuple(done["notes"]),
    )


def _one_line_each(said: Any) -> Any:
    """Return a sentence as data with each value made one line, because some are the tenant's words."""
    if isinstance(said, dict):
        return {name: _one_line_each(value) for name, value in said.items()}
    return one_line(said) if isinstance(said, str) else said


def _alive(claim: dict[str, Any]) -> bool:
    start: int | None = claim["start"]
    return start is not None and claim["boot"] == files.boot_id() and files.start_time(claim["pid"]) == start


def main_processes(run_dir: str) -> list[int]:
    """List the host's numbers of the program's main processes: each rank's, or the command's."""
    state = files.read_json_if_whole(run_dir, "state.json", "child", "child_start", "ranks")
    if not state or not state["child"] or files.start_time(state["child"]) != state["child_start"]:
        return []
    ranks = [
        rank["pid"]
        for rank in state["ranks"]
        # a rank of which only a lie is left may have a number that is another process's now
        if rank["pid"] and rank["state"] == "running" and files.start_time(rank["pid"]) == rank["start"]
    ]
    return ranks or files.children(state["child"])


def signal(run_dir: str, signum: int) -> int:
    """Send a signal to the program's main processes (each rank's, or the command's); return to how many."""
    return sum(files.send_signal(pid, signum) for pid in main_processes(run_dir))


def stop(run_dir: str, grace_s: float, why: Why | None = None) -> None:
    """Ask the program to end (SIGTERM), kill it after the grace; returns at once, may be repeated.

    A shorter grace than an earlier call's wins. `why`, a cause, a message and the same as data, makes it a failure: the first one
    told counts.
    """
    claim = files.read_json_if_whole(run_dir, "claim", *_CLAIM)
    if claim is None or os.path.lexists(f"{run_dir}/exit.json"):
        return
    # `ends` is of the machine's steady clock, which nobody sets; shims of earlier versions know `deadline` only
    deadline, ends = time.time() + grace_s, time.monotonic() + grace_s
    earlier = files.read_json_if_whole(run_dir, "stop.json", "deadline")
    if earlier:
        deadline, why = min(deadline, earlier["deadline"]), earlier.get("why", why)
        ends = min(ends, earlier.get("ends", ends))
    files.write_json(run_dir, "stop.json", {"deadline": deadline, "ends": ends, "why": why})
    if _alive(claim):
        files.send_signal(claim["pid"], signals.SIGTERM, claim["start"])


def why_stopped(run_dir: str) -> Why | None:
    """Return the reason with which the program was asked to end; None without one."""
    why = (files.read_json_if_whole(run_dir, "stop.json", "deadline") or {}).get("why")
    return None if not why else (why[0], why[1], why[2])


def limit(run_dir: str, time_limit: float | None) -> None:
    """Limit the program to `time_limit` seconds from its start, None for no limit; can be repeated."""
    claim = files.read_json_if_whole(run_dir, "claim", *_CLAIM)
    if claim is None or os.path.lexists(f"{run_dir}/exit.json"):
        return
    files.write_json(run_dir, "limit.json", {"time_limit": time_limit})
    if _alive(claim):
        files.send_signal(claim["pid"], signals.SIGTERM, claim["start"])


def kill(run_dir: str, why: Why | None = None) -> None:
    """End the sandbox now, whatever state its shim is in; returns when nothing of it lives any more. `why` as for `stop`."""
    if _end(run_dir, why):
        remove_leftovers(run_dir)


def _end(run_dir: str, why: Why | None = None) -> bool:
    """End the shim with all that is inside; False if nobody can tell who that is: then only what is inside was killed."""
    claim = files.read_json_if_whole(run_dir, "claim", *_CLAIM)
    if claim is None:
        _kill_inside(run_dir)
        return False
    with contextlib.suppress(OSError):  # where it cannot even be asked
        stop(run_dir, 0.0, why)
    if not _wait(claim, ANSWERS_S) and _alive(claim):  # everything inside dies with it
        files.send_signal(claim["pid"], signals.SIGKILL, claim["start"])
        _wait(claim, 5.0)
    return True


def _kill_inside(run_dir: str) -> None:
    """End the process that is 1 inside, and all with it, where nobody can tell who watches over it."""
    state = files.read_json_if_whole(run_dir, "state.json", "child", "child_start")
    if state and state["child"] and state["child_start"]:
        files.send_signal(state["child"], signals.SIGKILL, state["child_start"])


def _wait(claim: dict[str, Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while _alive(claim):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def ran_out(run_dir: str) -> bool:
    """Whether a shim was killed since it took more memory than it may; to be asked before `remove_leftovers`."""
    content = _of_this_boot(run_dir)
    return content is not None and _groups(content).shim_out_of_memory()


def remove_leftovers(run_dir: str) -> None:
    """Remove what a shim that was killed could not: its groups with all that is in them, and its socket."""
    content = _of_this_boot(run_dir)
    if content is None:
        return
    _groups(content).remove()
    if listen := content["spec"]["listen"]:
        Path(listen).unlink(missing_ok=True)


def _of_this_boot(run_dir: str) -> dict[str, Any] | None:
    content = files.read_json_if_whole(run_dir, "spec.json", "boot", "host", "spec")
    return None if content is None or content["boot"] != files.boot_id() else content


def _groups(content: dict[str, Any]) -> cgroups.Groups:
    host = content["host"]
    return cgroups.Groups(host["cgroup"], host["bases"], host["group"])


def remove(run_dir: str) -> None:
    """Kill what is left and delete the run directory."""
    _end(run_dir)
    remove_leftovers(run_dir)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(run_dir) as found:
        # the claim goes last: as long as anything is there the attempt counts as started
        for entry in sorted(found, key=lambda entry: entry.name == "claim"):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)  # noqa: PTH108 - paths of run directories are text
    shutil.rmtree(run_dir, ignore_errors=True)
