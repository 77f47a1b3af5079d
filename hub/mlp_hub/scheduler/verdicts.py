"""Typed reasons with their numbers: why this job does not start now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import DIMENSIONS, Resources
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.fitting import has_quota, is_too_large
from mlp_hub.scheduler.members import Places
from mlp_hub.scheduler.model import Booking, Verdict, Wait, WaitingJob
from mlp_hub.scheduler.placement import NODE, domain_label
from mlp_hub.scheduler.queues import Entry, JobClass
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.quota_words import Told, can_never_start, waits_for_quota
from mlp_hub.scheduler.running import Held
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import limits_of, resources_of
from mlp_hub.scheduler.words import amount, count, in_units, listing, priority, span, when, window_words

MOST_GROUPS = 4
"""Groups of equal nodes that a sentence tells of."""
MOST_STATES = 64
"""Beyond so many different states of nodes the sentence counts them by the ranks that they have room for."""


Hears = Callable[[str, Reason], bool]
"""Whether a job, given its uid, wants to hear that it waits for this reason."""


def of(state: State, entry: Entry, told: Told) -> Verdict:
    """Return why the class of a waiting job could not start when it was last tried."""
    reason = reason_of(state, entry)
    if reason is None:
        return Verdict(Reason.WAITING_FOR_RESOURCES, "not looked at yet: the next scheduling cycle decides")
    if reason is Reason.EXCEEDS_MAX_QUOTA:
        return can_never_start(state, entry)
    if reason is Reason.WAITING_FOR_QUOTA:
        return waits_for_quota(state, entry, told)
    if reason in (Reason.RESERVED, Reason.WAITING_FOR_PREEMPTED):
        return _waits_for_others(state, entry, told)
    if reason in (Reason.WAITING_FOR_RESOURCES, Reason.TOPOLOGY_PLACEMENT_FAILED):
        return waits_for_nodes(state, entry, told)
    raise ValueError(f"no job that is tried waits for {reason}")


def _waits_for_others(state: State, entry: Entry, told: Told) -> Verdict:
    ahead = entry.cls.ahead
    if entry.cls.reason is Reason.WAITING_FOR_PREEMPTED:
        stopping = [state.running[uid].run.job for uid in state.running.stopping]
        names = [f"job {job.name} of {job.user}" for job in stopping]
        return waits_for_preempted(names, tuple(state.running.stopping))
    if isinstance(ahead, Booking):
        return waits_for_window(ahead, told.now)
    first = None if ahead is None else state.waiting.get(ahead)
    return waits_for_its_turn(entry.job, None if first is None else first.job, entry.cls.pass_by, told.now)


def reason_to_tell(quotas: QuotaTree, cls: JobClass) -> Reason | None:
    """Return the reason of a class as those who wait are told it: to wait for a quota that is too small is in vain."""
    reason = cls.reason
    if reason is Reason.WAITING_FOR_QUOTA and is_too_large(quotas, cls):
        return Reason.EXCEEDS_MAX_QUOTA
    return reason


def reason_of(state: State, entry: Entry) -> Reason | None:
    """Return the reason that `of` gives, without the words; None for one that nobody has looked at yet."""
    cls = entry.cls
    reason = reason_to_tell(state.quotas, cls)
    if reason is None:
        if not has_quota(state.quotas, cls):
            return Reason.EXCEEDS_MAX_QUOTA if is_too_large(state.quotas, cls) else Reason.WAITING_FOR_QUOTA
        if state.index.total_slots(cls.demand, cls.topology) >= cls.ranks_min:
            return None
    elif reason not in (Reason.WAITING_FOR_RESOURCES, Reason.TOPOLOGY_PLACEMENT_FAILED):
        return reason
    enough = domain_label(cls.topology)[1] and state.index.total_slots(cls.demand) >= cls.ranks_min
    return Reason.TOPOLOGY_PLACEMENT_FAILED if enough else Reason.WAITING_FOR_RESOURCES


def waits(
    state: State, uids: Iterable[str], hears: Hears | None = None, now: float | None = None
) -> Iterator[Wait]:
    """Say why to those of these jobs that wait, or of them to who `hears`; equals are told the same.

    `now`: from when on what is still to come is counted, the last cycle's time if it is left out.
    """
    made: dict[int, Verdict] = {}
    first: dict[int, Entry] = {}  # of each class, about whom its words are
    places: dict[str, Places] = {}  # by tenant
    told = Told(state.now if now is None else max(now, state.now))
    for uid in uids:
        entry = state.waiting.get(uid)
        if entry is None:
            plain = state.gated.get(uid) or state.orphaned.get(uid)
            if plain is not None:
                gated = plain.gated is not None
                yield Wait(uid, is_gated(plain) if gated else no_tenant(plain), 1)
            continue
        cls = entry.cls
        first.setdefault(cls.serial, entry)
        if hears is not None and not hears(uid, reason_of(state, entry) or Reason.WAITING_FOR_RESOURCES):
            continue
        verdict = made.get(cls.serial)
        if verdict is None:
            verdict = made[cls.serial] = of(state, first[cls.serial], told)
        if cls.tenant not in places:
            places[cls.tenant] = state.places(cls.tenant)
        yield Wait(uid, verdict, places[cls.tenant].of(entry))


def waits_for_preempted(names: Sequence[str], uids: tuple[str, ...], *, for_it: bool = False) -> Verdict:
    """Say whose end makes room for it; `for_it`: these are stopped for it alone."""
    have = "has" if len(names) == 1 else "have"
    message = f"starts as soon as {listing(names)} {have} ended"
    if for_it:
        message += f", which {'is' if len(names) == 1 else 'are'} stopped for it"
    if not names:
        message = "starts as soon as the room that is made for it is free"
    return Verdict(Reason.WAITING_FOR_PREEMPTED, message, {"stopping": len(names)}, uids)


def waits_for_nodes(state: State, entry: Entry, told: Told) -> Verdict:
    """Say that the quota would do, but nodes are full: how much is free where."""
    cls, job = entry.cls, entry.job
    ranks = cls.ranks_min
    label, required = domain_label(cls.topology)
    fitting = min(state.index.total_slots(cls.demand), ranks)
    free = _free(state, entry, told)
    ripe = told.ripe_words(state, cls)
    others = f"; {ripe}" if ripe else ""
    blockers = tuple(uid for _, _, uid in state.running.ends[:MOST_GROUPS])
    if required and fitting >= ranks:
        where = "one node" if label == NODE else f"one {label}"
        message = f"needs {count(ranks, 'rank')} of {amount(job.per_worker)} within {where}; free now: {free}{others}"
        return Verdict(
            Reason.TOPOLOGY_PLACEMENT_FAILED, message, {"ranks": ranks, "fitting": fitting}, blockers
        )
    message = f"needs {count(ranks, 'rank')} of {amount(job.per_worker)} at once; {fitting} would fit now; free: {free}{others}"
    there_is, nodes = state.index.free_for(cls.demand)
    numbers: dict[str, float] = {"ranks": ranks, "fitting": fitting, "nodes": nodes}
    for dimension in DIMENSIONS:
        if need := getattr(job.per_worker, dimension):
            there = max(getattr(there_is, dimension), 0)
            numbers[f"{dimension}_asked"] = in_units(dimension, need * ranks)
            numbers[f"{dimension}_free"] = in_units(dimension, there)
    return Verdict(Reason.WAITING_FOR_RESOURCES, message, numbers, blockers)


def waits_for_its_turn(job: WaitingJob, ahead: WaitingJob | None, by: float | None, now: float) -> Verdict:
    """Say that it would fit, but starting it would delay a job that is ahead of it, unless it ended `by` a time."""
    who = "a job" if ahead is None else f"{ahead.name} of {ahead.user}"
    message = f"would fit, but starting it now would delay {who}, which is ahead of it"
    left = -math.inf if by is None else by - now
    if left == math.inf:
        message += "; with a --time-limit it would not" if job.time_limit is None else ""
    elif left >= 1:
        message += f" and is to start {when(now + left, now)}; with --time-limit {math.floor(left)}s or less it would not"
    if ahead is None:
        return Verdict(Reason.RESERVED, message, {"priority": job.priority})
    numbers = {"ahead_priority": ahead.priority, "priority": job.priority}
    return Verdict(Reason.RESERVED, message, numbers, (ahead.uid,))


def waits_for_window(booking: Booking, now: float) -> Verdict:
    """Say that it would still be there, and in the way, when a booked window opens."""
    what = amount(resources_of(limits_of(booking.amount)))
    opens = max(booking.start - now, 0.0)
    message = (
        f"would fit, but may still hold what {booking.tenant} booked, {what}, when {window_words(booking)} opens in "
        f"{span(opens)}; with --time-limit {math.floor(opens):g}s or less it could start now"
    )
    return Verdict(
        Reason.RESERVED,
        message,
        {"opens_in": round(opens, 3), "window": round(booking.end - booking.start, 3)},
    )


def is_gated(job: WaitingJob) -> Verdict:
    """Say that it was told to wait."""
    assert job.gated is not None  # noqa: S101 - the caller asked for gated jobs only
    message = (
        "suspended: resume it to go on" if job.gated is Reason.SUSPENDED else "held back until it is released"
    )
    return Verdict(job.gated, message)


def no_tenant(job: WaitingJob) -> Verdict:
    """Its tenant was deleted while it waited."""
    return Verdict(
        Reason.GATED,
        f"its tenant {job.tenant} does not exist any more; cancel it or submit it to another one",
    )


def preempted_for(
    job: WaitingJob, held: Held, lost: float, *, reclaimed: bool, moved: bool = False
) -> Verdict:
    """Say for whom a running job is stopped, by what right and at what cost."""
    victim = held.run.job
    if moved:
        right = (
            f"inside the quota of {job.tenant} it needs room in one piece, and this job fits elsewhere too"
        )
    elif reclaimed:
        right = f"{job.tenant} takes back what {victim.tenant} had borrowed"
    else:
        right = f"its priority is {priority(job.priority)}, that of this job {priority(victim.priority)}"
    message = (
        f"stopped to make room for {job.name} of {job.user} in {job.tenant}: {right}; "
        f"it keeps its place in the queue by age"
    )
    numbers = {"priority": victim.priority, "preemptor_priority": job.priority, "lost_work": round(lost, 3)}
    return Verdict(Reason.WAITING_FOR_RESOURCES, message, numbers, (job.uid,))


def shrunk_for(job: WaitingJob, held: Held, by: int) -> Verdict:
    """Say for whom an elastic job gives up workers."""
    left = held.run.workers - by
    message = (
        f"gives {count(by, 'worker')} to {job.name} of {job.user} in {job.tenant} and goes on with {left}, "
        f"its least is {held.run.job.workers_min}"
    )
    return Verdict(Reason.WAITING_FOR_RESOURCES, message, {"workers": left, "given_up": by}, (job.uid,))


def _free(state: State, entry: Entry, told: Told) -> str:
    """Say what is free in the dimensions that the job asks for, equal nodes together: "2 nodes with 3 gpu each"."""
    demand = entry.cls.demand
    if state.index.variety > MOST_STATES:
        return _free_of_many(state, entry)
    dimensions = tuple(d for d, need in entry.job.per_worker.items() if need)
    ask = (demand.gpu_kind if demand.gpu else None, demand.tenant, dimensions)
    known = told.texts.get(ask)
    if known is None:
        known = told.texts[ask] = _free_by_node(state, demand, dimensions)
    return known


def _free_by_node(state: State, demand: Demand, dimensions: tuple[str, ...]) -> str:
    groups: dict[str, tuple[int, str]] = {}
    for free, n, first in state.index.groups(demand):
        what = amount(Resources(**{d: max(getattr(free, d), 0) for d in dimensions}))
        known = groups.get(what)
        groups[what] = (n, first) if known is None else (known[0] + n, min(known[1], first))
    parts = [
        f"{first} has {what}" if n == 1 else f"{n} nodes have {what} each"
        for what, (n, first) in sorted(groups.items(), key=lambda g: (-g[1][0], g[1][1]))
    ]
    return listing(parts) or "no node of that kind is up"


def _free_of_many(state: State, entry: Entry) -> str:
    """Say it for a large cluster: on how many nodes how many ranks would fit, and what is free in all."""
    free, nodes = state.index.free_for(entry.cls.demand)
    if not nodes:
        return "no node of that kind is up"
    asked = Resources(**{d: max(getattr(free, d), 0) for d, need in entry.job.per_worker.items() if need})
    by_slots = sorted(state.index.nodes_by_slots(entry.cls.demand).items())
    parts = [f"{count(n, 'node')} with room for {count(k, 'rank')}" for k, n in by_slots]
    where = listing(parts) or "none with room for a rank"
    return f"{amount(asked)} in all on {nodes} nodes, {where}"
