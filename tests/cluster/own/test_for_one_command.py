"""A cluster for the time of one command: whatever happens to the command, nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_cluster import cgroups
from mlp_cluster.passing import collect
from mlp_cluster.place import ROOT, base
from support.waiting import wait_for

RUN = "k=$(make -s kubeconfig); $(dirname $k)/kubectl --kubeconfig=$k get --raw /readyz; exit 7"
ENDLESS = 'echo "$CLUSTER_NAME" >"$0"; touch /tmp/of-the-command; sleep 100000'


@pytest.fixture
def told() -> Iterator[Path]:
    """A file in which a command says what its cluster is called; not below /tmp, which commands have for themselves."""
    path = ROOT / "build" / f"{os.getpid()}.name"
    yield path
    path.unlink(missing_ok=True)


def beside_a_cluster(*command: str | Path, called_by: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    argv = [*called_by, sys.executable, "-m", "mlp_cluster", "with", "--api-only", "--", *map(str, command)]
    env = {key: value for key, value in os.environ.items() if key not in {"KUBECONFIG", "CLUSTER_NAME"}}
    env["PYTHONPATH"] = str(ROOT / "cluster")
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, env=env, cwd=ROOT, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def left(name: str) -> list[str]:
    """All that the machine has of this name."""
    found = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(OSError):
                found.append((path / "cmdline").read_bytes().decode(errors="replace"))
    files = [*cgroups.left(name), *base().glob(f"{name}*"), *base().glob(f"*/{name}*")]
    return [*(line for line in found if name in line), *map(str, files)]


def test_its_status_is_the_commands_and_nothing_is_left(told: Path) -> None:
    run = beside_a_cluster("sh", "-c", f'echo "$CLUSTER_NAME" >"$0"; {RUN}', told)
    said, _ = run.communicate()
    assert run.returncode == 7, said
    assert said.endswith("ok"), said
    assert left(told.read_text().strip()) == []


@pytest.mark.parametrize("killed_by", [signal.SIGTERM, signal.SIGKILL])
def test_when_it_is_killed_the_command_ends_and_the_next_removes_the_rest(
    told: Path, killed_by: signal.Signals
) -> None:
    run = beside_a_cluster("sh", "-c", ENDLESS, told)
    wait_for(lambda: told.exists() and told.read_text().strip(), every=0.2)
    name = told.read_text().strip()
    assert (base() / "passing" / name / "of-the-command").exists()
    run.send_signal(killed_by)
    run.communicate()
    wait_for(lambda: not [line for line in left(name) if "sleep" in line or "etcd" in line], every=0.2)
    collect()
    assert left(name) == []


def test_a_cluster_ends_with_its_caller(told: Path) -> None:
    """As when CI is killed half way."""
    call = (sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])")
    run = beside_a_cluster("sh", "-c", ENDLESS, told, called_by=call)
    wait_for(lambda: told.exists() and told.read_text().strip(), every=0.2)
    name = told.read_text().strip()
    run.kill()
    wait_for(lambda: not left(name), every=0.2)
    run.communicate()
