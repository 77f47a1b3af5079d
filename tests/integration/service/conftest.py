"""Object stores beside the service's tests: a real one for a file's tests, and for each test one that answers what it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.stores.object_stores import FalseStore, RealStore, real_store


@pytest.fixture(scope="module")
def store() -> Iterator[RealStore]:
    """Give a real store without buckets."""
    with real_store() as found:
        yield found


@pytest.fixture
def false() -> Iterator[FalseStore]:
    """Give a store that is none."""
    with FalseStore() as found:
        yield found
