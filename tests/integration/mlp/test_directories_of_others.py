"""A notebook in a directory that somebody else may write to: to look at it runs nothing of what lies there, as to open a file runs nothing."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from traitlets.utils.importstring import import_item

import mlp_spawner
from support.waiting import PATIENCE_S

NAMES = ("ipykernel_launcher", "ipykernel", "IPython", "mlp", "mlp_language", "jedi", "traitlets", "zmq")
SHADOW = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nraise SystemExit\n"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Give a directory with modules that have the names of packages, and one that a notebook there uses."""
    made = tmp_path / "shared"
    made.mkdir()
    for name in NAMES:
        assert importlib.util.find_spec(name) is not None
        (made / f"{name}.py").write_text(SHADOW)
    (made / "beside.py").write_text("VALUE = 6 * 7\n")
    return made


@pytest.fixture
def kernel(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingKernelClient]:
    """Start a kernel there as a server of the hub does."""
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    config = Path(mlp_spawner.__file__).parent / "etc" / "ipython" / "ipython_config.py"
    (profile / "ipython_config.py").write_text(config.read_text())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    settings = json.loads((config.parent.parent / "jupyter" / "jupyter_server_config.json").read_text())
    specs = import_item(settings["ServerApp"]["kernel_spec_manager_class"])
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs())
    manager.start_kernel(cwd=str(shared))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_attack_what_lies_beside_a_notebook_does_not_run_by_opening_it(
    kernel: BlockingKernelClient, shared: Path
) -> None:
    kernel.complete("impo", 4, reply=True, timeout=PATIENCE_S)
    kernel.inspect("print", 5, reply=True, timeout=PATIENCE_S)
    kernel.execute("1", silent=True, reply=True, timeout=PATIENCE_S)
    assert not (shared / "ran").exists()


def test_modules_beside_a_notebook_are_found_by_its_cells(kernel: BlockingKernelClient) -> None:
    code = "import beside, sys; assert beside.VALUE == 42; assert sys.path.count('') == 1"
    said = kernel.execute(code, reply=True, timeout=PATIENCE_S)
    assert said["content"]["status"] == "ok", said["content"]
