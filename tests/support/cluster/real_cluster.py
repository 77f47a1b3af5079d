"""The cluster that tests use: that of KUBECONFIG, else this clone's, which is started where it does not run.

Tests fail where none can be had; they are never skipped.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_cluster.place import Place, base, brought, clone_name, find
from mlp_cluster.space import Space
from mlp_cluster.up import down, up
from support.cluster.kube import Kube

STARTED_BY_TESTS = "started-by-tests"


@pytest.fixture(scope="session")
def kube() -> Iterator[Kube]:
    if given := brought():
        yield Kube(Path(given))
        return
    with used(clone_name()) as place:
        yield Kube(place.kubeconfig)


@pytest.fixture(scope="session")
def upper() -> Iterator[tuple[Kube, Place]]:
    """A second cluster, without a node: a tenant's own."""
    with used(f"{clone_name()[:12]}-up", pods=False) as place:
        yield Kube(place.kubeconfig), place


@contextlib.contextmanager
def used(name: str, *, pods: bool | None = None) -> Iterator[Place]:
    """Have a cluster together with other processes; the last one ends it, if it was tests that started it."""
    base().mkdir(parents=True, exist_ok=True)
    with (base() / f"{name}.used").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        there = find(name)
        ran = there is not None and Space(there).whole()
        place = up(name, pods=os.environ.get("TIER") != "api" if pods is None else pods)
        if not ran:
            (place.folder / STARTED_BY_TESTS).touch()
        try:
            yield place
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if (place.folder / STARTED_BY_TESTS).exists():
                    down(name)
