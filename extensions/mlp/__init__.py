"""MLP Hub in your notebook and your training program.

    mlp.report(epoch=3, loss=0.1)        a point on the job's curves; mlp.progress(loop) a progress bar
    mlp.params.lr                        what --param lr=0.1, or a sweep, says the program is to run with
    mlp.submit("train.py", workers=2)    a Job: .wait() .logs() .metrics() .why() .result() .watch()
    mlp.data_path("digits")              where a dataset is, in a job and in a notebook
    mlp.sweep("train.py", grid={"lr": [0.1, 0.01]}, metric="accuracy", goal="max")     a Sweep: .best .trials .wait() .extend()
    mlp.runs("lr<0.1")  mlp.compare("digits@1", "digits@3")             runs as a table, and side by side
    mlp.jobs()  mlp.job(name)  mlp.quota()  mlp.offer(workers=4)
    mlp.data.push("photos", "pets")      datasets: .push() .pull() .ls() .rm()
    await mlp.aio.submit(...)            the same from asyncio
    %load_ext mlp                        the magics %mlp and %%mlp

Everything is loaded when it is first used: a training program that only reports pays for nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlp.client.rest import Client as Client
    from mlp.errors import JobFailed as JobFailed
    from mlp.errors import JobTimeout as JobTimeout
    from mlp.errors import MLPError as MLPError
    from mlp.errors import Refused as Refused
    from mlp.errors import TransferFailed as TransferFailed
    from mlp.errors import Unauthorized as Unauthorized
    from mlp.errors import Unreachable as Unreachable
    from mlp.errors import UsageError as UsageError
    from mlp.functions import compare as compare
    from mlp.functions import get_job as job
    from mlp.functions import jobs as jobs
    from mlp.functions import offer as offer
    from mlp.functions import quota as quota
    from mlp.functions import runs as runs
    from mlp.functions import submit as submit
    from mlp.handles.job import Job as Job
    from mlp.handles.sweeping import Sweep as Sweep
    from mlp.handles.sweeping import get_sweep as get_sweep
    from mlp.handles.sweeping import sweep as sweep
    from mlp.handles.sweeping import sweeps as sweeps
    from mlp.inputs.mounted_data import data_path as data_path
    from mlp.inputs.parameters import params as params
    from mlp.inputs.variables import variables as variables
    from mlp.reporting.points import flush as flush
    from mlp.reporting.points import report as report
    from mlp.reporting.progress import progress as progress

_ERRORS = (
    "JobFailed",
    "JobTimeout",
    "MLPError",
    "Refused",
    "TransferFailed",
    "Unauthorized",
    "Unreachable",
    "UsageError",
)
_HOME = {
    "Client": "client.rest.Client",
    "Job": "handles.job.Job",
    "compare": "functions.compare",
    "data_path": "inputs.mounted_data.data_path",
    "flush": "reporting.points.flush",
    "job": "functions.get_job",
    "jobs": "functions.jobs",
    "offer": "functions.offer",
    "params": "inputs.parameters.params",
    "progress": "reporting.progress.progress",
    "quota": "functions.quota",
    "report": "reporting.points.report",
    "runs": "functions.runs",
    "Sweep": "handles.sweeping.Sweep",
    "get_sweep": "handles.sweeping.get_sweep",
    "submit": "functions.submit",
    "sweep": "handles.sweeping.sweep",
    "sweeps": "handles.sweeping.sweeps",
    "variables": "inputs.variables.variables",
    **{name: f"errors.{name}" for name in _ERRORS},
}

__all__ = [  # noqa: PLE0604 - made of constants
    "Client",
    "Job",
    "Sweep",
    "compare",
    "data_path",
    "flush",
    "get_sweep",
    "job",
    "jobs",
    "offer",
    "params",
    "progress",
    "quota",
    "report",
    "runs",
    "submit",
    "sweep",
    "sweeps",
    "variables",
    *_ERRORS,
]


def __getattr__(name: str) -> Any:
    if name in {"aio", "data", "keras", "lightning"}:
        return import_module(f"mlp.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'mlp' has no attribute {name!r}")
    module, _, attribute = _HOME[name].rpartition(".")
    found = getattr(import_module(f"mlp.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "aio", "data", "keras", "lightning"])


def load_ipython_extension(ipython: Any) -> None:
    """Run by `%load_ext mlp`."""
    from mlp.kernel.loading import load  # noqa: PLC0415 - IPython is there only now

    load(ipython)
