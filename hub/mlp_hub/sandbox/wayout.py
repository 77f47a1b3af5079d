"""Find out by trying how slirp4netns, which is sandboxes' way out, can run here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.sandbox import shim

_NOBODY = 65534
_WORDS = {
    "tenant": "as each user, without rights, in its sandbox's limits",
    "root": "as root, in its own sandbox",
    "hub": "as the hub's own user",
}


_OWN_USER = "slirp4netns as the user's own"
_AS_ROOT = "it takes apart what sandboxes send as root, in its own sandbox only"
_AS_HUB = (
    _OWN_USER,
    "it takes apart what sandboxes send as the hub's own user, who can read all of the hub",
    "run the hub as root, or set MLP_NOTEBOOK_NETWORK=none",
)
_NO_SECCOMP = (
    "slirp4netns with seccomp",
    "it may use every system call: it was built without libseccomp",
    "install slirp4netns 1.0 or newer, built with libseccomp",
)
_USERNS = "allow user namespaces, see above"
_TUN = (
    "chmod 0666 /dev/net/tun, or allow the hub mknod and its own mounts (in a container --cap-add MKNOD, SYS_ADMIN and "
    "--device /dev/net/tun)"
)


class NoWayOutError(Exception):
    """Error: sandboxes cannot reach the outside; it has the lack, its consequence and the remedy."""


@dataclass(frozen=True, slots=True)
class WayOut:
    """Way that slirp4netns runs: `runs_as` is `tenant`, `root` or `hub` (see `shim.slirp`).

    `weaknesses` are its differences from the way it should run, each with the consequence and the
    remedy.
    """

    program: str
    runs_as: str
    seccomp: bool
    weaknesses: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """Tell it in words."""
        return f"{_WORDS[self.runs_as]}, {'with' if self.seccomp else 'without'} a filter of system calls"


def find(mode: str) -> WayOut:
    """Return how it runs for sandboxes of this mode; raises `NoWayOutError`."""
    program = shutil.which("slirp4netns", path="/usr/bin:/bin:/usr/local/bin")
    if program is None:
        raise NoWayOutError(
            "slirp4netns",
            "sandboxes cannot reach the outside, whatever their tenant's policy",
            "apt-get install slirp4netns",
        )
    tun = Path("/dev/net/tun")
    if mode == "userns" and not (tun.exists() and tun.stat().st_mode & 0o006 == 0o006):
        raise NoWayOutError("/dev/net/tun", "sandboxes have no network", "chmod 0666 /dev/net/tun (as root)")
    if not tun.exists():
        raise NoWayOutError("/dev/net/tun", "sandboxes have no network", "modprobe tun (as root)")
    runs_as, weaknesses = "tenant", []
    if mode == "userns":
        runs_as = "hub"
        weaknesses.append(_AS_HUB)
    elif mode == "root":
        runs_as = "root"
        weaknesses.append(
            (_OWN_USER, f"{_AS_ROOT}: without user namespaces no other may enter their networks", _USERNS)
        )
    elif (refused := _try(program)) is not None:
        runs_as = "root"
        weaknesses.append((_OWN_USER, f"{_AS_ROOT}: {refused}", _TUN))
    seccomp = "libseccomp" in _version(program)
    if not seccomp:
        weaknesses.append(_NO_SECCOMP)
    return WayOut(program, runs_as, seccomp, tuple(weaknesses))


def _try(program: str) -> str | None:
    """Return `None` when it can run as another user in its own root, otherwise the reason."""
    here = str(Path(shim.__file__).parent / "__main__.py")
    command = [sys.executable, "-IS", here, "--try-slirp", program, str(_NOBODY)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False, cwd="/", env={})
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0 and b"slirp4netns" in done.stdout:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"exit {done.returncode}"


def _version(program: str) -> str:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=dict(os.environ),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
