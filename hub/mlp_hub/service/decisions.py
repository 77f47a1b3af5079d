"""Why the scheduler admitted, preempted or resized a job, kept with the decision itself.

`Decisions.cycle(...)` works out what stands behind the plan of one cycle, and `Told.store(tx, uids)`, in the transaction that
stores the decisions, keeps the explanations of those that take effect. Plans of very many
decisions, and those on a large state, get the short form: the sentence without the places and candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from mlp_api import whatif as api
from mlp_hub.domain.errors import WORDS, not_found
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.decided import Candidate, Explained, explain_decisions
from mlp_hub.scheduler.model import Admit, Decision, Preempt, Resize, Verdict
from mlp_hub.scheduler.words import amount, count, listing
from mlp_hub.service.claims import is_claim
from mlp_hub.service.discreet import replaced
from mlp_hub.service.left import has_left
from mlp_hub.service.sentences import ranks_on
from mlp_hub.service.wire import when
from mlp_hub.store.database import Database
from mlp_hub.store.records import StoredDecision
from mlp_hub.store.tx import Tx

MOST_EXPLAINED = 50
"""Decisions of one cycle that are worked out in full."""
MANY_IN_A_ROW = MOST_EXPLAINED // 2
"""After a plan of more decisions than this no copy is made for the next: such plans come in rows."""
FEW = 500
"""Up to so many jobs, running and waiting, tenants and nodes together, what was there before is looked at each time."""
MOST_JOBS = 5000
MOST_NODES = 2000
"""On a larger state decisions always get the short form."""
LOOK_S = 3e-6
"""What it takes to keep a copy of what was there before a plan, for each part of the state, about;"""
TELL_S = 600e-6
"""what it takes to explain one decision and to put it into words;"""
PART = 0.025
"""of the time both together take so much at most,"""
SAVED_S = 0.2
"""and what they did not take is saved up to so many seconds: a few decisions in a row on a small state are all explained."""
KEPT_S = 14 * 86_400.0
MOST_CHANGES = 5
MOST_SHOWN = 200
_WORD = re.compile(r"[\w-]+")


class Waited(Protocol):
    """Why a job waited, as the last cycle before found it."""

    @property
    def verdict(self) -> Verdict:
        """The reason."""
        ...

    @property
    def position(self) -> int:
        """The place in its tenant's queue, from 1."""
        ...


Info = tuple[str, str, str]  # name, user, tenant


@dataclass(slots=True)
class _Seen:
    """What the last cycle saw, to tell what has changed since."""

    running: dict[str, Info] = field(default_factory=dict)
    nodes: dict[str, tuple[bool, object]] = field(default_factory=dict)
    tenants: dict[str, object] = field(default_factory=dict)


class Told:
    """What is told of one cycle's decisions."""

    def __init__(self, records: Mapping[str, Callable[[], StoredDecision]]) -> None:
        self._records = records

    def store(self, tx: Tx, uids: Iterable[str]) -> None:
        """Keep what is told of these jobs, whose decisions take effect; nothing of one that was not decided about."""
        made = [self._records[uid]() for uid in uids if uid in self._records]
        if made:
            tx.decisions.add(made)


class Decisions:
    """Makes, keeps and gives out explanations."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: _Seen | None = None
        self._budget = SAVED_S
        self._as_of = 0.0
        self._last = 0  # decisions of the last plan

    def wants(self, core: Core, now: float) -> Core | None:
        """Return a copy of the core from which its next plan is to be explained, None where that would cost too much."""
        state = core.state
        self._budget = min(self._budget + max(now - self._as_of, 0.0) * PART, SAVED_S)
        self._as_of = now
        jobs, nodes = len(state.waiting) + len(state.running), len(state.index.names)
        cost = (jobs + nodes + len(state.queues)) * LOOK_S
        if jobs > MOST_JOBS or nodes > MOST_NODES or self._budget < cost + TELL_S:
            return None
        if self._last > MANY_IN_A_ROW:
            return None
        self._budget -= cost
        return core.fork()

    def cycle(
        self,
        before: Core | None,
        plan: Sequence[Decision],
        waited: Mapping[str, Waited],
        policy: str,
        now: float,
    ) -> Told:
        """Work out what stands behind a plan. `before` is what it was made from, `waited` what was said before."""
        acts = [d for d in plan if isinstance(d, Admit | Preempt | Resize)]
        self._last = len(acts)
        if not acts:
            self._seen = _seen(before) if before is not None and _size(before) <= FEW else None
            return Told({})
        if before is None or len(acts) > MOST_EXPLAINED:
            self._seen = None
            return Told({d.uid: _Short(d, waited.get(d.uid), policy, now) for d in acts})
        seen = _seen(before)
        teller = _Teller(before, waited, self._seen, seen, now)
        self._seen = seen
        self._budget -= len(acts) * TELL_S
        told = explain_decisions(before, plan, now)
        by_uid = dict(zip((d.uid for d in acts), zip(acts, told, strict=True), strict=True))
        return Told({uid: _Full(teller, d, e) for uid, (d, e) in by_uid.items()})

    async def of(
        self, user: str, name: str, *, everything: bool, asker: str | None = None
    ) -> list[api.Decision]:
        """Return what is told of a job, the oldest first. Other tenants' names are for those who may know everything.

        An `asker` who is its user and has left the tenant is told nothing: jobs of the tenant are named in it.
        """

        def work(tx: Tx) -> list[StoredDecision] | None:
            job = tx.jobs.find(user, name)
            if job is None:
                return None
            if asker == user and not everything and has_left(tx, job.spec):
                return []
            return tx.decisions.of(job.uid, MOST_SHOWN)

        found = await self._db.read(work)
        if found is None:
            raise not_found("job", name)
        return [to_wire(record, everything=everything) for record in found]


def _size(core: Core) -> int:
    """Return how many parts a state has: what a look at it costs is about in proportion."""
    state = core.state
    return len(state.waiting) + len(state.running) + len(state.queues) + len(state.index.names)


def _seen(core: Core) -> _Seen:
    state = core.state
    running = {uid: held.run.job for uid, held in state.running.items()}
    nodes = [state.index.node(name) for name in state.index.names]
    tenants = [queue.tenant for queue in state.queues.values()]
    return _Seen(
        {uid: (job.name, job.user, job.tenant) for uid, job in running.items()},
        {n.name: (n.up, n.capacity) for n in nodes},
        {
            t.name: (t.quota, t.borrowing_limit, t.lending_limit, t.reserved, t.cohort, t.parent)
            for t in tenants
        },
    )


_EMPTY: dict[str, Any] = {
    "waited_for": None,
    "waited_reason": None,
    "changed": [],
    "position": None,
    "share": None,
    "nodes": [],
    "only": False,
    "victims": [],
    "spared": [],
}


def to_wire(record: StoredDecision, *, everything: bool) -> api.Decision:
    """Return what is told; `everything`: with the names of other tenants' users and jobs."""
    parts = msgspec.json.decode(record.text)
    shown = parts["all"] if everything else parts.get("own", parts["all"])
    whole = {**_EMPTY, **shown, "time": when(record.time), "kind": record.kind}
    return msgspec.convert(whole, api.Decision)


def _stored(uid: str, now: float, kind: str, whole: dict[str, Any], own: dict[str, Any]) -> StoredDecision:
    parts = {"all": whole} if own == whole else {"all": whole, "own": own}
    return StoredDecision(uid, now, kind, msgspec.json.encode(parts).decode())


_KIND: dict[type, str] = {Admit: "admitted", Preempt: "preempted", Resize: "resized"}


@dataclass(frozen=True, slots=True)
class _Short:
    """A decision of a cycle with very many of them."""

    decision: Admit | Preempt | Resize
    waited: Waited | None
    policy: str
    now: float

    def __call__(self) -> StoredDecision:
        d = self.decision
        reason = "" if self.waited is None else f"; until then: {WORDS[self.waited.verdict.reason]}"
        summary = f"{_KIND[type(d)]} in a cycle of very many decisions{reason}"
        if isinstance(d, Admit):
            summary = f"admitted {ranks_on(d.placement)} in a cycle of very many decisions{reason}"
        parts: dict[str, Any] = {"summary": summary, "policy": self.policy}
        if self.waited is not None:
            parts["position"] = self.waited.position
            parts["waited_reason"] = self.waited.verdict.reason.value
        return _stored(d.uid, self.now, _KIND[type(d)], parts, parts)


@dataclass(frozen=True, slots=True)
class _Full:
    """A decision with all that stands behind it."""

    teller: _Teller
    decision: Admit | Preempt | Resize
    explained: Explained

    def __call__(self) -> StoredDecision:
        d, teller = self.decision, self.teller
        places = teller.places(self.explained)
        whole = teller.tell(d, self.explained, None) | {"nodes": places}
        own = teller.tell(d, self.explained, teller.infos[d.uid][2]) | {"nodes": places}
        return _stored(d.uid, teller.now, self.explained.kind, whole, own)


class _Teller:
    """Puts explanations into words; with a tenant given, for that tenant's people: others' names are left out."""

    def __init__(
        self,
        core: Core,
        waited: Mapping[str, Waited],
        before: _Seen | None,
        after: _Seen,
        now: float,
    ) -> None:
        state = core.state
        self.now = now
        self.policy = state.policy.name
        self.waited = waited
        self.before = before
        self.after = after
        self.infos: dict[str, Info] = dict(before.running) if before else {}
        self.infos |= after.running
        self.infos |= {uid: (e.job.name, e.job.user, e.job.tenant) for uid, e in state.waiting.items()}
        self.priority = {uid: held.run.job.priority for uid, held in state.running.items()}
        self.tenants = set(state.queues)
        self.root_of = {name: state.quotas.root(name) for name in self.tenants}
        self.by_gpu = {uid: bool(held.demand.gpu) for uid, held in state.running.items()}

    def tell(self, d: Admit | Preempt | Resize, e: Explained, tenant: str | None) -> dict[str, Any]:
        """Return the parts of an `api.Decision` but the nodes, which are the same for everybody."""
        waited = self.waited.get(d.uid)
        return {
            "summary": self._summary(d, e, tenant),
            "waited_for": None if waited is None else self._masked(waited.verdict, tenant),
            "waited_reason": None if waited is None else waited.verdict.reason.value,
            "changed": self._changed(d, e, waited, tenant),
            "position": None if waited is None else waited.position,
            "policy": self.policy,
            "share": e.share,
            "only": e.only,
            "victims": [self._victim(c, tenant) for c in e.candidates],
            "spared": [f"{count(n, 'job')} {_plural(what, n)}" for what, n in e.spared],
        }

    def places(self, e: Explained) -> list[dict[str, Any]]:
        """Return the nodes of an `api.Decision`."""
        return [
            {
                "node": p.node,
                "ranks": p.ranks,
                "chosen": p.chosen,
                "free_after": amount(p.free_after.but(rom=0)),
                "score": list(p.score),
            }
            for p in e.places
        ]

    def _summary(self, d: Admit | Preempt | Resize, e: Explained, tenant: str | None) -> str:
        if isinstance(d, Admit):
            return self._admitted(d, e, tenant)
        if isinstance(d, Preempt):
            return f"{self._stopped(d, tenant)}. {self._chosen(e, d.uid, 'stopping it')}"
        if d.for_uid is None:
            return f"goes on {e.size}, instead of {e.was}: nobody waits for what it gets"
        goes = f"goes on with {count(d.workers, 'worker')} instead of {e.was}"
        return f"{goes}; the rest goes to {self._job(d.for_uid, tenant)}. {self._chosen(e, d.uid, 'ending its ranks for that')}"

    def _chosen(self, e: Explained, uid: str, what: str) -> str:
        """Say before how many others a job was chosen to make room, and what that loses."""
        cost = next((c.cost for c in e.candidates if c.uid == uid), None)
        lost = "" if cost is None else f"; {what} loses {self._lost(uid, cost)}"
        others = sum(not c.chosen for c in e.candidates)
        of = f"chosen before {count(others, 'other')}" if others else "the only one that could be stopped"
        return f"It was {of}{lost}"

    def _seconds(self, uid: str) -> str:
        """Name what the work of a job is counted in."""
        return "gpu-seconds" if self.by_gpu.get(uid) else "core-seconds"

    def _lost(self, uid: str, cost: float) -> str:
        """Say what work ending a job loses: what it will save when it is asked to end, nobody knows before."""
        if round(cost) < 1:
            return "no work"
        return f"at most {cost:.0f} {self._seconds(uid)} of work, less what it saves when it is asked to end"

    def _made_room(self, makers: Sequence[Candidate], tenant: str | None) -> str:
        """Say who was stopped, and who gave up workers."""
        stopped = [self._job(c.uid, tenant) for c in makers if not c.gives]
        parts = [f"{listing(stopped)} {'was' if len(stopped) == 1 else 'were'} stopped"] if stopped else []
        parts += [f"{self._job(c.uid, tenant)} gave up {count(c.gives, 'worker')}" for c in makers if c.gives]
        return listing(parts)

    def _admitted(self, d: Admit, e: Explained, tenant: str | None) -> str:
        where = f"admitted {ranks_on(d.placement)}{f' {e.size}' if e.size else ''}"
        if e.candidates:
            return f"{where}, after {self._made_room(e.candidates, tenant)} for it"
        if e.alone:
            return where
        if e.only:
            return f"{where}: no other place had room"
        return f"{where}: the best of the places with room by the rule of placement"

    def _job(self, uid: str, tenant: str | None) -> str:
        info = self.infos.get(uid)
        server = is_claim(uid)
        if info is None or (tenant is not None and info[2] != tenant):
            known = info is not None and tenant is not None and self._knows(tenant, info[2])
            whose = f"tenant {info[2]}" if info is not None and known else "another tenant"
            return f"{'a notebook server' if server else 'a job'} of {whose}"
        return f"{'the' if server else 'job'} {info[0]} of {info[1]}"

    def _knows(self, tenant: str, other: str) -> bool:
        """Whether two tenants share, and so know of each other."""
        return tenant in self.root_of and self.root_of[tenant] == self.root_of.get(other)

    def _stopped(self, d: Preempt, tenant: str | None) -> str:
        """Say for whom a job is stopped and by what right, as its timeline does."""
        info = self.infos.get(d.preemptor)
        if info is None:
            return f"stopped to make room for {self._job(d.preemptor, tenant)}"
        name, user, theirs = info
        who = self._job(d.preemptor, None)
        if tenant not in (
            None,
            theirs,
        ):  # the timeline names the tenant of whom one gives way to, shared with or not
            who = f"{'a notebook server' if is_claim(d.preemptor) else 'a job'} of tenant {theirs}"
        return replaced(d.verdict.message, f"{name} of {user}", theirs, who)

    def _victim(self, c: Candidate, tenant: str | None) -> dict[str, Any]:
        name, user, theirs = self.infos.get(c.uid, (None, None, None))
        known = tenant is None or theirs == tenant
        return {
            "job": name if known else None,
            "user": user if known else None,
            "tenant": theirs if known or (tenant and theirs and self._knows(tenant, theirs)) else None,
            "priority": self.priority.get(c.uid, 0),
            "lost_work": c.cost,
            "lost_unit": self._seconds(c.uid),
            "over_nominal": c.over_nominal,
            "chosen": c.chosen,
            "gives": c.gives,
            "why": c.why,
        }

    def _changed(
        self, d: Admit | Preempt | Resize, e: Explained, waited: Waited | None, tenant: str | None
    ) -> list[str]:
        """Say what has changed since the last cycle that could let the job start, or made it shrink or grow."""
        if isinstance(d, Preempt):
            return []
        if isinstance(d, Resize) and d.for_uid is not None:
            return [f"{self._job(d.for_uid, tenant)} waits, and may have what is beyond its least"]
        if isinstance(d, Admit) and (d.after or e.candidates):
            # the summary names those who make room
            told = {c.uid for c in e.candidates}
            stopped = [f"{self._job(u, tenant)} is stopped for it" for u in d.after if u not in told]
            since = ["it was submitted"] if waited is None else self._since_before(waited, tenant)
            return [*since, *stopped][: 2 * MOST_CHANGES]
        if waited is None and isinstance(d, Admit):
            return ["it was submitted, and there was room at once"]
        said = self._since_before(waited, tenant)
        if not said and self.before is not None:
            said.append("what notebooks or other tenants hold, or who is next, has changed")
        return said[: 2 * MOST_CHANGES]

    def _since_before(self, waited: Waited | None, tenant: str | None) -> list[str]:
        """Say what has ended, come back or been changed since the last cycle; nothing where that was not looked at."""
        if self.before is None:
            return []
        said = []
        blockers = set() if waited is None else set(waited.verdict.blocked_by)
        gone = [u for u in self.before.running if u not in self.after.running]
        gone.sort(key=lambda u: u not in blockers)
        said += [f"{self._job(u, tenant)} ended" for u in gone[:MOST_CHANGES]]
        if len(gone) > MOST_CHANGES:
            said.append(f"{len(gone) - MOST_CHANGES} more jobs ended")
        said += self._changed_nodes(self.before)
        for name, limits in self.after.tenants.items():
            if self.before.tenants.get(name, limits) != limits and tenant in (None, name):
                said.append(f"the quota of {name}, or how it shares, was changed")
        return said

    def _changed_nodes(self, before: _Seen) -> list[str]:
        said = []
        for name, (up, capacity) in self.after.nodes.items():
            was = before.nodes.get(name)
            if was is None:
                said.append(f"node {name} is new")
            elif up and not was[0]:
                said.append(f"node {name} came back")
            elif capacity != was[1]:
                said.append(f"what node {name} has was changed")
        return said

    def _masked(self, verdict: Verdict, tenant: str | None) -> str:
        """Return a verdict's sentence without other tenants' names; where one may be left, its reason alone."""
        text = verdict.message
        if tenant is None:
            return text
        foreign = [uid for uid, info in self.infos.items() if info[2] != tenant]
        for uid in foreign:
            name, user, theirs = self.infos[uid]
            if f"{name} of {user}" in text:
                text = replaced(text, f"{name} of {user}", theirs, self._job(uid, tenant))
        mine = {info[1] for info in self.infos.values() if info[2] == tenant}
        users = {self.infos[uid][1] for uid in foreign} - mine
        words = users | {t for t in self.tenants if not self._knows(tenant, t)}
        said = set(_WORD.findall(text))
        if not words.isdisjoint(said) or any(not _WORD.fullmatch(w) and w in text for w in words):
            return WORDS[verdict.reason]
        return text


def _plural(what: str, n: int) -> str:
    """Turn "is", "has", "may", "stands" into what fits several."""
    if n == 1:
        return what
    first, _, rest = what.partition(" ")
    return f"{ {'is': 'are', 'has': 'have', 'stands': 'stand'}.get(first, first) } {rest}".strip()
