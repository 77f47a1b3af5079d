"""Giving up rights: a user of no one's, an empty root, no capabilities, no way to get any, and a filter of system calls."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from mlp_hub.helpers import Confinement
from mlp_hub.sandbox import seccomp
from mlp_hub.sandbox.shim import linux, view

FILES = 256
"""Safety: descriptors of a helper."""
_RESOLVER = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/localtime",
)  # fmt: skip
"""Given: files of the machine by which names are looked up."""
SHOWN_MAX = 4 << 20
"""Safety: bytes of one file that a helper still sees."""


def give_up(within: Confinement, shown: Iterable[str] = ()) -> None:
    """Give up all that this process may do beyond computing, and for good; it has one thread still.

    `shown`: files that it reads later, of which it gets copies. Raises `OSError` where it would stay root. Where the machine has no
    namespaces for it, it keeps the machine's files, as its own user sees them; where it has no filters, it has none.
    """
    time.tzset()  # read while it is there
    os.umask(0o022)
    program = _filter(network=within.network)
    wanted = [*shown, *(_RESOLVER if within.network else ())]
    contents = {path: data for path in wanted if (data := _read(path)) is not None}
    _leave_files(contents, network=within.network)
    if os.geteuid() == 0 and within.uid is not None:
        linux.drop_rights(within.uid)
    else:
        linux.drop_capabilities()
        linux.no_new_privileges()
    _bound(within)
    if program is not None:
        linux.filter_calls(program)


def _bound(within: Confinement) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_AS, (within.memory, within.memory))
    if within.cpu_s:
        resource.setrlimit(resource.RLIMIT_CPU, (within.cpu_s, within.cpu_s))


def _filter(*, network: bool) -> bytes | None:
    try:
        return seccomp.helper_program(network=network)
    except seccomp.FilterError as error:
        sys.stderr.write(f"a helper runs without a filter of system calls: {error}\n")
        return None


def _read(path: str) -> bytes | None:
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        return file.read(SHOWN_MAX)
    return None


def _leave_files(contents: dict[str, bytes], *, network: bool) -> None:
    """Enter a root that contains only these files; a user who is not root does so in a new user namespace."""
    spaces = (
        linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | (0 if network else linux.CLONE_NEWNET)
    )
    uid, gid = os.geteuid(), os.getegid()
    try:
        if uid == 0:
            linux.unshare(spaces)
        else:
            linux.unshare(spaces | linux.CLONE_NEWUSER)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
        root = view.stage()
        linux.mount(
            "tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, "mode=0755,size=16m"
        )
        for path, data in contents.items():
            there = Path(root + path)
            there.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            there.write_bytes(data)
            there.chmod(0o444)
        flags = linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("none", root, None, flags)
        linux.change_root(root)
    except OSError as error:
        sys.stderr.write(f"a helper keeps the machine's files in sight: {error}\n")
