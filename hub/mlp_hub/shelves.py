"""Directories of users' stored objects: a shelf for all objects of one kind, and on it one for each.

The service makes them, and so do the file server and the mounts; `sandbox/homes.py` describes the
access rights.
"""

from __future__ import annotations

import os
from pathlib import Path

from mlp_hub.domain.stored.storage import ARRIVING
from mlp_hub.safe_path import DirHandle


def open_shelf(root: Path, kind: str, user: str, uid: int | None) -> DirHandle:
    """Open the directory of all of a kind (`datasets`, `models`) that is stored for a user, made where it is missing.

    Where the hub is root, its owner `uid` may look into it; None leaves that as it is.
    """
    root.mkdir(0o711, parents=True, exist_ok=True)
    with DirHandle.at(root) as top, top.inside(kind, make=0o711) as shelves:
        shelf = shelves.inside(user, make=0o700)
    if uid is not None and os.geteuid() == 0:
        shelf.give(0, uid, 0o750)
    return shelf


def open_arriving(shelf: DirHandle, name: str) -> DirHandle:
    """Open the directory of incoming data of an object on a shelf, and make it if it is missing.

    Only the platform uses it. Its content is charged with the rest, and deleted with it.
    """
    with shelf.inside(ARRIVING, make=0o700) as all_:
        return all_.inside(name, make=0o700)


def ensure_stored(root: Path, kind: str, user: str, name: str, uid: int | None = None) -> None:
    """Make the directory of something that is stored where it is missing, and let who was given a mount of it in.

    Where the hub is root, it becomes that of its owner `uid`; None leaves that as it is. Raises OSError where something else has its place.
    """
    with open_shelf(root, kind, user, uid) as shelf, shelf.inside(name, make=0o755) as stored:
        if uid is not None and os.geteuid() == 0:
            stored.give(uid, uid)
        os.fchmod(stored.fd, 0o755)
