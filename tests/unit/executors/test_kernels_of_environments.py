"""Kernels that notebooks find beside the environments of their tenant, and what of a tenant a notebook is shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from mlp.notebooks import notebook_files
from mlp_hub.domain.runtime.environment import kernel_of
from mlp_hub.executors.local import kernels
from mlp_hub.sandbox import Bind
from mlp_spawner.shelves import environments


def test_a_kernel_is_offered_by_its_name_in_small_letters_and_withdrawn(tmp_path: Path) -> None:
    for _ in range(2):  # again after a death
        kernels.offer(tmp_path, "Tools", "tools-0123456789ab")
    file = tmp_path / ".kernels/kernels/mlp-env-tools/kernel.json"
    told = json.loads(file.read_text())
    assert told["argv"][0] == "/mlp/env/tools-0123456789ab/bin/python"
    assert told["display_name"] == "Python (Tools)"
    assert told["env"]["PATH"] == "/mlp/env/tools-0123456789ab/bin:${PATH}"
    assert [stat.S_IMODE(p.stat().st_mode) for p in (file, file.parent, file.parent.parent)] == [
        0o644,
        0o755,
        0o755,
    ]
    picture = file.with_name("logo-svg.svg")
    assert picture.read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert stat.S_IMODE(picture.stat().st_mode) == 0o644
    for _ in range(2):
        kernels.withdraw(tmp_path, "Tools")
    assert not file.parent.exists()
    kernels.withdraw(tmp_path / "nothing", "Tools")


def test_no_environment_takes_the_place_of_a_kernel_that_others_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member calls theirs python3: every notebook of the team would have begun in packages of theirs."""
    kernels.offer(tmp_path, "Python3", "python3-0123456789ab")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / ".kernels"))
    manager = KernelSpecManager()
    assert "mlp-env-python3" in manager.find_kernel_specs()
    assert "/mlp/env" not in manager.get_kernel_spec("python3").argv[0]


def test_a_job_knows_such_a_kernel_by_its_name() -> None:
    saved = {"metadata": {"kernelspec": {"name": kernel_of("Tools")}}}
    assert notebook_files.environment(saved) == "tools"
    for other in ({}, {"kernelspec": 1}, {"kernelspec": {"name": "python3"}}, {"kernelspec": {"name": [1]}}):
        assert notebook_files.environment({"metadata": other}) == ""


def test_a_notebook_sees_the_environments_of_the_tenant_that_it_was_granted(tmp_path: Path) -> None:
    assert environments(tmp_path, "") == ()
    assert environments(tmp_path, "red") == (Bind(str(tmp_path / "environments/red"), "/mlp/env"),)
    assert (tmp_path / "environments/red").is_dir()
