"""Users' home directories, which their notebook servers and jobs share."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def ensure_home(homes: Path, user: str, uid: int | None) -> Path:
    """Make the home where it is missing, 0700 and of `uid` where one is given, and return it.

    Raises OSError when something else has its place.
    """
    homes.mkdir(parents=True, exist_ok=True)
    parent = os.open(homes, _DIRECTORY)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(user, 0o700, dir_fd=parent)
        home = os.open(user, _DIRECTORY, dir_fd=parent)
        try:
            if uid is not None and os.fstat(home).st_uid != uid:
                os.fchown(home, uid, uid)
        finally:
            os.close(home)
    finally:
        os.close(parent)
    return homes / user
