"""From an attempt to its sandbox: the job's directory, the program, the environment, the limits."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from mlp_hub.domain.resources import MILLI
from mlp_hub.executors import runtimes
from mlp_hub.executors.base import WORKSPACE, CannotStart, LaunchSpec
from mlp_hub.executors.sandbox import Bind, Limits, SandboxSpec, ensure_home, environment_binds

OWN = ("ckpt", "metrics")  # the program's to write
GIVEN = ("code", "log")  # written from outside only


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all attempts of this hub share: the jobs' Python, further binds (the platform's sockets), the mode."""

    python: str
    binds: tuple[Bind, ...] = ()
    outbound: bool = True


def make_directories(spec: LaunchSpec, *, root: bool) -> None:
    """Make the user's home where it is missing, and the job's directory so that its program can neither replace nor redirect what we write there.

    As root: the directory is ours and sticky, its user may make files in it; `log` and `code` are ours.
    """
    # a user may have jobs before the first notebook server
    ensure_home(Path(spec.home).parent, Path(spec.home).name, spec.uid if root else None)
    os.makedirs(spec.workspace, exist_ok=True)  # noqa: PTH103
    fd = os.open(spec.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if root and spec.uid is not None:
            os.fchown(fd, 0, spec.uid)
            os.fchmod(fd, 0o1770)
        for name in (*OWN, *GIVEN):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o750, dir_fd=fd)
            part = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            try:
                if root and spec.uid is not None:
                    os.fchown(part, spec.uid if name in OWN else 0, spec.uid)
                    os.fchmod(part, 0o750)
                if name == "code" and spec.code is not None:
                    _write_code(part, spec.code)
            finally:
                os.close(part)
    finally:
        os.close(fd)


def _write_code(directory: int, code: str) -> None:
    new = "main.py.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=directory)
    fd = os.open(
        new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=directory
    )
    with os.fdopen(fd, "wb") as file:
        file.write(code.encode())
        os.fchmod(file.fileno(), 0o644)
    os.rename(new, "main.py", src_dir_fd=directory, dst_dir_fd=directory)


def home_mount(user: str) -> str:
    """Return where a user's home is seen inside."""
    return "/home/" + (re.sub(r"[^A-Za-z0-9._@+-]", "_", user).lstrip(".") or "user")


def program(spec: LaunchSpec, python: str) -> tuple[str, ...]:
    """Return the command of one rank; raises `CannotStart` when its file does not exist."""
    if spec.code is not None:
        return (python, "-u", f"{WORKSPACE}/code/main.py", *spec.args)
    if not spec.entry:
        raise CannotStart("there is nothing to run: neither an entry nor code was given")
    mount = home_mount(spec.user)
    entry = spec.entry.removeprefix("~/").removeprefix(mount + "/")
    parts = PurePosixPath(entry).parts
    if entry.startswith("/") or ".." in parts:
        raise CannotStart(f"{spec.entry} is not in the home directory; give a path in it, such as train.py")
    _find(spec.home, parts, spec.entry)
    path = f"{mount}/{entry}"
    if entry.endswith(".py"):
        return (python, "-u", path, *spec.args)
    if entry.endswith(".sh"):
        return ("/bin/sh", path, *spec.args)
    return (path, *spec.args)


def _find(home: str, parts: tuple[str, ...], shown: str) -> None:
    """Look for the file without following links: where one is in the way, the sandbox will tell."""
    fd = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            try:
                found = os.stat(part, dir_fd=fd, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    break
                inner = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except (FileNotFoundError, NotADirectoryError):
                raise CannotStart(f"there is no file {shown} in the home directory") from None
            os.close(fd)
            fd = inner
        else:
            raise CannotStart(f"{shown} is a directory; name the program in it")
    finally:
        os.close(fd)


def environment(spec: LaunchSpec, python: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the ranks; the user's and the contract's variables come last."""
    home = home_mount(spec.user)
    threads = str(max(1, -(-spec.per_worker.cpu // MILLI)))
    return {
        "HOME": home,
        "USER": spec.user,
        "LOGNAME": spec.user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": f"{os.path.dirname(python)}:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin",  # noqa: PTH120
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "XDG_RUNTIME_DIR": "/tmp",  # noqa: S108
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": threads,
        "MLP_WORKSPACE": WORKSPACE,
        "MLP_RUNTIME": spec.runtime,
        **extra,
        **spec.env,
    }


def limits(spec: LaunchSpec) -> Limits:
    """Return what the ranks may take together."""
    ranks = spec.ranks
    ram = spec.per_worker.ram * ranks
    return Limits(
        cpu=spec.per_worker.cpu * ranks,
        ram_mib=ram,
        # a fork bomb stays far below what the machine has, libraries with a thread per core have room
        pids=(448 + 16 * (os.cpu_count() or 1)) * ranks,
        tmp_mib=max(64, ram // 2),
    )


def sandbox_spec(
    spec: LaunchSpec, around: Surroundings, gpus: Sequence[int], per_rank_gpus: Sequence[Sequence[int]]
) -> SandboxSpec:
    """Describe the sandbox of an attempt; raises `CannotStart`."""
    shape = runtimes.Shape(program(spec, around.python), spec.workers, spec.ps, around.python)
    start = runtimes.build(spec.runtime, shape)
    ranks = start.ranks
    env = environment(spec, around.python, start.env)
    if gpus and ranks.mode == "single":
        env["CUDA_VISIBLE_DEVICES"] = _visible(gpus, per_rank_gpus[0])
    elif gpus:
        envs = ranks.envs or ({},) * len(ranks.roles)
        ranks = replace(
            ranks,
            envs=tuple(
                {**env, "CUDA_VISIBLE_DEVICES": _visible(gpus, mine)}
                for env, mine in zip(envs, per_rank_gpus, strict=True)
            ),
        )
    log = f"{spec.workspace}/log"
    return SandboxSpec(
        id=spec.attempt,
        argv=start.argv,
        env=env,
        home_dir=spec.home,
        home_mount=home_mount(spec.user),
        log_dir=log,
        user_name=spec.user,
        uid=spec.uid,
        binds=(
            *environment_binds(around.python),
            *around.binds,
            Bind(spec.workspace, WORKSPACE, writable=True),
        ),
        limits=limits(spec),
        network="outbound" if spec.network == "outbound" and around.outbound else "none",
        gpus=tuple(gpus),
        ranks=ranks,
        time_limit=spec.time_limit,
        grace_s=spec.grace_s,
        hidden=(f"{WORKSPACE}/log",),
    )


def _visible(gpus: Sequence[int], mine: Sequence[int]) -> str:
    """Return a rank's devices as CUDA counts them inside: by their place among those that are there."""
    order = {index: place for place, index in enumerate(sorted(gpus))}
    return ",".join(str(order[index]) for index in mine)
