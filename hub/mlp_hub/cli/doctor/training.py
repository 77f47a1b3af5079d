"""Doctor's tests of the tools that jobs need on this machine: MPI in a sandbox, TensorFlow, GPUs.

Pods have them from their image.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.supervisor.processes import log_tail
from mlp_hub.settings import Settings
from mlp_language.render import say

MPI_S = 60.0
IMPORT_S = 180
_MPI_PROGRAM = (
    "from mpi4py import MPI; w = MPI.COMM_WORLD; print('sum', w.allreduce(w.rank + 1), 'of', w.size)"
)
_MPI_EXPECTED = "sum 3 of 2"


def mpi(_: Settings) -> Check:
    """Run two ranks in a sandbox and let them add."""
    from mlp_hub import sandbox  # noqa: PLC0415

    mpiexec = Path(sys.prefix) / "bin" / "mpiexec"
    if not mpiexec.exists():
        return Check(
            "mpi",
            FAIL,
            say("mpiexec is missing"),
            say("{executable} -m pip install mpich mpi4py", executable=sys.executable),
        )
    if sandbox.capabilities().mode is None:
        return Check("mpi", WARN, say("not tried: no sandbox"))
    work = Path(tempfile.mkdtemp(prefix="mlp-doctor-"))
    try:
        (work / "home").mkdir()
        (work / "log").mkdir()
        uid = 65534 if os.getuid() == 0 else None
        if uid is not None:
            os.chown(work / "home", uid, uid)
        spec = sandbox.SandboxSpec(
            id="doctor-mpi",
            argv=(str(mpiexec), "-n", "2", sys.executable, "-c", _MPI_PROGRAM),
            env={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": "/home/doctor", "LANG": "C.UTF-8"},
            home_dir=str(work / "home"),
            home_mount="/home/doctor",
            log_dir=str(work / "log"),
            uid=uid,
            binds=sandbox.environment_binds(sys.executable),
        )
        began = time.monotonic()
        sandbox.launch(spec, str(work / "run"))
        while (state := sandbox.inspect(str(work / "run"))).phase in ("starting", "running"):
            if time.monotonic() - began > MPI_S:
                return Check(
                    "mpi",
                    FAIL,
                    say("two ranks did not end within {mpi_s} s", mpi_s=f"{MPI_S:.0f}"),
                    say("Try: mpiexec -n 2 hostname"),
                )
            time.sleep(0.02)
        took = time.monotonic() - began
        output = log_tail(work / "log" / "rank-0.log", 8)
        if _MPI_EXPECTED in output:
            return Check("mpi", OK, say("two ranks added in a sandbox, {took} s", took=f"{took:.2f}"))
        why = state.exit.message if state.exit and state.exit.message else str(state.phase)
        return Check(
            "mpi", FAIL, say("two ranks in a sandbox: {why}", why=why), output or "There was no output."
        )
    finally:
        sandbox.remove(str(work / "run"))
        shutil.rmtree(work, ignore_errors=True)


def tensorflow(_: Settings) -> Check:
    """Import it in the environment that users get."""
    return _importable("tensorflow", "tf", "tensorflow-cpu")


def torch(_: Settings) -> Check:
    """Import it in the environment that users get; without it jobs with its runtime are refused."""
    if importlib.util.find_spec("torch") is None:
        remedy = say(
            "Jobs with --runtime torch are refused; if you want them: {executable} -m pip install torch",
            executable=sys.executable,
        )
        return Check("torch", WARN, say("not installed"), remedy)
    return _importable("torch", "torch", "torch")


def _importable(module: str, runtime: str, package: str) -> Check:
    code = f"import {module}; print('version', {module}.__version__)"
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=IMPORT_S, check=False
    )
    if done.returncode == 0:
        return Check(module, OK, done.stdout.strip().rpartition("version ")[2])
    last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    remedy = say(
        "Jobs with --runtime {runtime} need it: {executable} -m pip install {package}",
        runtime=runtime,
        executable=sys.executable,
        package=package,
    )
    return Check(module, WARN, last, remedy)


def gpu(settings: Settings) -> Check:
    """Ask the driver for its devices."""
    if settings.node_gpus is not None:
        return Check("gpu", OK, say("{node_gpus} by the setting node_gpus", node_gpus=settings.node_gpus))
    try:
        import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return Check(
            "gpu",
            WARN,
            say("cannot be checked"),
            say("{executable} -m pip install nvidia-ml-py", executable=sys.executable),
        )
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        if Path("/proc/driver/nvidia").exists():
            return Check(
                "gpu",
                WARN,
                say("there is a driver, but its library is missing"),
                say("Install libnvidia-ml1."),
            )
        return Check("gpu", OK, say("none"))
    try:
        names = [
            pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))
            for i in range(pynvml.nvmlDeviceGetCount())
        ]
        return Check(
            "gpu",
            OK,
            say(
                "{count}: {names}, driver {driver}",
                count=len(names),
                names=", ".join(map(str, names)),
                driver=pynvml.nvmlSystemGetDriverVersion(),
            ),
        )
    finally:
        pynvml.nvmlShutdown()
