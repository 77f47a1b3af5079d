"""Removes a job's directory, whatever its programs made of it.

Programs may nest directories deeper than a path is long, a process may have open or a function may call itself.
So nothing here goes down: each directory that is found is first moved up to the top, then emptied there. Links
are removed and never followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

MOST_NAMES = 10_000
"""Kept in memory at a time: a program can make millions."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_workspace(workspace: Path, goes_on: Callable[[], None] = lambda: None) -> None:
    """Remove the directory with all in it; nothing is done where there is none, a link in its place is removed.

    `goes_on` is called before each step, and may raise to leave the rest where it is. Raises OSError when something cannot
    be removed.
    """
    try:
        found = workspace.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        workspace.unlink()
        return
    _open_up(workspace)
    top = os.open(workspace, _DIRECTORY)
    try:
        _empty_all(top, goes_on)
    finally:
        os.close(top)
    workspace.rmdir()


def _empty_all(top: int, goes_on: Callable[[], None]) -> None:
    # no program can have guessed it, so nothing has such a name already
    fresh = secrets.token_hex(16)
    moved = 0
    while below := _clear(top, goes_on):
        for name in below:
            _open_up(name, top)
            directory = os.open(name, _DIRECTORY, dir_fd=top)
            try:
                while inside := _clear(directory, goes_on):
                    for inner in inside:
                        moved += 1
                        _open_up(inner, directory)
                        os.rename(inner, f"{fresh}-{moved}", src_dir_fd=directory, dst_dir_fd=top)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=top)


def _clear(directory: int, goes_on: Callable[[], None]) -> list[str]:
    """Remove what is no directory; return the names of those that are, some of them where there are very many."""
    below = []
    with os.scandir(directory) as entries:
        for entry in entries:
            goes_on()
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
                if len(below) >= MOST_NAMES:
                    break
            else:
                os.unlink(entry.name, dir_fd=directory)
    return below


def _open_up(name: str | Path, directory: int | None = None) -> None:
    """Give the owner all rights on a directory, where rights concern us at all: root needs none."""
    if os.geteuid() != 0:
        with contextlib.suppress(OSError):  # what follows will say so
            os.chmod(name, 0o700, dir_fd=directory)
