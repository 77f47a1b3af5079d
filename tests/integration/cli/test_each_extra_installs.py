"""The wheel, installed with each of its extras into a fresh environment, does what the extra promises."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from release.index import UV, with_index

ROOT = Path(__file__).parents[3]
WHOLE = pytest.mark.whole
WHEELS = sorted((ROOT / "build" / "wheel").glob("mlp_hub-*.whl"))

pytestmark = pytest.mark.skipif(not WHEELS or not UV.exists(), reason="no wheel was built here: make install")

OF_EXTRAS = {
    "": ("import mlp, mlp.aio, mlp_language", "mlp --help"),
    "service": ("import mlp_hub.app, mlp_hub.web.site", "mlp-hub --settings"),
    "hub": ("import jupyterhub, mlp_hub.cli.main, mlp_hub.hub_integration.configure", "mlp-hub --help"),
    "postgresql": ("import psycopg", "mlp --help"),
    "kafka": ("import aiokafka, mlp_hub.in_kafka", "mlp --help"),
    "otlp": ("import opentelemetry.proto.trace.v1.trace_pb2", "mlp --help"),
    "traces": ("import opentelemetry.proto.trace.v1.trace_pb2", "mlp --help"),
    "s3": ("import minio", "mlp --help"),
    "kubernetes": ("import kubernetes_asyncio", "mlp --help"),
    "spawner": ("import mlp_spawner", "mlp --help"),
    "notebook": ("import jupyterlab, mlp.kernel", "jupyter labextension list"),
    "mpi": ("import numpy, pandas, sklearn", "mlp --help"),
    "tf": ("import importlib.util as u; assert u.find_spec('tensorflow')", "mlp --help"),
    "training": (
        "import importlib.util as u; assert u.find_spec('tensorflow') and u.find_spec('mpi4py')",
        "mpiexec --version",
    ),
}
"""What each extra lets a program import, and a command that then runs."""
HEAVY = {"hub", "notebook", "mpi", "tf", "training"}
"""Extras that take seconds to unpack, if the packages are here already, and minutes if not."""
OF_DEVELOPERS = {"test", "dev"}


def test_each_extra_has_a_row() -> None:
    with zipfile.ZipFile(WHEELS[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        said = wheel.read(name).decode().splitlines()
    extras = {line.partition(": ")[2] for line in said if line.startswith("Provides-Extra: ")}
    assert extras - OF_DEVELOPERS == set(OF_EXTRAS) - {""}


@pytest.mark.parametrize("extra", [pytest.param(e, marks=[WHOLE] if e in HEAVY else []) for e in OF_EXTRAS])
def test_an_extra_brings_all_that_it_promises(extra: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    env = {k: v for k, v in with_index().items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    env["PATH"] = f"{venv}/bin:{env['PATH']}"
    run(env, UV, "venv", "-q", "--python", sys.executable, venv)
    wheel = f"mlp-hub[{extra}] @ {WHEELS[0].as_uri()}" if extra else WHEELS[0]
    run(env, UV, "pip", "install", "-q", "--python", venv, "-c", ROOT / "constraints.txt", wheel)
    imports, command = OF_EXTRAS[extra]
    run(env, venv / "bin" / "python", "-I", "-c", imports)
    run(env, *command.split())


def run(env: dict[str, str], *command: str | Path) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
