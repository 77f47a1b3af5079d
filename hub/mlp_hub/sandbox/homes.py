"""Home directories of users, for their notebook servers and jobs, and directories of stored items.

Stored items are also read by others than their owner, by the mounts of their jobs alone. So the
directory of an item lets everybody in. The one above, of all items of an owner, lets only the owner
in: without a mount, other users find no way to it, whatever their uid. That directory is the
platform's, and the owner can make, move and replace nothing in it. So a mount finds the platform's
entries.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mlp_hub.safe_path import DirHandle

DATASETS, MODELS = "datasets", "models"
SHELVES = (DATASETS, MODELS)
"""Contract: parts of the tree of storage that a notebook shows."""


def ensure_home(homes: Path, user: str, uid: int | None) -> Path:
    """Make the home where it is missing, 0700 and of `uid` where one is given, and return it.

    Raises OSError when something else has its place.
    """
    homes.mkdir(parents=True, exist_ok=True)
    with DirHandle.at(homes) as parent, parent.inside(user, make=0o700) as home:
        if uid is not None:
            home.give(uid, uid)
    return homes / user


def seen_at(kind: str, user: str) -> str:
    """Return where a notebook has all of a kind that is stored for its user: `/mlp/datasets/ann`."""
    return f"/mlp/{kind}/{user}"


ENVIRONMENTS = "environments"
"""Contract: part of the tree of storage with the environments of each tenant."""
ENVIRONMENTS_AT = "/mlp/env"
"""Contract: path of the environments of a tenant in jobs and notebooks, each in a separate directory."""


def open_environments(root: Path, tenant: str) -> DirHandle:
    """Open the directory of a tenant's environments, made where it is missing: the platform's, for all members to read."""
    root.mkdir(0o711, parents=True, exist_ok=True)
    with DirHandle.at(root) as top, top.inside(ENVIRONMENTS, make=0o755) as all_:
        shelf = all_.inside(tenant, make=0o755)
        for each in (all_, shelf):
            os.fchmod(each.fd, 0o755)
    return shelf


def place_links(home: Path, user: str, uid: int | None) -> None:
    """Make the links in a home to its user's stored items, where other entries do not have their names.

    They are links and not mounts: a mount within a home would follow any entry that its user has put in
    that place.
    """
    with DirHandle.at(home) as folder:
        for kind in SHELVES:
            with contextlib.suppress(FileExistsError):
                folder.link(kind, seen_at(kind, user), uid)
