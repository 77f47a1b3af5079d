"""Conversion of a requested sweep into its trials; each refusal has the value, the limit and the remedy.

Options have their names of the command line, as in refusals of jobs: for REST and Python,
`--core-hours` is the field `core_hours`.
"""

from __future__ import annotations

from typing import NoReturn

from mlp_api.jobs import sweeps as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.domain.jobs.space import Grid, check_grid, parse_array, parse_space
from mlp_hub.domain.jobs.sweep import MOST_TRIALS, Budget, SubmittedFrom, SweepSpec
from mlp_hub.domain.resources import HOUR_S, units
from mlp_language.message import Message, msg

LEAST_S = 1.0
"""Given: seconds that a trial takes at least, whatever it does."""


def sweep_spec(asked: api.SweepCreate, job: JobSpec) -> SweepSpec:
    """Return the sweep to try; raise `Refused` for an invalid one. `job` is the job of each trial."""
    said = asked.provenance
    parallel = asked.parallel
    if asked.array is not None:
        if asked.grid or asked.search:
            _refuse(msg("--array cannot be used with --grid or --search; an array has only its indices"))
        indices, most = parse_array(asked.array)
        grid: Grid = (("index", indices),)
        parallel = most if parallel is None else parallel
    else:
        grid = check_grid(asked.grid)
    search = parse_space(asked.search)
    _check_names(grid, tuple(name for name, _ in search), job)
    if not grid and not search:
        _refuse(
            msg(
                "nothing to try: give --grid (such as lr=0.1,0.01) or --search (such as dropout=uniform(0, 0.5))"
            )
        )
    _check_metric(asked, searched=bool(search))
    spec = SweepSpec(
        job=job,
        grid=grid,
        search=search,
        metric=asked.metric or "",
        maximize=asked.goal == "max",
        sampler=asked.sampler,
        stop=asked.stop,
        warmup=asked.warmup,
        parallel=parallel,
        seed=asked.seed,
        array=asked.array is not None,
        # a trial is compared with those before it: in the order of a grid each may well be better than all of them, and none is stopped
        shuffled=asked.stop != "none" and asked.array is None,
        submitted_from=None if said is None else SubmittedFrom(said.commit, said.dirty, said.environment),
    )
    points = spec.points
    if points is not None and points > MOST_TRIALS and (asked.trials or points) > MOST_TRIALS:
        _refuse(
            msg(
                "the grid has {n} points, and the limit of a sweep is {most} trials; give fewer values, or --trials to try some of them",
                n=points,
                most=MOST_TRIALS,
            )
        )
    return spec


def _check_metric(asked: api.SweepCreate, *, searched: bool) -> None:
    if asked.metric is None:
        for name, given in (("goal", asked.goal is not None), ("stop", asked.stop != "none")):
            if given:
                _refuse(
                    msg(
                        "{option} without --metric compares nothing; name a metric of mlp.report with --metric",
                        option=f"--{name}",
                    )
                )
        if searched and asked.sampler == "tpe":
            _refuse(msg("a search needs --metric and --goal, or --sampler random, which ignores results"))
    elif asked.goal is None:
        _refuse(msg("is more {metric} better, or less? Give --goal max or --goal min", metric=asked.metric))


def budget_of(asked: api.SweepCreate, spec: SweepSpec, now: float) -> Budget:
    """Return the budget; raises `Refused` where there is none, or it cannot hold one trial."""
    points = spec.points
    if points is None and asked.trials is None and asked.core_hours is None and asked.deadline is None:
        _refuse(msg("the space has no end: limit the trials with --trials, --core-hours or --deadline"))
    if points is not None and asked.trials is not None and asked.trials > points:
        _refuse(
            msg(
                "{trials} trials are more than all {n} points; leave --trials out to try all",
                trials=asked.trials,
                n=points,
            )
        )
    job = spec.job
    cores = units(job.per_worker.cpu) * job.ranks_min
    limit = job.time_limit
    if asked.core_hours is not None:
        least = cores * LEAST_S / HOUR_S
        needed = least if limit is None else cores * limit / HOUR_S
        if asked.core_hours < needed:
            _refuse(
                msg(
                    "{n} core-hours are too few for one trial, which can take {needed} ({cores} cores for {s} s); give more --core-hours, or a shorter --time-limit",
                    n=f"{asked.core_hours:g}",
                    needed=f"{needed:.4g}",
                    cores=f"{cores:g}",
                    s=limit or 1,
                )
            )
    if asked.deadline is not None and limit is not None and asked.deadline < limit:
        _refuse(
            msg(
                "--deadline in {n} s is too early for one trial with --time-limit {s} s; give a later deadline, or a shorter limit",
                n=asked.deadline,
                s=limit,
            )
        )
    deadline = None if asked.deadline is None else now + asked.deadline
    return Budget(asked.trials or points or MOST_TRIALS, asked.core_hours, deadline)


def _check_names(grid: Grid, searched: tuple[str, ...], job: JobSpec) -> None:
    named = [*(name for name, _ in grid), *searched, *job.params]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        _refuse(
            msg(
                "parameter {name} is given twice: each parameter can be in only one of --grid, --search and --param",
                name=twice,
            )
        )


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
