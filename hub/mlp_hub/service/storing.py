"""Storing the decisions of one cycle: one transaction, each admission checked once more against the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.changed import changed
from mlp_hub.domain.job import HOLDING, Job, Phase, Target
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.model import Admit, Preempt, Resize, Wait
from mlp_hub.service.board import APPLIER, Changes, Moving, Step
from mlp_hub.service.decide import start_of
from mlp_hub.service.room import Room
from mlp_hub.service.sentences import behind, ranks_on
from mlp_hub.service.shares import shares_of
from mlp_hub.service.tokens import JobToken
from mlp_hub.store.records import DecayedUsage
from mlp_hub.store.tx import Tx

_STOPS = frozenset({Target.RUN, Target.RESIZE})


@dataclass(slots=True)
class Decided:
    """What is to be stored. `jobs` are all the jobs concerned as they are in memory, by uid."""

    admits: Sequence[Admit]
    preempts: Sequence[Preempt]
    resizes: Sequence[Resize]
    waits: Sequence[Wait]
    usage: Mapping[str, DecayedUsage]
    jobs: Mapping[str, Job]
    nodes: Sequence[NodeInfo]
    now: float
    tokens: Mapping[str, JobToken] = field(default_factory=dict)  # of those to be started at once, by uid

    def __bool__(self) -> bool:
        return bool(self.admits or self.preempts or self.resizes or self.waits or self.usage)


@dataclass(slots=True)
class Stored:
    """What became of them: who was admitted, who found no room, whose stored job is not the one that was decided about."""

    admitted: list[str] = field(default_factory=list)
    no_room: list[Admit] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    cannot_grow: list[Resize] = field(default_factory=list)
    in_force: list[str] = field(default_factory=list)  # of admissions, preemptions and resizes


def store(tx: Tx, changes: Changes, decided: Decided) -> Stored:
    """Store all of it that still holds."""
    return _Storing(tx, changes, decided).run()


class _Storing:
    def __init__(self, tx: Tx, changes: Changes, decided: Decided) -> None:
        self.tx = tx
        self.changes = changes
        self.decided = decided
        self.now = decided.now
        self.stored = Stored()
        self._room: Room | None = None
        asked = [d.uid for part in (decided.admits, decided.preempts, decided.resizes) for d in part]
        self.versions = tx.jobs.versions(dict.fromkeys(asked))

    @property
    def room(self) -> Room:
        if self._room is None:
            self._room = Room(self.tx, self.decided.nodes, self.now)
        return self._room

    def run(self) -> Stored:
        d = self.decided
        if d.usage:
            self.tx.usage.put_many(d.usage)
        self._admit()
        for preempt in d.preempts:
            self._preempt(preempt)
        for resize in d.resizes:
            self._resize(resize)
        told = {w.uid for w in d.waits} - set(self.stored.admitted)
        there = self.tx.jobs.versions(told) if told else {}
        self.changes.add_events(
            self.tx,
            [
                (w.uid, Step("waiting", f"{behind(w.position)}: {w.verdict.message}", w.verdict.reason.value))
                for w in d.waits
                if w.uid in there and w.uid in told
            ],
            self.now,
        )
        return self.stored

    def _job(self, uid: str) -> Job | None:
        """Return the job if it is stored as it was when it was decided about."""
        job = self.decided.jobs.get(uid)
        return job if job is not None and self.versions.get(uid) == job.version else None

    def _admit(self) -> None:
        moves: list[Moving] = []
        rows: list[ResourceRequest] = []
        for admit in self.decided.admits:
            job = self._job(admit.uid)
            if job is None or job.phase is not Phase.QUEUED or job.target in (Target.CANCEL, Target.SUSPEND):
                self.stored.stale.append(admit.uid)
            elif not self.room.take(job, admit):
                self.stored.no_room.append(admit)
            else:
                moves.append(_admission(job, admit, self.now, self.decided.tokens.get(admit.uid)))
                rows.append(_row(job, admit, self.room, self.now))
                self.stored.admitted.append(admit.uid)
                self.stored.in_force.append(admit.uid)
        self.changes.move_many(self.tx, moves, self.now)
        self.tx.ledger.put_many(rows)

    def _preempt(self, preempt: Preempt) -> None:
        job = self._job(preempt.uid)
        if job is None:
            self.stored.stale.append(preempt.uid)
            return
        if job.phase not in HOLDING or job.phase is Phase.FINISHING or job.target not in _STOPS:
            return  # it leaves without being asked
        self.stored.in_force.append(job.uid)
        self.changes.update(self.tx, replace(job, target=Target.PREEMPT))
        step = Step("preempted", preempt.verdict.message, preempt.verdict.reason.value)
        self.changes.add_event(self.tx, job.uid, self.now, step)

    def _resize(self, resize: Resize) -> None:
        job = self._job(resize.uid)
        if (
            job is None
            or job.phase not in HOLDING
            or job.phase is Phase.FINISHING
            or job.target not in _STOPS
        ):
            self.stored.stale.append(resize.uid)
            return
        if not self._hold(job, resize):
            self.stored.cannot_grow.append(resize)
            return
        self.stored.in_force.append(job.uid)
        before, after = len(job.placement) - job.spec.ps, resize.workers
        why = "" if resize.verdict is None else resize.verdict.message
        step = Step(
            "resize",
            f"resizing from {before} to {after} workers: {why or 'there is room that nobody waits for'}",
            None if resize.verdict is None else resize.verdict.reason.value,
        )
        if job.phase is Phase.ADMITTED:
            new = replace(job, placement=resize.placement)  # nobody was told of the other ranks yet
        else:
            new = replace(job, target=Target.RESIZE, resize_to=resize.placement)
        self.changes.update(self.tx, new)
        self.changes.add_event(self.tx, job.uid, self.now, step)

    def _hold(self, job: Job, resize: Resize) -> bool:
        """Let the present attempt hold what the next one needs besides; what is given up is held until it has ended."""
        row = self.tx.ledger.get(APPLIER, job.attempt)
        if row is None or not row.held:
            return False
        ranks = len(resize.placement)
        if ranks <= len(job.placement) and job.phase is not Phase.ADMITTED:
            return True
        shares = shares_of(
            job.spec.per_worker, resize.placement, {n.name: n.gpu_kind for n in self.decided.nodes}
        )
        if ranks > len(job.placement):
            workers = len(job.placement) - job.spec.ps
            added = resize.placement[workers : resize.workers]
            more = Admit(job.uid, added, len(added), resize.amount - row.amount)
            if not self.room.take(job, more):
                return False
        self.tx.ledger.put(replace(row, amount=resize.amount, shares=shares))
        return True


def _admission(job: Job, admit: Admit, now: float, token: JobToken | None) -> Moving:
    message = f"admitted: {len(admit.placement)} ranks {ranks_on(admit.placement)}"
    if len(admit.placement) == 1:
        message = f"admitted {ranks_on(admit.placement)}"
    new = changed(
        job,
        phase=Phase.ADMITTED,
        target=Target.RUN,
        placement=admit.placement,
        admitted_at=now,
        reason=None,
        message=message,
    )
    step = Step("admitted", message)
    if token is None:
        return Moving(job, new, step)
    start = start_of(new)
    then = Step(start.kind, start.message, start.reason)
    return Moving(job, start.job, then, token.sha256, ((Phase.ADMITTED, step),))


def _row(job: Job, admit: Admit, room: Room, now: float) -> ResourceRequest:
    return ResourceRequest(
        id=job.attempt,
        applier=APPLIER,
        tenant=job.spec.tenant,
        amount=admit.amount,
        phase=RequestPhase.CONFIRMED,
        created_at=now,
        last="confirm",
        holder=f"job {job.spec.name} of {job.spec.user}",
        user=job.spec.user,
        shares=room.shares(job, admit),
    )
