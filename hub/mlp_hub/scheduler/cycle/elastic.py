"""Growth of elastic jobs that run with less than their most, by room that nobody waits for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlp_hub.scheduler.assign.fit import vector_on
from mlp_hub.scheduler.backfill import ProposedStart, Reservations
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.cycle.grounds import Workers, workers_of
from mlp_hub.scheduler.fairness.members import MemberKey
from mlp_hub.scheduler.model.resources import resources_of
from mlp_hub.scheduler.model.types import AdmittedWorkload, Resize
from mlp_hub.scheduler.nodes.compared import Placed, placed, stays_on
from mlp_hub.scheduler.nodes.placement import domain_label
from mlp_hub.scheduler.policy import JobKey, span_of
from mlp_hub.scheduler.workloads.admitted import Held


@dataclass(frozen=True, slots=True)
class Change:
    """A resize that was applied: of whom, the dominant share of its tenant before, where it runs now and with how many workers."""

    resize: Resize
    before: AdmittedWorkload
    share: float
    placed: Placed
    workers: Workers | None = None  # where it grows


def grow(state: ClusterState, reservations: Reservations) -> Iterator[Change]:
    """Give running elastic jobs the workers that fit now, the tenant with the smallest share first, and of it the member.

    A job grows only if that delays nobody who was promised a start; it gives the workers up again as soon as
    somebody waits who may have them (see `preemption`).
    """
    able = growable(state)

    # where members take turns, all that the tenant runs counts as as old as the oldest
    oldest: dict[str, float] = {}
    for held in able:
        tenant = held.run.job.tenant
        if tenant in state.members:
            oldest[tenant] = min(oldest.get(tenant, math.inf), held.run.started_at)

    def turn(held: Held) -> tuple[JobKey, MemberKey, int]:
        job, started = held.run.job, held.run.started_at
        of_tenant = state.tenant_key(job.tenant, (0.0, oldest.get(job.tenant, started), ""))
        return of_tenant, state.member_key(job.tenant, job.user, (0.0, started, "")), held.serial

    able.sort(key=turn)
    for held in able:
        extra = _extra(state, held, reservations)
        if extra:
            run, job = held.run, held.run.job
            placement = run.placement[: run.workers] + extra + run.placement[run.workers :]
            where = placed(state.index, held.demand, placement, job.topology, Counter(extra))
            change = resize(state, held, placement)
            workers = workers_of(state, job, held.demand, change.resize.workers)
            yield replace(change, placed=where, workers=workers)


def growable(state: ClusterState) -> list[Held]:
    """List running elastic jobs that want more workers and of which one more has room on some node."""
    return [
        held
        for held in state.running.elastic.values()
        if held.run.workers < held.run.job.workers_max
        and not held.run.stopping
        and held.run.job.tenant in state.queues
        and held.run.started_at + state.policy.min_run_s <= state.now
        and state.index.total_slots(held.demand) > 0
    ]


def resize(state: ClusterState, held: Held, placement: tuple[str, ...], for_uid: str | None = None) -> Change:
    """Continue a running job with other ranks; those that stay keep their nodes and GPUs."""
    run = held.run
    workers = len(placement) - run.job.ps
    share = state.meter.share(run.job.tenant)
    devices = None
    if run.devices:
        kept = min(workers, run.workers)
        devices = run.devices[:kept] + run.devices[run.workers :]
    state.give_back(run.job.uid)
    if workers <= run.workers or devices is None:
        new = replace(run, placement=placement, devices=devices or ())
    else:
        # the ranks that stay take their GPUs first, the new ones what is left then
        added = placement[run.workers : workers]
        stay = run.placement
        state.index.reserve_ranks(held.demand, stay, run.devices)
        fresh = state.index.reserve_ranks(held.demand, added)
        state.index.release_ranks(held.demand, stay, run.devices)
        state.index.release_ranks(held.demand, added, fresh)
        new = replace(
            run,
            placement=placement,
            devices=run.devices[: run.workers] + fresh + run.devices[run.workers :],
        )
    span = span_of(run.job)
    if run.expected_end is not None and span is not None and run.job.estimate is not None:
        # the work that is left is done at the rate of the workers it has
        left = max(run.expected_end - state.now, 0.0) * run.workers / max(workers, 1)
        new = replace(new, expected_end=state.now + left)
    devices_now, vector = state.hold(new, held.demand)
    made = Resize(run.job.uid, placement, workers, resources_of(vector), devices_now, None, for_uid)
    return Change(made, run, share, stays_on(state.index, placement))


def _extra(state: ClusterState, held: Held, reservations: Reservations) -> tuple[str, ...]:
    """Find nodes for as many more workers as there is room for."""
    run, demand = held.run, held.demand
    want = run.job.workers_max - run.workers
    tenant = run.job.tenant
    one = vector_on(state.index, demand, run.placement[:1])
    for dimension, need in one.items():
        room = state.quotas.available(tenant, dimension)
        if room is not None:
            want = min(want, room // need)
    end = math.inf if run.expected_end is None else run.expected_end
    while want > 0:
        seats = _seats(state, held, want)
        if seats is None:
            want = min(want - 1, _room(state, held))
            continue
        vector = vector_on(state.index, demand, seats)
        if state.quotas.fits(tenant, vector):
            start = ProposedStart(f"{run.job.uid}+{run.workers}", tenant, demand, seats, vector, end)
            delay = reservations.delayed_by(start)
            if delay is None:
                reservations.keep(start)
                return seats
        want -= 1
    return ()


def _seats(state: ClusterState, held: Held, n: int) -> tuple[str, ...] | None:
    label, required = domain_label(held.run.job.topology)
    if not required:
        return state.index.place(held.demand, n, held.run.job.topology)
    seats: list[str] = []
    for name in _domain(state, held, label):
        seats += [name] * min(state.index.slots(name, held.demand), n - len(seats))
        if len(seats) == n:
            return tuple(seats)
    return None


def _room(state: ClusterState, held: Held) -> int:
    label, required = domain_label(held.run.job.topology)
    if not required:
        return state.index.total_slots(held.demand, held.run.job.topology)
    return sum(state.index.slots(name, held.demand) for name in _domain(state, held, label))


def _domain(state: ClusterState, held: Held, label: str | None) -> list[str]:
    """List the nodes of the domain that a job with a required topology has to stay in."""
    first = held.run.placement[0]
    if not label:
        return [first]
    value = state.index.node(first).labels.get(label)
    return [n for n in state.index.names if state.index.node(n).labels.get(label) == value]
