"""System calls that programs in sandboxes may not make, because they reach rarely used kernel code only.

All else is allowed: people's programs are MPI, TensorFlow, debuggers and any that they install.
"""

from __future__ import annotations

import errno
import functools
import itertools
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any

# what needs rights that no sandbox has, or that namespaces do not part, is refused before the kernel looks at it
_NOT_PERMITTED = (
    # files of other mounts, mounts and namespaces
    "open_by_handle_at", "mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount",
    "fspick", "move_mount", "open_tree", "mount_setattr", "unshare", "setns", "quotactl", "quotactl_fd",
    "fanotify_init", "lookup_dcookie", "sysfs", "ustat", "nfsservctl",
    # the kernel's own memory and programs
    "bpf", "perf_event_open", "userfaultfd", "create_module", "delete_module", "finit_module", "init_module",
    "get_kernel_syms", "query_module", "kexec_file_load", "kexec_load", "uselib", "vm86", "vm86old", "kcmp",
    "move_pages",
    # keys, which are a uid's and not a sandbox's
    "add_key", "keyctl", "request_key",
    # the machine
    "acct", "reboot", "swapon", "swapoff", "syslog", "_sysctl", "iopl", "ioperm", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "vhangup",
)  # fmt: skip
# as on a kernel without them: libraries then take the older way. What clone3 is asked for a filter cannot read.
_NOT_THERE = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_FAMILIES_MAX = 46  # beyond all that there are
_NEW_NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # put characters into a terminal's input as if they were typed
_INT = 0xFFFFFFFF


# what a helper needs besides nothing: it executes, traces and serves nobody
_NOT_A_HELPERS = (
    "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "bind", "listen", "accept",
    "accept4", "kill", "pidfd_send_signal", "setuid", "setgid", "setresuid", "setresgid", "setgroups", "mknod", "mknodat",
)  # fmt: skip
_NOT_WITHOUT_NETWORK = ("socket", "socketpair", "connect", "fork", "vfork")


def _rules() -> Iterator[tuple[int, str, tuple[tuple[Any, ...], ...]]]:
    """Yield error number, system call, and which of its arguments make it forbidden: number, comparison, values."""
    yield from ((errno.EPERM, call, ()) for call in _NOT_PERMITTED)
    yield from ((errno.ENOSYS, call, ()) for call in _NOT_THERE)
    for flag in _NEW_NAMESPACES:
        yield errno.EPERM, "clone", ((0, "MASKED_EQ", flag, flag),)
    for request in (_TIOCSTI, _TIOCLINUX):
        yield errno.EPERM, "ioctl", ((1, "MASKED_EQ", _INT, request),)
    for call in ("socket", "socketpair"):
        for family in sorted(set(range(_FAMILIES_MAX)) - set(_FAMILIES)):
            yield errno.EAFNOSUPPORT, call, ((0, "EQ", family),)
        yield errno.EAFNOSUPPORT, call, ((0, "GE", _FAMILIES_MAX),)


class FilterError(Exception):
    """No filter can be made here; the message says why."""


@functools.cache
def program() -> bytes:
    """Return the filter as bubblewrap takes it; raises `FilterError`. Made once in a process, in some 10 ms.

    System calls of another architecture than the machine's own (32-bit programs) end the program.
    """
    try:
        import pyseccomp as lib  # noqa: PLC0415 - it looks for its library when it is imported
    except (ImportError, RuntimeError, OSError) as error:
        raise FilterError(str(error)) from error
    return _exported(lib, _rules())


@functools.cache
def helper_program(*, network: bool) -> bytes:
    """Return the filter of a process that takes apart what strangers wrote, as the kernel takes it; raises as `program` does.

    Beyond what is refused to sandboxes it executes nothing and listens nowhere; without `network` it has no sockets at all.
    """
    try:
        import pyseccomp as lib  # noqa: PLC0415 - as above
    except (ImportError, RuntimeError, OSError) as error:
        raise FilterError(str(error)) from error
    own = _NOT_A_HELPERS if network else (*_NOT_A_HELPERS, *_NOT_WITHOUT_NETWORK)
    # libseccomp takes one rule for a call that is refused whatever its arguments
    shared = ((number, call, where) for number, call, where in _rules() if call not in own)
    return _exported(lib, itertools.chain(shared, ((errno.EPERM, call, ()) for call in own)))


def _exported(lib: Any, rules: Iterable[tuple[int, str, tuple[tuple[Any, ...], ...]]]) -> bytes:
    made = lib.SyscallFilter(lib.ALLOW)
    for number, call, where in rules:
        try:
            made.add_rule(
                lib.ERRNO(number),
                call,
                *(
                    lib.Arg(argument, getattr(lib, comparison), *values)
                    for argument, comparison, *values in where
                ),
            )
        except (OSError, ValueError) as error:
            # another architecture or an older library may not have it; these all have
            if where or call in ("unshare", "keyctl"):
                raise FilterError(f"{call}: {error}") from error
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(fd), "rb") as file:
            made.export_bpf(file)
            return os.pread(fd, 1 << 20, 0)
    finally:
        os.close(fd)
