"""One HTTP side for all tests of a module."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.rigs.api_rig import ApiRig, started
from support.rigs.dav_rig import MIB, DavRig, serving

_numbers = itertools.count()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    """Give ann's running job `digits` in tenant red (admin rita), and bob in blue (admin blue)."""
    root: Path = tmp_path_factory.mktemp("api")
    yield from started(root)


@pytest.fixture(scope="module")
def dav(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavRig]:
    with serving(rig, tmp_path_factory.mktemp("dav")) as found:
        yield found


@pytest.fixture
def team(rig: ApiRig) -> str:
    """A tenant of ann's with 10 MiB of storage."""
    name = f"files{next(_numbers)}"
    rig.tenant(name, "rita", members=("ann",), rom=10 * MIB)
    return name


@pytest.fixture
def data(rig: ApiRig, team: str) -> str:
    """A dataset of ann's, by its path."""
    name = f"set{next(_numbers)}"
    made = rig.ask("POST", "/users/ann/datasets", {"name": name, "size": 0, "tenant": team}, token=rig.ann)
    assert made.status == 201, made.body
    return f"/data/ann/{name}"
