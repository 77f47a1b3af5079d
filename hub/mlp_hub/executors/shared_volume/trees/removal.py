"""Removes a run's directory, whatever its programs made of it.

Programs may nest directories deeper than a path is long, a process may have open or a function may call itself.
So nothing here goes down: each directory that is found is first moved up to the top, then emptied there. Links
are removed and never followed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from mlp_hub.executors.workspace import Unfinished
from mlp_hub.safe_path import DirHandle

MOST_NAMES = 10_000
"""Safety: names of a directory in memory at a time: a program can make millions."""


def remove_directory(path: Path, check_cancelled: Callable[[], None] = lambda: None) -> None:
    """Remove the directory with all in it; nothing is done where there is none, a link in its place is removed.

    `check_cancelled` is called before each step, and may raise to leave the rest where it is. Raises OSError when something cannot
    be removed.
    """
    try:
        above = DirHandle.at(path.parent)
    except FileNotFoundError:
        return
    with above:
        remove_directory_in(above, path.name, check_cancelled)


def remove_directory_in(
    above: DirHandle, name: str, check_cancelled: Callable[[], None] = lambda: None
) -> None:
    """Remove what lies in an open directory in the same way."""
    try:
        found = above.stat(name)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        above.remove(name)
        return
    _open_up(name, above)
    with above.inside(name) as top:
        _empty_all(top, check_cancelled)
    above.remove_folder(name)


def turn_of(most: int, check_cancelled: Callable[[], None]) -> Callable[[], None]:
    """Return a `check_cancelled` that raises `Unfinished` after `most` steps.

    So a removal ends although others continue to make files.
    """
    left = most

    def step() -> None:
        nonlocal left
        check_cancelled()
        left -= 1
        if left < 0:
            raise Unfinished

    return step


def _empty_all(top: DirHandle, check_cancelled: Callable[[], None]) -> None:
    # no program can have guessed it, so nothing has such a name already
    fresh = secrets.token_hex(16)
    moved = 0
    while below := _clear(top, check_cancelled):
        for name in below:
            check_cancelled()
            _open_up(name, top)
            with top.inside(name) as directory:
                while inside := _clear(directory, check_cancelled):
                    for inner in inside:
                        moved += 1
                        _open_up(inner, directory)
                        directory.move(inner, top, f"{fresh}-{moved}")
            top.remove_folder(name)


def _clear(directory: DirHandle, check_cancelled: Callable[[], None]) -> list[str]:
    """Remove files and other entries that are not directories; return the names of the directories.

    Where there are very many, only some are returned.
    """
    below = []
    with directory.entries() as entries:
        for entry in entries:
            check_cancelled()
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
                if len(below) >= MOST_NAMES:
                    break
            else:
                directory.remove(entry.name)
    return below


def _open_up(name: str, directory: DirHandle) -> None:
    """Give the owner all rights on a directory, where rights concern us at all: root needs none."""
    if os.geteuid() != 0:
        directory.open_up(name)
