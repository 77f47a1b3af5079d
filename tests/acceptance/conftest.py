"""One hub and one browser for the whole story, on the install that `--install` names.

What cannot be so on one of the installs is marked with the row of docs/explanation/installs.md that tells why.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.cluster.installs import ByHelm, InACluster, Install, OneMachine
from support.cluster.real_cluster import kube
from support.front.browser import chromium
from support.hubs.live_hub import LiveHub

__all__ = ["kube"]  # a fixture


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not hold on this install, and mark what is not run on it each time."""
    chosen = config.getoption("--install")
    kind = (
        "local" if chosen == "local" else "cluster"
    )  # of whose differences people see none between its two installs
    for item in items:
        if any(kind in mark.args for mark in item.iter_markers("whole_on")):
            item.add_marker(pytest.mark.whole)
        for mark in item.iter_markers("differs"):
            if mark.kwargs["only"] != kind:
                item.add_marker(pytest.mark.skip(reason=f"only on {mark.kwargs['only']}: {mark.args[0]}"))


@pytest.fixture(scope="session")
def install(request: pytest.FixtureRequest) -> Install:
    chosen = request.config.getoption("--install")
    if chosen == "local":
        return OneMachine()
    kind = ByHelm if chosen == "helm" else InACluster
    return kind(request.getfixturevalue("kube"))


@pytest.fixture(scope="session")
def hub(install: Install, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with install.hub(tmp_path_factory.mktemp("story") / "home") as hub:
        yield hub


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests, not for the whole run (see `chromium`)."""
    with chromium() as browser:
        yield browser
