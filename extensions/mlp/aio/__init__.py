"""The interface of `mlp` for asyncio, for programs whose loop must not wait: each function is awaited.

    job = await mlp.aio.submit("train.py", workers=2)
    await job.wait()
    print(await job.result())

Requests are made in threads, by the one shared client. Waits sleep on the loop, and end if they are
cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeVar

from mlp import data as data_
from mlp import functions
from mlp.aio.sweeps import AsyncSweep, get_sweep, sweep, sweeps
from mlp.client.outlasting_wait import OutlastingWait
from mlp.client.rest import Client, Json
from mlp.handles.job import Job
from mlp.rendering import tables

P = ParamSpec("P")
T = TypeVar("T")


def _asked(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a client's method to be awaited."""

    @wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.client, *args, **kwargs)

    return call


class AsyncClient:
    """Talks to the service as one user, as `mlp.Client` does; `client` is the one that it asks by."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @classmethod
    def from_env(cls, **options: Any) -> AsyncClient:
        """Make a client for this environment; raises `Unreachable` or `Unauthorized` where that cannot be."""
        return cls(Client.from_env(**options))

    async def user(self) -> str:
        """Return whose token this is; the service is asked once."""
        return await asyncio.to_thread(lambda: self.client.user)

    request = _asked(Client.request)
    get = _asked(Client.get)
    submit = _asked(Client.submit)
    preview = _asked(Client.preview)
    budgets = _asked(Client.budgets)
    cost = _asked(Client.cost)
    job = _asked(Client.job)
    jobs = _asked(Client.jobs)
    act = _asked(Client.act)
    note = _asked(Client.note)
    delete = _asked(Client.delete)
    why = _asked(Client.why)
    decisions = _asked(Client.decisions)
    events = _asked(Client.events)
    attempts = _asked(Client.attempts)
    log = _asked(Client.log)
    points = _asked(Client.points)
    files = _asked(Client.files)
    models = _asked(Client.models)
    model = _asked(Client.model)
    register = _asked(Client.register)
    stage = _asked(Client.stage)
    remove_model = _asked(Client.remove_model)
    environments = _asked(Client.environments)
    environment = _asked(Client.environment)
    create_environment = _asked(Client.create_environment)
    delete_environment = _asked(Client.delete_environment)
    datasets = _asked(Client.datasets)
    dataset = _asked(Client.dataset)
    make_dataset = _asked(Client.make_dataset)
    beat = _asked(Client.beat)
    remove_dataset = _asked(Client.remove_dataset)
    sync_dataset = _asked(Client.sync_dataset)
    secrets = _asked(Client.secrets)
    set_secret = _asked(Client.set_secret)
    remove_secret = _asked(Client.remove_secret)
    start_sweep = _asked(Client.start_sweep)
    preview_sweep = _asked(Client.preview_sweep)
    sweeps = _asked(Client.sweeps)
    sweep = _asked(Client.sweep)
    sweep_curves = _asked(Client.sweep_curves)
    act_sweep = _asked(Client.act_sweep)
    delete_sweep = _asked(Client.delete_sweep)
    notifications = _asked(Client.notifications)
    set_notifications = _asked(Client.set_notifications)
    test_notification = _asked(Client.test_notification)
    apps = _asked(Client.apps)
    apps_of_others = _asked(Client.apps_of_others)
    app_of_another = _asked(Client.app_of_another)
    models_of_job = _asked(Client.models_of_job)
    runs = _asked(Client.runs)
    runs_csv = _asked(Client.runs_csv)
    usage = _asked(Client.usage)
    usage_file = _asked(Client.usage_file)
    run = _asked(Client.run)
    write_run = _asked(Client.write_run)
    act_on_runs = _asked(Client.act_on_runs)
    curves = _asked(Client.curves)
    app = _asked(Client.app)
    deploy = _asked(Client.deploy)
    scale_app = _asked(Client.scale_app)
    app_log = _asked(Client.app_log)
    app_keys = _asked(Client.app_keys)
    make_app_key = _asked(Client.make_app_key)
    revoke_app_key = _asked(Client.revoke_app_key)
    set_app_access = _asked(Client.set_app_access)
    app_usage = _asked(Client.app_usage)
    remove_app = _asked(Client.remove_app)
    quota = _asked(Client.quota)
    offer = _asked(Client.offer)
    preferences = _asked(Client.preferences)
    prefer = _asked(Client.prefer)
    end_own_token = _asked(Client.end_own_token)
    tokens = _asked(Client.tokens)
    make_token = _asked(Client.make_token)
    end_token = _asked(Client.end_token)
    teams = _asked(Client.teams)
    ask_team = _asked(Client.ask_team)
    unask_team = _asked(Client.unask_team)
    joins = _asked(Client.joins)
    answer_join = _asked(Client.answer_join)
    caps = _asked(Client.caps)
    set_cap = _asked(Client.set_cap)
    quota_requests = _asked(Client.quota_requests)
    ask_quota = _asked(Client.ask_quota)
    withdraw_quota = _asked(Client.withdraw_quota)
    services = _asked(Client.services)
    make_service = _asked(Client.make_service)
    rotate_service = _asked(Client.rotate_service)
    end_service = _asked(Client.end_service)
    tenants = _asked(Client.tenants)
    runtimes = _asked(Client.runtimes)


def _looked(
    method: Callable[Concatenate[Job, P], T],
) -> Callable[Concatenate[AsyncJob, P], Coroutine[Any, Any, T]]:
    """Return a job's method to be awaited."""

    @wraps(method)
    async def call(self: AsyncJob, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.job, *args, **kwargs)

    return call


def _steered(
    method: Callable[Concatenate[Job, P], Job],
) -> Callable[Concatenate[AsyncJob, P], Coroutine[Any, Any, AsyncJob]]:
    """Return a job's method to be awaited, which gives the job itself."""

    @wraps(method)
    async def call(self: AsyncJob, /, *args: P.args, **kwargs: P.kwargs) -> AsyncJob:
        await asyncio.to_thread(method, self.job, *args, **kwargs)
        return self

    return call


class AsyncJob:
    """Job of the user, as `mlp.Job`; `job` is that object, with the data last seen."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @property
    def name(self) -> str:
        """As it was given."""
        return self.job.name

    @property
    def run(self) -> int:
        """Which run of its name this is, from 1 on."""
        return self.job.run

    @property
    def reference(self) -> str:
        """Reference to this run and no other: digits@2."""
        return self.job.reference

    @property
    def user(self) -> str:
        """Owner of the job."""
        return self.job.user

    @property
    def phase(self) -> str:
        """Fine life cycle: queued, running, finished, failed, ..."""
        return self.job.phase

    @property
    def state(self) -> str:
        """Coarse state: creating, running, finished, error, deleting."""
        return self.job.state

    @property
    def progress(self) -> int:
        """0 to 100."""
        return self.job.progress

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.job.final

    def __repr__(self) -> str:
        return repr(self.job)

    async def wait(self, timeout: float | None = None) -> AsyncJob:  # noqa: ASYNC109 - as of a `Job`
        """Wait until it has ended, well or not, also while the hub is away.

        Raises `JobTimeout` after `timeout` seconds; the job then continues.
        """
        wait = OutlastingWait(self.job._client, timeout)  # noqa: SLF001 - one module family
        while not (await asyncio.to_thread(wait.asked, self.job.refresh) and self.final):
            if wait.over:
                raise self.job.late(timeout or 0.0)
            await asyncio.sleep(wait.pause())
        return self

    async def result(self, timeout: float | None = None) -> dict[str, float]:  # noqa: ASYNC109 - same
        """Wait, and return the last value of each metric; raises `JobFailed` when it did not finish well."""
        await self.wait(timeout)
        self.check()
        return (await asyncio.to_thread(self.job._outcome)).latest()  # noqa: SLF001 - one module family

    def check(self, *, shown: bool = False) -> None:
        """Raise `JobFailed` when it ended without having finished."""
        self.job.check(shown=shown)

    refresh = _steered(Job.refresh)
    cancel = _steered(Job.cancel)
    suspend = _steered(Job.suspend)
    resume = _steered(Job.resume)
    resubmit = _steered(Job.resubmit)
    update = _steered(Job.update)
    keep = _steered(Job.keep)
    delete = _looked(Job.delete)
    history = _looked(Job.history)
    metrics = _looked(Job.metrics)
    logs = _looked(Job.logs)
    why = _looked(Job.why)
    events = _looked(Job.events)
    files = _looked(Job.files)
    get = _looked(Job.get)


async def submit(entry: str | None = None, *, wait: bool = False, **options: Any) -> AsyncJob:
    """Submit a job with the options of `mlp.submit`; with `wait`, return it when it has finished well."""
    if options.get("dry_run"):
        raise TypeError("a dry run makes no job: mlp.submit(..., dry_run=True)")
    if options.get("array") is not None:
        raise TypeError("an array is many jobs: mlp.submit(..., array=...)")
    found = AsyncJob(await asyncio.to_thread(functions.submit, entry, **options))
    if wait:
        await found.wait()
        found.check()
    return found


async def job(name: str) -> AsyncJob:
    """Return one of your jobs by its name, the latest run, or a certain one: `digits@2`."""
    return AsyncJob(await asyncio.to_thread(functions.get_job, name))


async def jobs(state: str | None = None, tenant: str | None = None) -> list[AsyncJob]:
    """Return your jobs, those that have not ended first; `state` is a state or a phase."""
    return [AsyncJob(one) for one in await asyncio.to_thread(functions.jobs, state, tenant)]


async def quota() -> tables.Table:
    """Return what your tenants may use, what is used of it, and by whom."""
    return await asyncio.to_thread(functions.quota)


async def offer(**options: Any) -> tables.Sentences:
    """Return what a job of this shape would get, with the options of `mlp.offer`."""
    return await asyncio.to_thread(functions.offer, **options)


class _Data:
    """Datasets, as in `mlp.data`; a cancelled call stops the transfer, and the same call again continues it."""

    async def push(
        self, path: str | PathLike[str], to: str | None = None, **options: Any
    ) -> tables.Sentences:
        """Upload a file or a directory, with the options of `mlp.data.push`."""
        return await _stoppable(data_.push, path, to, options)

    async def pull(
        self, what: str, to: str | PathLike[str] | None = None, **options: Any
    ) -> tables.Sentences:
        """Download a dataset or files of it, with the options of `mlp.data.pull`."""
        return await _stoppable(data_.pull, what, to, options)

    async def ls(self, what: str | None = None) -> tables.Table:
        """List datasets, or files of one."""
        return await asyncio.to_thread(data_.ls, what)

    async def add(self, source: str, name: str, **options: Any) -> tables.Sentences:
        """Make a dataset that the platform copies, with the options of `mlp.data.add`."""
        return await asyncio.to_thread(partial(data_.add, source, name, **options))

    async def sync(self, name: str) -> tables.Sentences:
        """Have what changed at a dataset's source copied."""
        return await asyncio.to_thread(data_.sync, name)

    async def rm(self, what: str) -> tables.Sentences:
        """Delete a dataset, or files of it."""
        return await asyncio.to_thread(data_.rm, what)


async def _stoppable(act: Callable[..., T], what: Any, to: Any, options: dict[str, Any]) -> T:
    """Run a transfer in a thread; where this is cancelled, that is stopped and waited for."""
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(act, what, to, stop=stop, **options))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()
        raise


data = _Data()

__all__ = [
    "AsyncClient",
    "AsyncJob",
    "AsyncSweep",
    "Json",
    "data",
    "get_sweep",
    "job",
    "jobs",
    "offer",
    "quota",
    "submit",
    "sweep",
    "sweeps",
]
