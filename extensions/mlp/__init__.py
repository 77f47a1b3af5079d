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
    from mlp.client import Client as Client
    from mlp.errors import JobFailed as JobFailed
    from mlp.errors import JobTimeout as JobTimeout
    from mlp.errors import MLPError as MLPError
    from mlp.errors import Refused as Refused
    from mlp.errors import TransferFailed as TransferFailed
    from mlp.errors import Unauthorized as Unauthorized
    from mlp.errors import Unreachable as Unreachable
    from mlp.errors import UsageError as UsageError
    from mlp.handle import Job as Job
    from mlp.handle import compare as compare
    from mlp.handle import get_job as job
    from mlp.handle import jobs as jobs
    from mlp.handle import offer as offer
    from mlp.handle import quota as quota
    from mlp.handle import runs as runs
    from mlp.handle import submit as submit
    from mlp.mounted_data import data_path as data_path
    from mlp.parameters import params as params
    from mlp.program import variables as variables
    from mlp.progressing import progress as progress
    from mlp.reporting import flush as flush
    from mlp.reporting import report as report
    from mlp.sweeping import Sweep as Sweep
    from mlp.sweeping import get_sweep as get_sweep
    from mlp.sweeping import sweep as sweep
    from mlp.sweeping import sweeps as sweeps

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
    "Client": "client.Client",
    "Job": "handle.Job",
    "compare": "handle.compare",
    "data_path": "mounted_data.data_path",
    "flush": "reporting.flush",
    "job": "handle.get_job",
    "jobs": "handle.jobs",
    "offer": "handle.offer",
    "params": "parameters.params",
    "progress": "progressing.progress",
    "quota": "handle.quota",
    "report": "reporting.report",
    "runs": "handle.runs",
    "Sweep": "sweeping.Sweep",
    "get_sweep": "sweeping.get_sweep",
    "submit": "handle.submit",
    "sweep": "sweeping.sweep",
    "sweeps": "sweeping.sweeps",
    "variables": "program.variables",
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
    module, _, attribute = _HOME[name].partition(".")
    found = getattr(import_module(f"mlp.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "aio", "data", "keras", "lightning"])


def load_ipython_extension(ipython: Any) -> None:
    """Run by `%load_ext mlp`."""
    from mlp.loading import load  # noqa: PLC0415 - IPython is there only now

    load(ipython)
