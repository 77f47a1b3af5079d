"""The local executor keeps the contract, with real sandboxes."""

from __future__ import annotations

from typing import Any

import pytest

from executor_contract import ExecutorContract
from executor_lab import Lab
from mlp_hub.executors.base import Executor, LaunchSpec

PROGRAMS = {
    "succeeds": "print('done')",
    "fails": "import sys; sys.exit(3)",
    "lasts": "import time; time.sleep(600)",
}


class TestLocalExecutor(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _lab(self, lab: Lab) -> None:
        self.lab = lab

    def make_executor(self) -> Executor:
        return self.lab.executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        return self.lab.spec(PROGRAMS[kind], **more)
