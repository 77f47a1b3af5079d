"""A port that another hub holds: the refusal names that hub's directory, this one's, and what to type."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub.cli.errors import MachineFailure
from mlp_hub.cli.state import plan, ports

_LISTENS = """
import socket
with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    print(taken.getsockname()[1], flush=True)
    input()
"""
_SUPERVISES = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_a_part_of_another_hub_is_named_by_its_home(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SUPERVISES, _LISTENS, plan.SUPERVISES]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        with pytest.raises(MachineFailure) as refused:
            ports.check_free("127.0.0.1", port, Path("/srv/mine"))
        other.communicate("\n")
    text = refused.value.text()
    assert f"Port {port} is in use by another MLP Hub, process " in text
    assert f"whose MLP_HOME is {tmp_path}." in text
    assert f"/srv/mine, on another port: MLP_PORT={port + 1} make up" in text


def test_another_program_is_named_by_its_command() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(MachineFailure) as refused:
            ports.check_free("127.0.0.1", port, Path("/srv/mine"))
    assert f"Port {port} is in use by process " in refused.value.text()
