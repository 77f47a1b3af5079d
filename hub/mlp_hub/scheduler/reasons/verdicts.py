"""Typed reasons with their numbers: why this job does not start now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.quantities import quantities, quantity
from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.assign.feasible import domain_word
from mlp_hub.scheduler.assign.fit import has_quota, is_too_large
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.fairness.members import Places
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import limits_of, placed, resources_of
from mlp_hub.scheduler.model.types import CapacityWindow, PendingWorkload, Verdict, Wait
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.placement import domain_label
from mlp_hub.scheduler.nodes.states import DRAINED, Shut
from mlp_hub.scheduler.preemption.choice import Right
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.reasons.quota import FactCache, can_never_start, waits_for_quota, window
from mlp_hub.scheduler.workloads.admitted import Held
from mlp_hub.scheduler.workloads.pending import Entry, JobClass
from mlp_language.message import NOTHING, Arg, JobRef, Message, Moment, Span, TenantRef, msg, msgs, some

MOST_GROUPS = 4
"""Tuning: groups of equal nodes that a reason names; a trade of a reader's attention against detail."""
MOST_STATES = 64
"""Tuning: different states of nodes, beyond which a reason counts nodes by the ranks that they have room for: time of a cycle,
for how much is told."""


WantsReason = Callable[[str, Reason], bool]
"""Function that says whether a job, given its uid, wants to hear that it waits for this reason."""


def verdict_of(state: ClusterState, entry: Entry, cache: FactCache) -> Verdict:
    """Return why the class of a waiting job could not start when it was last tried."""
    reason = reason_of(state, entry)
    if reason is None:
        return Verdict(Reason.WAITING_FOR_RESOURCES, msg("Not examined yet. The next cycle decides."))
    if reason is Reason.EXCEEDS_MAX_QUOTA:
        return can_never_start(state, entry)
    if reason is Reason.WAITING_FOR_QUOTA:
        return waits_for_quota(state, entry, cache)
    if reason in (Reason.RESERVED, Reason.WAITING_FOR_PREEMPTED):
        return _waits_for_others(state, entry, cache)
    if reason in (Reason.WAITING_FOR_RESOURCES, Reason.TOPOLOGY_PLACEMENT_FAILED):
        return waits_for_nodes(state, entry, cache)
    raise ValueError(f"no job that is tried waits for {reason}")


def _waits_for_others(state: ClusterState, entry: Entry, cache: FactCache) -> Verdict:
    ahead = entry.cls.ahead
    if entry.cls.reason is Reason.WAITING_FOR_PREEMPTED:
        stopping = [state.running[uid].run.job for uid in state.running.stopping]
        return waits_for_preempted([job.ref for job in stopping], tuple(state.running.stopping))
    if isinstance(ahead, CapacityWindow):
        return waits_for_window(ahead, cache.now)
    first = None if ahead is None else state.waiting.get(ahead)
    return waits_for_its_turn(entry.job, None if first is None else first.job, entry.cls.pass_by, cache.now)


def reason_to_report(quotas: QuotaTree, cls: JobClass) -> Reason | None:
    """Return the reason of a class as those who wait are told it: to wait for a quota that is too small is in vain."""
    reason = cls.reason
    if reason is Reason.WAITING_FOR_QUOTA and is_too_large(quotas, cls):
        return Reason.EXCEEDS_MAX_QUOTA
    return reason


def reason_of(state: ClusterState, entry: Entry) -> Reason | None:
    """Return the reason that `of` gives, without the words; None for one that nobody has looked at yet."""
    cls = entry.cls
    reason = reason_to_report(state.quotas, cls)
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
    state: ClusterState, uids: Iterable[str], wants: WantsReason | None = None, now: float | None = None
) -> Iterator[Wait]:
    """Give waiting jobs of `uids` their reasons, or only those `wants` accepts; equal jobs share a reason.

    `now` is the time from which future events count; the default is the last cycle's time.
    """
    made: dict[int, Verdict] = {}
    first: dict[int, Entry] = {}  # of each class, about whom its words are
    places: dict[str, Places] = {}  # by tenant
    cache = FactCache(state.now if now is None else max(now, state.now))
    for uid in uids:
        entry = state.waiting.get(uid)
        if entry is None:
            lost = state.orphaned.get(uid)
            if lost is not None:
                yield Wait(uid, no_tenant(lost), 1)
            continue
        cls = entry.cls
        first.setdefault(cls.serial, entry)
        if wants is not None and not wants(uid, reason_of(state, entry) or Reason.WAITING_FOR_RESOURCES):
            continue
        verdict = made.get(cls.serial)
        if verdict is None:
            verdict = made[cls.serial] = verdict_of(state, first[cls.serial], cache)
        if cls.tenant not in places:
            places[cls.tenant] = state.places(cls.tenant)
        yield Wait(uid, verdict, places[cls.tenant].place_of(entry))


def waits_for_preempted(jobs: Sequence[JobRef], uids: tuple[str, ...], *, for_it: bool = False) -> Verdict:
    """Say whose end makes room for it; `for_it`: these are stopped for it alone."""
    headline = msg("Waits for the end of {jobs}.", jobs=some(jobs))
    if for_it:
        headline = msg("Waits for the end of {jobs}, stopped for it.", jobs=some(jobs))
    if not jobs:
        headline = msg("Waits for room that is made for it.")
    return Verdict(Reason.WAITING_FOR_PREEMPTED, headline, (Fact("stopping", len(jobs)),), uids)


def waits_for_nodes(state: ClusterState, entry: Entry, cache: FactCache) -> Verdict:
    """Say that the quota would do, but nodes are full: how much is free where."""
    cls, job = entry.cls, entry.job
    ranks = cls.ranks_min
    label, required = domain_label(cls.topology)
    fitting = min(state.index.total_slots(cls.demand), ranks)
    free_on = Fact("free_on", _free(state, entry, cache))
    way, more = cache.may_stop(state, cls)
    way = way or msg("Starts when others end.")
    blockers = tuple(uid for _, _, uid in state.running.ends[:MOST_GROUPS])
    facts = [Fact("ranks", ranks), Fact("fitting", fitting)]
    if required and fitting >= ranks:
        headline = msgs(
            "Needs room for {n} rank on one {where}. {way}",
            "Needs room for {n} ranks on one {where}. {way}",
            n=ranks,
            where=domain_word(label),
            way=way,
        )
        return Verdict(
            Reason.TOPOLOGY_PLACEMENT_FAILED, headline, (*facts, _each(job), free_on, *more), blockers
        )
    there_is, nodes = state.index.free_for(cls.demand)
    shut = _shut(state, cls.demand)
    if shut and not nodes:
        way = msg("Starts when a node accepts work.")
    if back := must_return(state.index, cls):
        way = msgs(
            "Starts once node {node} is back.",
            "Starts once drained nodes are back.",
            n=len(back),
            node=back[0],
        )
    if shut and not fitting and (group := state.index.could_grow(cls.demand)):
        way = msg("Group {group} must grow.", group=group)
    facts += [_each(job), Fact("nodes", nodes), *shut]
    for dimension, need in placed(job.per_worker):
        if need:
            there = max(there_is.part(dimension), 0)
            facts.append(Fact("asked", quantity(dimension, need * ranks), dimension))
            facts.append(Fact("free", quantity(dimension, there), dimension))
    headline = msgs(
        "Needs {n} rank at once, {fitting} fit now. {way}",
        "Needs {n} ranks at once, {fitting} fit now. {way}",
        n=ranks,
        fitting=fitting,
        way=way,
    )
    return Verdict(Reason.WAITING_FOR_RESOURCES, headline, (*facts, free_on, *more), blockers)


def must_return(index: NodeIndex, cls: JobClass) -> tuple[str, ...]:
    """Name the drained nodes without which a class never has its room, whoever ends; empty: ends alone may do."""
    drained = index.drained(cls.demand)
    if not drained or index.could_hold(cls.demand, cls.ranks_min):
        return ()
    return drained if index.could_hold(cls.demand, cls.ranks_min, drained=True) else ()


def _shut(state: ClusterState, demand: Demand) -> tuple[Fact, ...]:
    """Say how many nodes that it could have had take nothing new, and why."""
    found = state.index.shut(demand)
    if not found:
        return ()
    most = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    drained = state.index.drained(demand)
    parts = [
        msgs(
            "{n} node {why}", "{n} nodes {why}", n=n, why=_why_shut(why, drained if n == len(drained) else ())
        )
        for why, n in most[:MOST_GROUPS]
    ]
    return (Fact("shut", sum(found.values()), who=some(parts, len(found))),)


_WRONG = {
    "NotReady": msg("not ready"),
    "Cordoned": msg("cordoned"),
    DRAINED: msg("drained by an administrator"),
    "MemoryPressure": msg("short of memory"),
    "DiskPressure": msg("short of disk"),
    "PIDPressure": msg("short of process ids"),
}


def _why_shut(shut: Shut, drained: Sequence[str]) -> Message:
    """Say it of some nodes; `drained`: these are all that are, unless some of those are another team's."""
    if shut.why == DRAINED and drained:
        return msg("drained by an administrator ({nodes})", nodes=some(drained))
    if shut.group is not None:
        return msg("of group {group} that could be added", group=shut.group)
    return _WRONG.get(shut.why) or msg("tainted {taint}", taint=shut.why)


def _each(job: PendingWorkload) -> Fact:
    return Fact("each", quantities(job.per_worker))


def waits_for_its_turn(
    job: PendingWorkload, ahead: PendingWorkload | None, by: float | None, now: float
) -> Verdict:
    """Say that it would fit, but starting it would delay a job that is ahead of it, unless it ended `by` a time."""
    left = -math.inf if by is None else by - now
    way, facts = NOTHING, [Fact("priority", job.priority)]
    if left == math.inf:
        way = msg("Use --time-limit.") if job.time_limit is None else NOTHING
    elif left >= 1:
        way = msg("Use --time-limit {n}s or less.", n=math.floor(left))
        facts.append(Fact("ahead_starts", Moment(now + left, now)))
    if ahead is None:
        return Verdict(Reason.RESERVED, _with(msg("Would delay a job ahead."), way), tuple(facts))
    headline = _with(msg("Would delay {job}.", job=ahead.ref), way)
    return Verdict(Reason.RESERVED, headline, (Fact("ahead_priority", ahead.priority), *facts), (ahead.uid,))


def _with(said: Message, way: Message) -> Message:
    return msg("{said} {way}", said=said, way=way) if way else said


def waits_for_window(booking: CapacityWindow, now: float) -> Verdict:
    """Say that it would still be there, and in the way, when a booked window opens."""
    opens = max(booking.start - now, 0.0)
    headline = msg(
        "{tenant} booked it {at}. Use --time-limit {n}s or less.",
        tenant=TenantRef(booking.tenant),
        at=Moment(booking.start, now),
        n=math.floor(opens),
    )
    booked = quantities(resources_of(limits_of(booking.amount)))
    return Verdict(
        Reason.RESERVED,
        headline,
        (
            Fact("booked", booked, who=(TenantRef(booking.tenant), window(booking))),
            Fact("opens_in", Span(round(opens, 3))),
            Fact("window", Span(round(booking.end - booking.start, 3))),
        ),
    )


def no_tenant(job: PendingWorkload) -> Verdict:
    """Its tenant was deleted while it waited."""
    headline = msg("Its team {tenant} is gone. Submit it to another one.", tenant=job.tenant)
    return Verdict(Reason.GATED, headline)


def preempted_for(job: PendingWorkload, held: Held, lost: float, by: Right) -> Verdict:
    """Return the verdict for a running job that is stopped: the job that stops it, its right and the cost."""
    victim = held.run.job
    if by is Right.IN_ONE_PIECE:
        right = msg("it needs room in one piece")
    elif by is Right.RECLAIM:
        right = msg(
            "{tenant} takes back what {other} borrowed",
            tenant=TenantRef(job.tenant),
            other=TenantRef(victim.tenant),
        )
    else:
        right = msg("its priority is higher")
    facts = (
        Fact("priority", victim.priority),
        Fact("preemptor_priority", job.priority),
        Fact("lost_work", round(lost, 3)),
    )
    headline = msg("Stopped for {job}: {right}.", job=job.ref, right=right)
    return Verdict(Reason.WAITING_FOR_RESOURCES, headline, facts, (job.uid,))


def shrunk_for(job: PendingWorkload, held: Held, by: int) -> Verdict:
    """Say for whom an elastic job gives up workers."""
    left = held.run.workers - by
    headline = msgs(
        "Gives {n} worker to {job} and keeps {left}.",
        "Gives {n} workers to {job} and keeps {left}.",
        n=by,
        job=job.ref,
        left=left,
    )
    facts = (
        Fact("workers", left), Fact("given_up", by), Fact("workers_min", held.run.job.workers_min)
    )  # fmt: skip
    return Verdict(Reason.WAITING_FOR_RESOURCES, headline, facts, (job.uid,))


def _free(state: ClusterState, entry: Entry, cache: FactCache) -> Arg:
    """Return what is free in the dimensions that the job asks for, equal nodes together: 2 nodes have 3 gpu each."""
    demand = entry.cls.demand
    if state.index.variety > MOST_STATES:
        return _free_of_many(state, entry)
    dimensions = tuple(d for d, need in entry.job.per_worker.items() if need)
    ask = (demand.gpu_kind if demand.gpu else None, demand.tenant, dimensions)
    if ask not in cache.free:
        cache.free[ask] = _free_by_node(state, demand, dimensions)
    return cache.free[ask]


def _free_by_node(state: ClusterState, demand: Demand, dimensions: tuple[str, ...]) -> Arg:
    groups: dict[tuple[int, ...], tuple[int, str]] = {}
    for free, n, first in state.index.groups(demand):
        what = tuple([max(getattr(free, d), 0) for d in dimensions])
        known = groups.get(what)
        groups[what] = (n, first) if known is None else (known[0] + n, min(known[1], first))
    ordered = sorted(groups.items(), key=lambda g: (-g[1][0], g[1][1]))
    parts: list[Arg] = []
    for what, (n, first) in ordered[:MOST_GROUPS]:
        left = tuple([quantity(d, v) for d, v in zip(dimensions, what, strict=True) if v]) or msg("nothing")
        if n == 1:
            parts.append(msg("{node}: {free}", node=first, free=left))
        else:
            parts.append(msg("{n} nodes: {free} each", n=n, free=left))
    return some(parts, len(ordered)) or msg("no node of that kind accepts new work")


def _free_of_many(state: ClusterState, entry: Entry) -> Arg:
    """Say it for a large cluster: on how many nodes how many ranks would fit, and what is free in all."""
    free, nodes = state.index.free_for(entry.cls.demand)
    if not nodes:
        return msg("no node of that kind accepts new work")
    asked = Resources(**{d: max(getattr(free, d), 0) for d, need in entry.job.per_worker.items() if need})
    by_slots = sorted(state.index.nodes_by_slots(entry.cls.demand).items())
    parts: list[Arg] = [
        msg(
            "{nodes} with room for {ranks}",
            nodes=msgs("{n} node", "{n} nodes", n=n),
            ranks=msgs("{n} rank", "{n} ranks", n=k),
        )
        for k, n in by_slots
    ]
    where = some(parts) or msg("none with room for a rank")
    return msg("{free} in all on {n} nodes, {where}", free=quantities(asked), n=nodes, where=where)
