"""The command `mlp` as a file that the hub hands out runs on a machine that has nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub.api.edge.call import BASE
from support.rigs.api_rig import ApiRig


def run(path: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run it by the Python that tests run in, isolated from all that is installed there."""
    env = {"PATH": os.environ["PATH"], "HOME": str(path.parent), **environ}
    command = [sys.executable, "-I", "-S", str(path), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def command(rig: ApiRig, tmp_path: Path) -> Path:
    """Fetch it, without any token."""
    answer = rig.ask("GET", f"{BASE}/client/mlp.pyz", base="")
    assert answer.status == 200
    assert rig.ask("GET", f"{BASE}/client/mlp.pyz", base="").headers["etag"] == answer.headers["etag"]
    path = tmp_path / "mlp.pyz"
    path.write_bytes(answer.body)
    return path


def test_the_command_lists_the_jobs_of_the_token_owner(rig: ApiRig, command: Path) -> None:
    socket = str(rig.sockets[True]).replace("/", "%2F")
    told = {"MLP_API_URL": f"http+unix://{socket}{BASE}/api/v1", "MLP_TOKEN": rig.ann}
    done = run(command, "jobs", **told)
    assert done.returncode == 0, done.stderr
    assert "digits" in done.stdout
    refused = run(command, "job", "nothing", **told)
    assert refused.returncode == 3, refused.stderr


def test_it_speaks_both_languages_and_has_its_help(command: Path) -> None:
    assert "submit" in run(command, "--help").stdout
    chinese = run(command, "--help", LANG="zh_CN.UTF-8", PYTHONUTF8="1").stdout
    assert "作业" in chinese


def test_it_holds_nothing_but_the_command(command: Path) -> None:
    import zipfile

    with zipfile.ZipFile(command) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {
            "__main__.py",
            "mlp",
            "mlp_language",
            "websocket",
        }
