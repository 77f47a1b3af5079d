"""What the doctor says of the disk is what the watch does."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp_hub.cli.doctor import machine as checks_machine
from mlp_hub.settings import Settings

GIB = 2**30


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (5.5, "below 5.0 GiB no job is started"),
        (4, "jobs do not start, notebook servers do"),
        (2, "nothing new starts"),
    ],
)
def test_notebooks_are_started_down_to_half_of_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, said: str
) -> None:
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: SimpleNamespace(total=100 * GIB, free=int(free * GIB))
    )
    assert said in checks_machine.disk(Settings.load({"MLP_HOME": str(tmp_path)})).found
