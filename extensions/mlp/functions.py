"""Functions of `import mlp` for jobs and runs: each asks the hub of this environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mlp.client.rest import Client
from mlp.grammar.job_options import BY_NAME, OFFER, SUBMIT, as_sent, seconds_meant
from mlp.grammar.keywords import describe, parse
from mlp.grammar.query_options import STATE
from mlp.handles.job import Job, JobList, listed
from mlp.handles.sending import send
from mlp.rendering import reasons, tables
from mlp.submitting import program


def submit(
    entry: str | os.PathLike[str] | None = None,
    *,
    code: str | None = None,
    args: Sequence[object] = (),
    variables: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    given = parse(options, SUBMIT, "submit")
    body = program.build(given, entry=entry, code=code, args=args, variables=variables)
    client = Client.from_env()
    if given.get("array") is not None:
        from mlp.handles import sweeping  # noqa: PLC0415 - a single job needs none of it

        return sweeping.begin(client, sweeping.as_array(body, given), given)
    if given.get("dry_run"):
        from mlp.handles.dry_run import dry_run  # noqa: PLC0415 - likewise

        return dry_run(client, body, named="name" in given)
    job = send(client, body, named="name" in given)
    for note in filter(None, (seconds_meant(given), job.note)):
        sys.stderr.write(f"{note}\n")
    if given.get("wait"):
        job.wait()
        job.check()
    return job


def runs(search: str = "", sort: str = "-submitted") -> Any:
    """Return your runs for which a search holds, as `lr<0.1 accuracy>=0.9 tag=best`; `.to_frame()` makes a DataFrame of them."""
    from mlp.handles import compared_runs  # noqa: PLC0415 - who submits needs none of it

    return compared_runs.RunsTable(Client.from_env().runs(search, sort))


def compare(*names: str, by: str = "step", metric: str | None = None) -> Any:
    """Lay runs side by side: curves, and what of parameters, program and environment is not the same."""
    from mlp.handles import compared_runs  # noqa: PLC0415 - likewise

    return compared_runs.compare(Client.from_env(), names, by=by, metric=metric)


def get_job(name: str) -> Job:
    """Return one of your jobs by its name, the latest run, or a certain one: `digits@2`."""
    client = Client.from_env()
    return Job(client, client.job(name))


def jobs(state: str | None = None, tenant: str | None = None) -> JobList:
    """Return your jobs, those that have not ended first; `state` is a state or a phase."""
    state = None if state is None else STATE.value(state)
    return listed(Client.from_env(), state, tenant)


def quota() -> tables.Table:
    """Return what your tenants may use, what is used of it, and by whom."""
    return tables.quota(Client.from_env().quota())


def offer(**options: Any) -> tables.Sentences:
    shape = parse(options, OFFER, "offer")
    asked = as_sent({k: v for k, v in shape.items() if v != BY_NAME[k].default})
    return reasons.offer(Client.from_env().offer(asked))


describe(
    submit,
    "Submit a job and return it at once as a `Job` (with `wait`, when it has finished well).\n\n"
    "    entry: a script in your home; or code: the program's text; args: the script's arguments\n"
    "    variables: sent along as JSON; in a program's text they are variables, a script reads `mlp.variables()`",
    SUBMIT,
)
describe(offer, "Return what a job of this shape would get: start now or when, on what, at what cost.", OFFER)
