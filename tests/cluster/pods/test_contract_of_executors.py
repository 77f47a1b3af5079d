"""The executor of clusters, held with real pods to all that every executor promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.executors import test_every_executors_attempts as attempts
from integration.executors import test_every_executors_epochs as epochs
from integration.executors import test_every_executors_logs as logs
from integration.executors import test_every_executors_workspace as workspace
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab
from support.executors.contract import Contract


@pytest.fixture(scope="class")
def lab(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeLab]:
    """One installation for all of a class: each test has attempts of its own, and leaves none."""
    yield from _lab(kube, tmp_path_factory.mktemp("lab"))


def _lab(kube: Kube, at: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, at)
    yield lab
    lab.close()


class OnACluster(Contract):
    @pytest.fixture(autouse=True)
    def _under_test(self, lab: KubeLab) -> None:
        self.under = lab


class TestAttempts(OnACluster, attempts.TestAttempts): ...


class TestEpochs(OnACluster, epochs.TestEpochs):
    @pytest.fixture
    def lab(self, kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
        """One for each test: an epoch that was once raised stays."""
        yield from _lab(kube, tmp_path)


class TestLogs(OnACluster, logs.TestLogs): ...


class TestWorkspace(OnACluster, workspace.TestWorkspace): ...
