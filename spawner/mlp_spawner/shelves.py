"""Storage in the view of a notebook server on this machine: its user's datasets to write, models to read."""

from __future__ import annotations

from pathlib import Path

from mlp_hub import sandbox
from mlp_hub.sandbox import DATASETS, ENVIRONMENTS, ENVIRONMENTS_AT, MODELS, Bind


def shelves(root: Path, user: str, uid: int | None) -> tuple[Bind, ...]:
    """Return the binds, with the directories made where they are missing.

    The directory of all datasets is bound, so that those made later are seen too. Where the hub is root (`uid` is given) it is the
    platform's, and who writes within the datasets cannot replace one. Elsewhere all is one user's: so there it is bound read-only,
    with the datasets that are there to write to; a later one can be written to from the next start on.
    """
    with sandbox.open_shelf(root, MODELS, user, uid):
        models = _bind(root, MODELS, user)
    with sandbox.open_shelf(root, DATASETS, user, uid) as shelf:
        if uid is not None:
            return _bind(root, DATASETS, user, writable=True), models
        with shelf.entries() as entries:
            there = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    single = (_bind(root, DATASETS, user, name, writable=True) for name in there)
    return _bind(root, DATASETS, user), *single, models


def _bind(root: Path, kind: str, user: str, *below: str, writable: bool = False) -> Bind:
    inside = "/".join((sandbox.seen_at(kind, user), *below))
    return Bind(str(root.joinpath(kind, user, *below)), inside, writable=writable)


def environments(root: Path, tenant: str) -> tuple[Bind, ...]:
    """Return the bind of a tenant's environments, with the needs of their kernels.

    Environments that are made later are visible too.
    """
    if not tenant:
        return ()
    sandbox.open_environments(root, tenant).close()
    return (Bind(str(root / ENVIRONMENTS / tenant), ENVIRONMENTS_AT),)
