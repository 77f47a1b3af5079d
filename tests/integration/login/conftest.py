"""The Keycloak that all files here share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.login.keycloak import Keycloak, shared


@pytest.fixture(scope="session")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    base = tmp_path_factory.getbasetemp()
    top = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with shared(Path(f"{top}-keycloak")) as made:  # beside them: it ends after those are removed
        yield made
