"""Builds of environments with uv, each step in a separate sandbox.

The step that fetches packages has a network, and runs no code of a package. Only wheels are
accepted, which run no code when they are installed. The step that compiles them starts no Python
that would load them, and has no network. A sandbox sees the directory that it fills, the platform's
Python and no user's files. Its run directory has the name of the result. So a new start first ends
the processes that an earlier service left running.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shlex
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from mlp_hub import sandbox
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime.environment import MOST_LOCK
from mlp_hub.domain.stored.storage import ARRIVING
from mlp_hub.executors.environments import BuildFailed, BuildSteps
from mlp_hub.executors.local import kernels
from mlp_hub.executors.local.package_index import PackageIndex
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Acting
from mlp_hub.executors.shared_volume.trees.removal import remove_directory, remove_directory_in
from mlp_hub.executors.shared_volume.trees.sizes import charge_of, entries_beyond, space_of
from mlp_hub.executors.workspace import Extent, StoredPlace
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox import (
    ENVIRONMENTS_AT,
    Bind,
    Limits,
    SandboxPhase,
    SandboxSpec,
    SandboxUnavailable,
    environment_binds,
)
from mlp_language.message import msg, verbatim

T = TypeVar("T")
LOOK_S = 0.1
"""Tuning: seconds between two looks whether a step is over: sooner, for less work."""
MEASURE_S = 2.0
"""Tuning: seconds between two measurements of the files: less beyond the quota, for the disk."""
LIMITS = Limits(cpu=1000, ram_mib=2048, pids=512, tmp_mib=512, cpu_max=2000)
"""Safety: amounts of this machine that one step may take, outside of any quota."""
LAST = 4096
"""Safety: bytes of a step's output that are told."""
MOST_FILES = 500_000
"""Limit of data: files, links and directories of an environment."""
BASE = ".base"
"""Given: name of the file in an environment that says for which Python it was made."""
_HOME, _UV = "/home/build", "/opt/mlp/uv"
_REQUIREMENTS, _LOCK, _CACHE = "requirements.in", "lock.txt", ".cache"
_OVER = (SandboxPhase.EXITED, SandboxPhase.LOST, SandboxPhase.ABSENT)
_ADDRESS = re.compile(r"(?<=://)[^/@\s]+@")
_FINISH = """
import compileall, py_compile, site, sys
packages, own = sys.argv[1], sys.argv[2:]
with open(packages + "/zz-mlp-base.pth", "w") as file:
    file.writelines(f"import site; site.addsitedir({path!r})\\n" for path in own)
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir(packages, maxlevels=50, quiet=2, workers=2, invalidation_mode=mode)
"""
"""Last program of the platform's Python: its packages follow the environment's; files are compiled.

None of them are loaded.
"""


@dataclass(frozen=True, slots=True)
class _Step:
    command: str  # of a shell
    network: str
    talks: bool  # with the index


class LocalEnvironments:
    """Makes environments beside the datasets of `directories`; `builds` has a directory for each that is being made, of the platform's own.

    `python` is the interpreter that jobs have without an environment. `at_once` are made at a time, of a team one. One step
    may take `step_s` seconds.
    """

    def __init__(
        self,
        builds: Path,
        directories: Directories,
        fence: Acting,
        python: str,
        index: PackageIndex,
        *,
        at_once: int = 3,
        step_s: float = 1800.0,
    ) -> None:
        self._step_s = step_s
        self._builds, self._directories, self._fence = builds, directories, fence
        self._python, self._index = python, index
        self._makers = ThreadPoolExecutor(at_once, "environments")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by tenant
        self._enders = ThreadPoolExecutor(1, "ended environments")

    @property
    def base(self) -> str:
        """The Python that environments are made for, and beside which they lie."""
        return base_of(self._python)

    async def lock(
        self, of: StoredPlace, requirements: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> str:
        """Resolve requirements."""

        def lock() -> str:
            with self._at_work(of, owner, epoch) as arriving:
                with DirHandle.at(arriving) as folder:
                    _write(folder, _REQUIREMENTS, requirements)
                self._run(of, arriving, _compile_command(self._python), owner, steps)
                with DirHandle.at(arriving) as folder, folder.read(_LOCK) as file:
                    text = file.read(MOST_LOCK + 1)
                if len(text) > MOST_LOCK:
                    raise BuildFailed(
                        msg("the lock has more than {most} bytes; name fewer packages", most=f"{MOST_LOCK:,}")
                    )
                return text.decode("utf-8", "replace")

        return await self._in_turn(of.tenant, lock, steps)

    async def install(
        self, of: StoredPlace, lock: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> Extent:
        """Install the packages of a lock; a directory of the final name is always whole."""

        def install() -> Extent:
            with self._at_work(of, owner, epoch) as arriving:
                final = self._directories.stored(of)
                if final.is_dir():
                    return _extent(final, steps.check_cancelled)
                with DirHandle.at(arriving) as folder:
                    _write(folder, _LOCK, lock)
                for step in _install_commands(self._python, of.name):
                    self._run(of, arriving, step, owner, steps)
                extent = self._settle(arriving, of.name, steps)
                with DirHandle.at(arriving) as folder, DirHandle.at(final.parent) as shelf:
                    folder.move(of.name, shelf, of.name)
                    os.fsync(shelf.fd)
                return extent

        return await self._in_turn(of.tenant, install, steps)

    async def offer(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Write its kernel."""

        def offer() -> None:
            with self._fence.acting(epoch), self._directories.using(of, write=True) as top:
                kernels.offer(top.parent, name, of.name)

        await asyncio.get_running_loop().run_in_executor(self._enders, offer)

    async def withdraw(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Remove its kernel."""

        def withdraw() -> None:
            with self._fence.acting(epoch), self._directories.using(of, write=True) as top:
                kernels.withdraw(top.parent, name)

        await asyncio.get_running_loop().run_in_executor(self._enders, withdraw)

    async def forget(self, of: StoredPlace, *, epoch: int) -> None:
        """End what makes it."""

        def end() -> None:
            with self._fence.acting(epoch), self._directories.using(of, write=True):
                self._end(of)
                remove_directory(self._directories.all_of(of)[1])

        await asyncio.get_running_loop().run_in_executor(self._enders, end)

    # ------------------------------------------------------------- in threads

    async def _in_turn(self, tenant: str, work: Callable[[], T], steps: BuildSteps) -> T:
        """Work in a thread; a tenant whose steps are many or never end keeps only its own waiting."""
        async with self._turns.setdefault(tenant, asyncio.Lock()):
            steps.check_cancelled()  # it may have waited for long
            return await asyncio.get_running_loop().run_in_executor(self._makers, work)

    @contextlib.contextmanager
    def _at_work(self, of: StoredPlace, owner: int | None, epoch: int) -> Iterator[Path]:
        """Yield the empty directory that the sandboxes fill; nothing of it, or of them, is left afterwards."""
        _check_sandboxes()
        with self._fence.acting(epoch), self._directories.using(of, write=True):
            self._end(of)
            final, arriving = self._directories.all_of(of)
            remove_directory(arriving)
            try:
                yield self._make_directories(of, final, owner)
            finally:
                self._end(of)
                remove_directory(arriving)

    def _make_directories(self, of: StoredPlace, final: Path, owner: int | None) -> Path:
        with (
            sandbox.open_environments(final.parent.parent.parent, of.user) as shelf,
            shelf.inside(ARRIVING, make=0o700) as all_,
            all_.inside(of.name, make=0o755) as arriving,
        ):
            if owner is not None:
                arriving.give(owner, owner)
        build = self._build_of(of)
        build.mkdir(mode=0o700, parents=True)
        with DirHandle.at(build) as folder, folder.inside("home", make=0o700) as home:
            folder.make("log", 0o700)
            if owner is not None:
                home.give(owner, owner)
        return final.parent / ARRIVING / of.name

    def _build_of(self, of: StoredPlace) -> Path:
        return self._builds / f"{of.user}-{of.name}"

    def _end(self, of: StoredPlace) -> None:
        build = self._build_of(of)
        if build.is_dir():
            sandbox.remove(str(build / "run"))
            remove_directory(build)

    def _run(
        self, of: StoredPlace, arriving: Path, step: _Step, owner: int | None, steps: BuildSteps
    ) -> None:
        """Run one step to its end; raises `BuildFailed` with the last that it said."""
        build = self._build_of(of)
        run_dir = str(build / "run")
        sandbox.remove(run_dir)
        _check_on(arriving, steps)
        try:
            sandbox.launch(self._spec(of, arriving, build, step, owner), run_dir)
        except (SandboxUnavailable, ValueError) as error:
            raise BuildFailed(verbatim(str(error))) from error
        began, measured, said = time.monotonic(), time.monotonic(), ""
        while (state := sandbox.inspect(run_dir)).phase not in _OVER:
            time.sleep(LOOK_S)
            _check_on(arriving, steps)
            if (now := _last_lines(build)) != said:
                said = now
                steps.report_output(said)
            if time.monotonic() - measured > MEASURE_S:
                steps.admit(max(charge_of([arriving / _CACHE]), charge_of([arriving / of.name])))
                measured = time.monotonic()
            if time.monotonic() - began > self._step_s:
                raise BuildFailed(
                    msg("it took longer than {n} minutes; name fewer packages", n=int(self._step_s / 60))
                )
        said = _last_lines(build)
        steps.report_output(said)
        if state.exit is None:
            raise OSError(errno.EIO, "the sandbox that makes an environment has vanished")
        if state.exit.oom:
            raise BuildFailed(
                msg("it took more than {n} MiB of memory; name fewer packages", n=LIMITS.ram_mib)
            )
        if state.exit.code != 0:
            raise BuildFailed(verbatim(said.removeprefix("error: ") or state.exit.message))

    def _spec(
        self, of: StoredPlace, arriving: Path, build: Path, step: _Step, owner: int | None
    ) -> SandboxSpec:
        from uv import find_uv_bin  # noqa: PLC0415 - who makes no environment needs none

        index = self._index if step.talks else PackageIndex({})
        return SandboxSpec(
            id=f"environment-{of.name}",
            argv=("/bin/sh", "-ec", step.command),
            env={
                "HOME": _HOME,
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "NO_COLOR": "1",
                "UV_CACHE_DIR": f"{ENVIRONMENTS_AT}/{_CACHE}",
                "UV_LINK_MODE": "hardlink",
                "UV_NO_CONFIG": "1",
                "UV_NO_PROGRESS": "1",
                "UV_PYTHON_DOWNLOADS": "never",
                **index.variables,
            },
            home_dir=str(build / "home"),
            home_mount=_HOME,
            log_dir=str(build / "log"),
            user_name="build",
            uid=owner,
            binds=(
                *environment_binds(self._python),
                Bind(find_uv_bin(), _UV),
                *(Bind(file, file, optional=True) for file in index.files),
                Bind(str(arriving), ENVIRONMENTS_AT, writable=True),
            ),
            cwd=ENVIRONMENTS_AT,
            limits=LIMITS,
            network=step.network,
        )

    def _settle(self, arriving: Path, name: str, steps: BuildSteps) -> Extent:
        """Make what was installed the platform's, for everybody to read, and sure to outlive a power cut."""
        with DirHandle.at(arriving) as folder, folder.inside(name) as top:
            remove_directory_in(top, BASE)  # a package may have brought whatever it likes
            _write(top, BASE, self.base)
            remove_directory_in(folder, _CACHE)
            extent = _settled(top, steps.check_cancelled)
        steps.admit(extent.size)
        os.sync()
        return extent


def base_of(python: str) -> str:
    """Describe a Python: where it is, and its version."""
    version = sys.version.split()[0] if python == sys.executable else str(Path(python).resolve().name)
    return f"{version} {python}"


def is_for(directory: Path, base: str) -> bool:
    """Tell whether the environment in a directory was made for a Python."""
    try:
        with DirHandle.at(directory) as folder, folder.read(BASE) as file:
            return file.read(4096).decode("utf-8", "replace") == base
    except OSError:
        return False


def _check_sandboxes() -> None:
    caps = sandbox.capabilities()
    if caps.mode in (None, "open"):
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "environments are made in sandboxes, and this machine has none; mlp-hub doctor shows the reason"
            ),
        )
    if not caps.outbound:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "packages are fetched over a network, which sandboxes of this machine cannot have; mlp-hub doctor shows the reason"
            ),
        )


def _compile_command(python: str) -> _Step:
    words = (
        _UV,
        "pip",
        "compile",
        "--quiet",
        "--python",
        python,
        "--only-binary",
        ":all:",
        "--generate-hashes",
    )
    more = ("--no-header", "--no-annotate", "--output-file", _LOCK, _REQUIREMENTS)
    return _Step(shlex.join((*words, *more)), "outbound", talks=True)


def _install_commands(python: str, name: str) -> tuple[_Step, ...]:
    here = f"{ENVIRONMENTS_AT}/{name}"
    inside = f"{here}/bin/python"
    make = (_UV, "venv", "--quiet", "--no-project", "--python", python, here)
    sync = (_UV, "pip", "sync", "--python", inside, "--require-hashes", "--only-binary", ":all:", _LOCK)
    own = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    packages = f"{here}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    finish = (python, "-I", "-c", _FINISH, packages, *own)
    return (
        _Step(f"{shlex.join(make)} && {shlex.join(sync)}", "outbound", talks=True),
        _Step(shlex.join(finish), "none", talks=False),
    )


def _check_on(arriving: Path, steps: BuildSteps) -> None:
    """Raise where a step must not continue, or the disk has too little left for it."""
    steps.check_cancelled()
    if (space := space_of(arriving)) is not None:
        steps.leaves(space)


def _write(folder: DirHandle, name: str, text: str) -> None:
    with folder.create(name, 0o644) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _last_lines(build: Path) -> str:
    """Return the end of a step's output, without times and without credentials of the index."""
    try:
        with DirHandle.at(build / "log") as folder, folder.read("rank-0.log") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LAST))
            lines = file.read(LAST).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    words = (line.split(" ", 3) for line in (lines[1:] if size > LAST else lines))
    return _ADDRESS.sub("", "\n".join(each[3] for each in words if len(each) == 4)).strip()


def _settled(top: DirHandle, check_cancelled: Callable[[], None]) -> Extent:
    """Give all entries below to the platform; raise `BuildFailed` for other kinds than file, directory, link."""
    root = os.geteuid() == 0
    files = size = entries = 0
    left: list[tuple[str, ...]] = [()]
    while left:
        names = left.pop()
        check_cancelled()
        with top.deep_inside(names) as folder:
            if root:
                folder.give(0, 0)
            os.fchmod(folder.fd, 0o755)
            for name, found in _entries(folder):
                entries += 1
                if stat.S_ISDIR(found.st_mode):
                    left.append((*names, name))
                elif stat.S_ISLNK(found.st_mode):
                    if root:
                        os.chown(name, 0, 0, dir_fd=folder.fd, follow_symlinks=False)
                elif stat.S_ISREG(found.st_mode):
                    with folder.read(name) as file:
                        if root:
                            os.fchown(file.fileno(), 0, 0)
                        os.fchmod(file.fileno(), 0o755 if found.st_mode & 0o100 else 0o644)
                    files, size = files + 1, size + found.st_size
                else:
                    raise BuildFailed(msg("a package contains {name}, which is not a file", name=name))
        if entries > MOST_FILES or len(names) > 60:
            raise BuildFailed(
                msg("it has more than {most} files; name fewer packages", most=f"{MOST_FILES:,}")
            )
    return Extent(files, size + entries_beyond(entries))


def _entries(folder: DirHandle) -> Sequence[tuple[str, os.stat_result]]:
    with folder.entries() as found:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]


def _extent(top: Path, check_cancelled: Callable[[], None]) -> Extent:
    check_cancelled()
    return Extent(0, charge_of([top]))
