"""Tells at once when something in a run directory changed or its shim ended: inotify and process descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

_IN_MOVED_TO, _IN_ONLYDIR = 0x80, 0x01000000
_HEAD = struct.Struct("iIII")


class Watched(NamedTuple):
    """Handle of the system for a watched object: a number of inotify, or a descriptor of a process."""

    number: int
    end: int | None


class Watch:
    """Watcher that calls back, on the event loop, with the key of a changed object."""

    def __init__(self, callback: Callable[[str], None]) -> None:
        self._callback = callback
        self._loop: asyncio.AbstractEventLoop | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._notify = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._keys: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._ends: dict[str, int] = {}

    def watch_directory(self, directory: str, pid: int | None) -> Watched:
        """Begin to watch a run directory, and its shim where there is one; for any thread, since it looks paths up.

        What happens before `add` takes the answer is not told.
        """
        number, end = -1, None
        if self._notify >= 0:
            number = self._libc.inotify_add_watch(
                self._notify, os.fsencode(directory), _IN_MOVED_TO | _IN_ONLYDIR
            )
        if pid is not None:
            with contextlib.suppress(OSError):
                end = os.pidfd_open(pid)
        return Watched(number, end)

    def add(self, key: str, watched: Watched) -> None:
        """Call back from now on, on this event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            if self._notify >= 0:
                loop.add_reader(self._notify, self._on_change)
        if watched.number >= 0:
            self._watches[key] = watched.number
            self._keys[watched.number] = key
        if watched.end is not None:
            self._drop_end(key)
            self._ends[key] = watched.end
            loop.add_reader(watched.end, self._on_end, key)

    def drop(self, key: str) -> None:
        """Watch it no longer."""
        number = self._watches.pop(key, None)
        if number is not None:
            self._keys.pop(number, None)
            self._libc.inotify_rm_watch(self._notify, number)
        self._drop_end(key)

    def _drop_end(self, key: str) -> None:
        fd = self._ends.pop(key, None)
        if fd is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(fd)
            os.close(fd)

    def _on_end(self, key: str) -> None:
        self._drop_end(key)
        self._callback(key)

    def _on_change(self) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._notify, 64 << 10)
        changed: dict[str, None] = {}
        at = 0
        while at < len(data):
            number, _, _, length = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            if number in self._keys and name in (b"state.json", b"exit.json"):
                changed[self._keys[number]] = None
        for key in changed:
            self._callback(key)

    def close(self) -> None:
        """Stop watching."""
        for key in [*self._ends]:
            self._drop_end(key)
        if self._notify >= 0:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._notify)
            os.close(self._notify)
            self._notify = -1
