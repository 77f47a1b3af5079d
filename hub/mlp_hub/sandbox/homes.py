"""Users' home directories, which their notebook servers and jobs share."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.beneath import Folder


def ensure_home(homes: Path, user: str, uid: int | None) -> Path:
    """Make the home where it is missing, 0700 and of `uid` where one is given, and return it.

    Raises OSError when something else has its place.
    """
    homes.mkdir(parents=True, exist_ok=True)
    with Folder.at(homes) as parent, parent.inside(user, make=0o700) as home:
        if uid is not None:
            home.give(uid, uid)
    return homes / user
