"""A newer version is installed while notebook servers go on: their new kernels are the newer version's."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.sandbox import SandboxPhase
from mlp_spawner import server
from mlp_spawner.environment import Who, build
from mlp_spawner.grant import Grant
from mlp_spawner.paths import Paths
from support.executors.executor_lab import Lab

SERVER = """
import os, time
from pathlib import Path
from jupyter_client.manager import start_new_kernel

def kernel_says(code):
    manager, client = start_new_kernel(startup_timeout=180)
    said = []
    client.execute_interactive(code, timeout=180, output_hook=lambda m: said.append(m["content"].get("text", "")))
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return "".join(said).strip()

for turn in ("first", "second"):
    while not Path.home().joinpath(turn).exists():
        time.sleep(0.05)
    print(turn, kernel_says("import mlp\\nprint(get_ipython().find_cell_magic('mlp') is not None, mlp.MARK)"), flush=True)
    config = Path("/etc/jupyter/labconfig/default_setting_overrides.json")
    print(turn, "settings of the lab", config.exists(), flush=True)
time.sleep(600)
"""
"""Starts a kernel when told to, as a notebook server does, and says what it has."""


class Installed:
    """An environment with the platform's packages for notebooks in it, as an installer leaves them."""

    def __init__(self, base: Path) -> None:
        self.prefix = base / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.prefix)], check=True)
        self.python = str(self.prefix / "bin/python")
        self.site = next(self.prefix.glob("lib/python3*/site-packages"))
        self.install("old")

    def install(self, mark: str) -> None:
        """Put the packages where they belong; other packages come from the environment of the tests."""
        self.site.mkdir(exist_ok=True)
        here = {sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("-packages"))}
        (self.site / "others.pth").write_text("\n".join(sorted(here)) + "\n")
        for name in ("mlp", "mlp_spawner"):
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            shutil.copytree(Path(found.origin).parent, self.site / name)
        with (self.site / "mlp/__init__.py").open("a") as file:
            file.write(f"\nMARK = {mark!r}\n")

    def replace_packages(self) -> None:
        """Install a newer version as installers do: what was there is removed, what comes is new."""
        for name in ("mlp", "mlp_spawner"):
            shutil.rmtree(self.site / name)
        self.install("new")

    def replace_site(self) -> None:
        """Make the environment's packages anew, from the directory that holds them."""
        shutil.rmtree(self.site)
        self.install("new")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    lab = Lab(tmp_path)
    yield lab
    lab.close()
    assert lab.leftovers() == []


def wait_log(log: Path, text: str) -> str:
    for _ in range(1200):
        said = log.read_text() if log.exists() else ""
        if text in said:
            return said
        time.sleep(0.1)
    raise AssertionError(f"{text!r} is not in the log: {said}")


@pytest.mark.parametrize("newer", [Installed.replace_packages, Installed.replace_site])
def test_new_kernels_of_a_server_that_kept_running_have_the_extension(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, newer: Callable[[Installed], None]
) -> None:
    env = Installed(lab.base)
    monkeypatch.setattr(server, "HERE", env.site / "mlp_spawner")
    sockets = lab.base / "tenant"
    sockets.mkdir(mode=0o711)
    home = lab.home("ann")
    paths = Paths(lab.base / "servers", lab.base, "ann", "")
    paths.log_dir.mkdir(parents=True)
    who = Who("ann", "/user/ann/", "/home/ann", env.python, f"{sockets}/mlp.sock")
    described = server.spec(
        paths,
        who,
        Grant("default", cpu=1.0, ram=1024),
        env=build({}, who),
        uid=lab.uid("ann"),
        home_dir=home,
        tenant_socket_dir=str(sockets),
        args=(),
    )
    run_dir = str(lab.run_root / "server")
    sandbox.launch(replace(described, argv=(env.python, "-c", SERVER), listen=None), run_dir)
    log = paths.log_dir / "rank-0.log"
    (home / "first").touch()
    wait_log(log, "first settings")
    newer(env)
    (home / "second").touch()
    said = wait_log(log, "second settings")
    assert "first True old" in said
    assert "second True new" in said
    assert said.count("settings of the lab True") == 2
    assert sandbox.inspect(run_dir).phase is SandboxPhase.RUNNING
