"""Grounds of the scheduler's decisions as data with messages: each reader sees only the permitted parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mlp_hub.domain.quantities import quantities
from mlp_hub.scheduler.cache.news import News, NodeNews
from mlp_hub.scheduler.cycle.grounds import Grounds, Limit, Workers
from mlp_hub.scheduler.model.types import Admit, Preempt, Resize, Verdict
from mlp_hub.scheduler.preemption.choice import Candidate, Outcome, VictimChoice
from mlp_hub.scheduler.preemption.eligibility import Spared
from mlp_hub.service.lifecycle.messages import ranks_on
from mlp_hub.service.reasons.rows import passed_part, stored, victim_part
from mlp_hub.store.records import StoredDecision
from mlp_language.message import NOTHING, Arg, Message, Quantity, Span, TenantRef, msg, msgs, some, to_data

MOST_CHANGES = 5
"""Tuning: changes since the last cycle that one decision names, of each kind.

It trades a reader's attention against detail.
"""

Act = Admit | Preempt | Resize
_KIND: dict[type, str] = {Admit: "admitted", Preempt: "preempted", Resize: "resized"}


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


@dataclass(frozen=True, slots=True)
class Short:
    """A decision of a cycle with very many of them."""

    decision: Act
    waited: Waited | None
    policy: str
    now: float

    def __call__(self) -> StoredDecision:
        """Return its row."""
        d = self.decision
        match d:
            case Admit():
                where = ranks_on(d.placement)
                what = msg("admitted {where} in a cycle with very many decisions", where=where)
            case Preempt():
                what = msg("preempted in a cycle with very many decisions")
            case Resize():
                what = msg("resized in a cycle with very many decisions")
        parts: dict[str, Any] = {"summary": to_data(what), "policy": self.policy}
        return stored(d.uid, self.now, _KIND[type(d)], parts | _waited(self.waited))


def _waited(waited: Waited | None) -> dict[str, Any]:
    if waited is None:
        return {}
    verdict = waited.verdict
    return {
        "position": waited.position,
        "waited_reason": verdict.reason.value,
        "waited_for": to_data(verdict.headline),
    }


@dataclass(frozen=True, slots=True)
class Full:
    """Decision with all its grounds."""

    decision: Act
    grounds: Grounds
    waited: Waited | None
    policy: str
    now: float

    def __call__(self) -> StoredDecision:
        """Return its row."""
        d, g = self.decision, self.grounds
        parts = {
            "summary": to_data(self._summary()),
            "changed": [to_data(m) for m in self._changed()],
            "passed": [passed_part(job.ref, reason) for job, reason in g.passed.first],
            "passed_count": g.passed.count,
            "policy": self.policy,
            "order": g.order,
            "share": None if g.share is None else round(g.share, 6),
            "victims": [_victim(g.choice, c) for c in self._candidates()],
            "spared": [],
        }
        if g.placed is not None:
            per_rank = g.job.per_worker
            parts["rule"] = g.placed.rule
            parts["only"] = g.placed.only
            parts["nodes"] = [
                {
                    "node": n.node,
                    "ranks": n.ranks,
                    "chosen": n.chosen,
                    "free_after": to_data(msg("{free}", free=quantities(n.free_after(per_rank)))),
                    "score": list(n.score),
                }
                for n in g.placed.nodes
            ]
        if g.choice is not None and not isinstance(d, Admit):
            parts["spared"] = [to_data(_spared(why, n)) for why, n in g.choice.spared]
        return stored(d.uid, self.now, _KIND[type(d)], parts | _waited(self.waited))

    def _candidates(self) -> Sequence[Candidate]:
        """Return the candidates to report: for an admission those that make room, otherwise all compared ones."""
        if self.grounds.choice is None:
            return ()
        found = self.grounds.choice.candidates
        return [c for c in found if c.chosen] if isinstance(self.decision, Admit) else found

    # --- the summary

    def _summary(self) -> Message:
        d, g = self.decision, self.grounds
        if isinstance(d, Admit):
            return self._admitted(d)
        if isinstance(d, Preempt):
            return msg("{stopped} {chosen}", stopped=d.verdict.headline, chosen=self._chosen())
        if g.heir is None:
            size = NOTHING if g.workers is None else _size(g.workers)
            return msg(
                "continues {size}, instead of {was}: no job waits for the room that it gets",
                size=size,
                was=g.was,
            )
        return msgs(
            "continues with {n} worker instead of {was}; the rest goes to {job}. {chosen}",
            "continues with {n} workers instead of {was}; the rest goes to {job}. {chosen}",
            n=d.workers,
            was=g.was,
            job=g.heir.ref,
            chosen=self._chosen(),
        )

    def _chosen(self) -> Message:
        """Say before how many others a job was chosen to make room, and what that loses."""
        found = self._candidates()
        mine = next((c for c in found if c.job.uid == self.decision.uid), None)
        lost = NOTHING if mine is None else _lost(mine)
        others = sum(not c.chosen for c in found)
        if not others:
            return msg("It was the only one that could be stopped. {lost}", lost=lost)
        return msgs(
            "It was chosen over {n} other job. {lost}",
            "It was chosen over {n} other jobs. {lost}",
            n=others,
            lost=lost,
        )

    def _admitted(self, d: Admit) -> Message:
        g, makers = self.grounds, self._candidates()
        where = ranks_on(d.placement)
        if g.workers is not None:
            where = msg("{where} {size}", where=where, size=_size(g.workers))
        if makers:
            return msg("admitted {where}; room was made by {how}", where=where, how=_made_room(makers))
        if g.placed is None or g.placed.alone or not g.placed.compared:
            return msg("admitted {where}", where=where)
        if g.placed.only:
            return msg("admitted {where}: no other place had room", where=where)
        return msg("admitted {where}: the best place with room by the placement rule", where=where)

    # --- why then

    def _changed(self) -> list[Message]:
        """Say what has changed since the last cycle that could let the job start, or made it shrink or grow."""
        d, g = self.decision, self.grounds
        if isinstance(d, Preempt):
            return []
        if isinstance(d, Resize) and g.heir is not None:
            return [msg("{job} waits, and can get the workers beyond the minimum", job=g.heir.ref)]
        if isinstance(d, Admit) and g.choice is not None:
            # the summary names those who make room
            return [msg("it was submitted")] if self.waited is None else self._since_before()
        if self.waited is None and isinstance(d, Admit):
            return [msg("it entered the queue, and there was room at once")]
        said = self._since_before()
        if not said and g.news.complete:
            said.append(msg("use by notebooks or other teams, or the next one in the queue, has changed"))
        return said

    def _since_before(self) -> list[Message]:
        """Say what has ended, come back or been changed since the last cycle; nothing where that is not known."""
        news = self.grounds.news
        if not news.complete:
            return []
        blockers = set() if self.waited is None else set(self.waited.verdict.blocked_by)
        gone = sorted(news.ended.values(), key=lambda job: job.uid not in blockers)
        said = [msg("{job} ended", job=job.ref) for job in gone[:MOST_CHANGES]]
        if (more := len(gone) - MOST_CHANGES) > 0:
            said.append(msgs("{n} more job ended", "{n} more jobs ended", n=more))
        said += _changed_nodes(news)
        said += [
            msg("the quota of {tenant}, or how it shares, was changed", tenant=TenantRef(name))
            for name in news.tenants
        ]
        return said[: 2 * MOST_CHANGES]


def _changed_nodes(news: News) -> list[Message]:
    said = []
    for name, what in news.nodes.items():
        match what:
            case NodeNews.NEW:
                said.append(msg("node {node} is new", node=name))
            case NodeNews.BACK:
                said.append(msg("node {node} came back", node=name))
            case NodeNews.CHANGED:
                said.append(msg("the resources of node {node} changed", node=name))
    return said


def _size(workers: Workers) -> Message:
    """Say with how many workers an elastic job runs, and why with no more."""
    n, most = workers.n, workers.most
    match workers.limit:
        case Limit.MOST:
            return msgs("with {n} worker, its most", "with {n} workers, its most", n=n)
        case Limit.QUOTA:
            why = msg("its team has no quota for one more worker")
        case Limit.NODES:
            why = msg("the nodes have no room for one more")
        case Limit.KEPT:
            why = msg("the rest is reserved")
    return msg("with {n} of at most {most} workers, because {why}", n=n, most=most, why=why)


def _made_room(makers: Sequence[Candidate]) -> Arg:
    """Say who was stopped, and who gave up workers."""
    stopped = [c.job.ref for c in makers if not c.gives]
    parts: list[Arg] = []
    if stopped:
        parts.append(msg("the end of {jobs}", jobs=some(stopped)))
    parts += [
        msgs("{n} worker of {job}", "{n} workers of {job}", n=c.gives, job=c.job.ref)
        for c in makers
        if c.gives
    ]
    return some(parts)


# --- why these victims


def _victim(choice: VictimChoice | None, c: Candidate) -> dict[str, Any]:
    return victim_part(
        c.job.ref,
        priority=c.job.priority,
        lost_work=c.cost,
        lost_unit=_unit(c),
        over_nominal=c.over_nominal,
        chosen=c.chosen,
        right=None if c.right is None else c.right.value,
        gives=c.gives,
        why=to_data(_why(c, 0.0 if choice is None else choice.min_run_s)),
    )


def _unit(c: Candidate) -> str:
    """Name what the work of a job is counted in."""
    return "gpu-seconds" if c.by_gpu else "core-seconds"


def _lost(c: Candidate) -> Message:
    """Return the message about the work lost by a job's end; the part that it will save is not known before."""
    if round(c.cost) < 1:
        return msg("That loses no work.")
    return msg(
        "That loses at most {work} of work, minus the work that it saves when it is asked to end.",
        work=Quantity(round(c.cost), _unit(c)),
    )


_WHY = {
    Outcome.STOPPED: msg(
        "of the jobs that may be stopped, this choice makes enough room and loses the least work"
    ),
    Outcome.DEARER: msg("more work would have been lost"),
    Outcome.NONE_STOPPED: msg("no job had to be stopped: enough workers are given up by elastic jobs"),
    Outcome.EXTRA_NOT_NEEDED: msg("its extra workers were not needed, or would not have made room"),
    Outcome.NOT_NEEDED: msg("it was not needed, or its resources would not have made room"),
}


def _why(c: Candidate, least: float) -> Message:
    if c.outcome is Outcome.SHRUNK:
        return msg(
            "extra workers of elastic jobs are taken before any job is stopped, and its minimum is {least}",
            least=c.job.workers_min,
        )
    if c.outcome is Outcome.TOO_YOUNG:
        return msg("it had not run for {least} yet; nothing is stopped before that", least=Span(least))
    return _WHY[c.outcome]


def _spared(rule: Spared, n: int) -> Message:
    match rule:
        case Spared.STOPPING:
            return msgs("{n} job is stopping already", "{n} jobs are stopping already", n=n)
        case Spared.NOT_PREEMPTIBLE:
            return msgs("{n} job may not be preempted", "{n} jobs may not be preempted", n=n)
        case Spared.INSIDE_QUOTA:
            return msgs(
                "{n} job is inside the quota of its team",
                "{n} jobs are inside the quota of their teams",
                n=n,
            )
        case Spared.NOT_EXAMINED:
            return msgs("{n} job was not examined", "{n} jobs were not examined", n=n)
        case Spared.PRIORITY:
            return msgs("{n} job has no lower priority", "{n} jobs have no lower priority", n=n)
        case Spared.ORDER:
            return msgs(
                "{n} job is ahead of the job by its age or its team's share",
                "{n} jobs are ahead of the job by their age or their teams' shares",
                n=n,
            )
