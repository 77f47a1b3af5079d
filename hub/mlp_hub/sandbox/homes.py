"""Users' home directories, which their notebook servers and jobs share, and the directories of what is stored for them.

What is stored is read by others than its owner too, by the mounts of their jobs alone. So its own directory lets everybody in,
and the one above, of all that its owner has, nobody but the owner: who was given no mount finds no way to it, whatever the uid.
That one is the platform's, in which the owner makes, moves and replaces nothing: a mount finds what the platform put there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mlp_hub.beneath import Folder

DATASETS, MODELS = "datasets", "models"
SHELVES = (DATASETS, MODELS)
"""Contract: what of the tree of storage a notebook shows."""


def ensure_home(homes: Path, user: str, uid: int | None) -> Path:
    """Make the home where it is missing, 0700 and of `uid` where one is given, and return it.

    Raises OSError when something else has its place.
    """
    homes.mkdir(parents=True, exist_ok=True)
    with Folder.at(homes) as parent, parent.inside(user, make=0o700) as home:
        if uid is not None:
            home.give(uid, uid)
    return homes / user


def seen_at(kind: str, user: str) -> str:
    """Return where a notebook has all of a kind that is stored for its user: `/mlp/datasets/ann`."""
    return f"/mlp/{kind}/{user}"


ENVIRONMENTS = "environments"
"""Contract: what of the tree of storage has the environments of each tenant."""
ENVIRONMENTS_AT = "/mlp/env"
"""Contract: where jobs and notebooks see the environments of their tenant, each in a directory of its own."""


def open_environments(root: Path, tenant: str) -> Folder:
    """Open the directory of a tenant's environments, made where it is missing: the platform's, for all members to read."""
    root.mkdir(0o711, parents=True, exist_ok=True)
    with Folder.at(root) as top, top.inside(ENVIRONMENTS, make=0o755) as all_:
        shelf = all_.inside(tenant, make=0o755)
        for each in (all_, shelf):
            os.fchmod(each.fd, 0o755)
    return shelf


def place_links(home: Path, user: str, uid: int | None) -> None:
    """Make the links in a home by which its user finds what is stored, where nothing has their names.

    Links, and no mounts: what is mounted within a home would follow whatever its user has put in that place.
    """
    with Folder.at(home) as folder:
        for kind in SHELVES:
            with contextlib.suppress(FileExistsError):
                folder.link(kind, seen_at(kind, user), uid)
