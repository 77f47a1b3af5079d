from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.sandbox import capabilities, control
from mlp_hub.sandbox.capabilities import probe
from support.executors.executor_lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    lab = Lab(tmp_path)
    yield lab
    lab.close()
    assert lab.leftovers() == []


@pytest.fixture
def open_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Run attempts where no sandbox can be made and that was allowed."""
    monkeypatch.setenv("MLP_ALLOW_NO_SANDBOX", "1")
    caps = probe("open")
    if caps.mode is None:
        why = [m.effect for m in caps.missing if m.what.startswith("an environment")]
        assert why, caps.missing
        pytest.skip(f"this source tree is where other users may not look: {why[0]}")
    assert caps.mode == "open"
    monkeypatch.setattr(control, "capabilities", lambda: caps)
    # not below pytest's own directory: without a sandbox the users themselves must get there
    base = Path(tempfile.mkdtemp(prefix="mlp-open-"))
    base.chmod(0o755)
    lab = Lab(base)
    yield lab
    lab.close()
    assert lab.leftovers() == []
    shutil.rmtree(base)
