"""Notices when the service touches a file on its event loop, where a slow disk would make everybody wait.

`with no_files():`, or `watch()` and `check()`, inside a running loop. Noticed is what the product does, by itself or by
what it calls: Python's own audit events, and the calls of `os` that raise none. What a test does itself is its own matter.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakSet

import mlp_hub

EVENTS = frozenset(
    [
        "open",
        "os.listdir",
        "os.scandir",
        "os.mkdir",
        "os.rmdir",
        "os.remove",
        "os.rename",
        "os.link",
        "os.symlink",
        "os.chmod",
        "os.chown",
        "os.truncate",
        "os.utime",
        "fcntl.flock",
        "fcntl.lockf",
        "sqlite3.connect",
        "shutil.rmtree",
    ]
)
SILENT = (
    "stat",
    "lstat",
    "access",
    "readlink",
    "statvfs",
    "pread",
    "pwrite",
    "fsync",
    "fdatasync",
    "ftruncate",
)
"""Calls that look paths up, or wait for a disk, and raise no audit event."""
ALLOWED = {
    ("api/edge/connections.py", "peer_of"): "asks the kernel whose a socket is",
    ("api/edge/connections.py", "_own_namespace"): "the same",
    (
        "executors/simulated/executor.py",
        "",
    ): "a simulation runs no programs; its journal is a few bytes into the page cache",
}
"""What may be, by file and function."""
COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
PRODUCT = str(Path(mlp_hub.__file__).parent)
TESTS = str(Path(__file__).parents[1])
_watched: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
_found: list[str] = []
_installed = False


def watch() -> None:
    """Notice from now on what this loop does."""
    _install()
    _watched.add(asyncio.get_running_loop())


def ignore() -> None:
    """Notice no more: the service starts or ends."""
    _watched.discard(asyncio.get_running_loop())


def check() -> None:
    """Fail where anything was noticed, in this process, since the last check."""
    found, _found[:] = [*_found], []
    assert not found, "files were touched on the event loop:\n" + "\n".join(dict.fromkeys(found))


@contextmanager
def no_files() -> Iterator[None]:
    """Fail at the end where this loop touched a file."""
    watch()
    try:
        yield
    finally:
        ignore()
    check()


def _install() -> None:
    global _installed  # noqa: PLW0603 - an audit hook cannot be taken away again
    if _installed:
        return
    _installed = True
    sys.addaudithook(_hook)
    for name in SILENT:
        setattr(os, name, _noticing(name, getattr(os, name)))


def _noticing(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def noticed(*args: Any, **kwargs: Any) -> Any:
        if _watched:
            _notice(f"os.{name}", args)
        return call(*args, **kwargs)

    for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        if call in able:
            able.add(noticed)
    return noticed


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watched and event in EVENTS and not (args and isinstance(args[0], int)):
        _notice(event, args)


def _notice(event: str, args: tuple[Any, ...]) -> None:
    loop = asyncio._get_running_loop()
    if loop is None or loop not in _watched:
        return
    frame = _of_product(sys._getframe(2))
    if frame is None:
        return
    what = f"{event} {args[0] if args else ''!r}"
    lines = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=4, lookup_lines=False)
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in lines)
    _found.append(f"{what}: {where}")


def _of_product(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the product that asks; None where a test asks, or what may."""
    asks = None
    awaited = False  # a coroutine of the product is below: it is no function that a test called
    while frame is not None:
        name = frame.f_code.co_filename
        if "importlib" in name or name.endswith(("linecache.py", "warnings.py")):
            return None  # a module is loaded, once; a traceback is written
        if name.startswith(PRODUCT):
            asks = asks or frame
            awaited = awaited or bool(frame.f_code.co_flags & COROUTINE)
            part = name[len(PRODUCT) + 1 :]
            if (part, frame.f_code.co_name) in ALLOWED or (part, "") in ALLOWED:
                return None
        elif name.startswith(TESTS) and not awaited:
            return None
        frame = frame.f_back
    return asks
