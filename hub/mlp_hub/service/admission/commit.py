"""Storing the decisions of one cycle: one transaction, each admission checked once more against the ledger.

Where one of them cannot be stored, whatever the reason, the others are stored without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import GOES_ON, HOLDING, Job, Phase, Target, wait_ends
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest, replica_holder
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import Admit, Preempt, Resize, Wait
from mlp_hub.service.admission.recheck import LedgerCheck
from mlp_hub.service.lifecycle.job_tokens import JobToken
from mlp_hub.service.lifecycle.messages import behind, ranks_on
from mlp_hub.service.lifecycle.next_action import start_of
from mlp_hub.service.quota.node_shares import Shares, shares_of
from mlp_hub.service.reasons.decisions import Explanations
from mlp_hub.service.state.board import APPLIER, Board, Changes
from mlp_hub.service.state.moves import Move, Step
from mlp_hub.service.support import limits
from mlp_hub.service.support.batching import in_parts, is_everybodys
from mlp_hub.store.records import DecayedUsage
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg, msgs


@dataclass(slots=True)
class Decided:
    """Decisions of one cycle to store.

    By uid, `jobs` are all the jobs concerned as they are in memory, and `requests` the pending requests
    as the cycle knew them. `explanations` are of the decisions that take effect. `promised` are jobs
    whose admissions are explained and wait. Where it is `early`, an admission that finds no room also
    waits for it.
    """

    admits: Sequence[Admit]
    preempts: Sequence[Preempt]
    resizes: Sequence[Resize]
    waits: Sequence[Wait]
    usage: Mapping[str, DecayedUsage]
    jobs: Mapping[str, Job]
    nodes: Sequence[NodeInfo]
    now: float
    tokens: Mapping[str, JobToken] = field(default_factory=dict)  # of those to be started at once, by uid
    explanations: Explanations = field(default_factory=lambda: Explanations({}))
    promised: Sequence[str] = ()
    requests: Mapping[str, ResourceRequest] = field(default_factory=dict)
    early: bool = False

    def __bool__(self) -> bool:
        return bool(self.admits or self.preempts or self.resizes or self.waits or self.usage)

    def pieces(self) -> list[Piece]:
        """List what can be stored without the rest, in order."""
        usage = [TenantUsage(tenant, value) for tenant, value in self.usage.items()]
        promised = [Promised(uid) for uid in self.promised]
        return [*usage, *self.admits, *self.preempts, *self.resizes, *self.waits, *promised]

    def only(self, pieces: Sequence[Piece]) -> Decided:
        """Return these pieces alone."""
        return replace(
            self,
            admits=[p for p in pieces if isinstance(p, Admit)],
            preempts=[p for p in pieces if isinstance(p, Preempt)],
            resizes=[p for p in pieces if isinstance(p, Resize)],
            waits=[p for p in pieces if isinstance(p, Wait)],
            usage={p.tenant: p.value for p in pieces if isinstance(p, TenantUsage)},
            promised=[p.uid for p in pieces if isinstance(p, Promised)],
        )


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """Decayed usage of a tenant."""

    tenant: str
    value: DecayedUsage


@dataclass(frozen=True, slots=True)
class Promised:
    """A job that waits for the room it was promised."""

    uid: str


Piece = Admit | Preempt | Resize | Wait | TenantUsage | Promised


@dataclass(slots=True)
class Stored:
    """Outcome of storing them: jobs that were admitted, that found no room, that are not stored as they were decided about."""

    admitted: list[str] = field(default_factory=list)
    no_room: list[Admit] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    cannot_grow: list[Resize] = field(default_factory=list)
    in_force: list[str] = field(default_factory=list)  # of admissions, preemptions and resizes
    bad: list[tuple[Piece, Exception]] = field(default_factory=list)  # what could not be stored, and why

    def add(self, other: Stored) -> None:
        """Add the outcome of another batch."""
        self.admitted += other.admitted
        self.no_room += other.no_room
        self.stale += other.stale
        self.cannot_grow += other.cannot_grow
        self.in_force += other.in_force


Starts = Callable[[str, JobToken | None], None]
"""Callback with the token of an attempt that is about to be stored as starting; with None if it was not stored."""


async def store_apart(board: Board, decided: Decided, starts: Starts) -> Stored:
    """Store all that can be stored, together if that can be; raises what is the fault of none of them.

    Who starts attempts knows their tokens before it hears of the admissions.
    """
    stored = Stored()

    async def work(pieces: Sequence[Piece]) -> Stored:
        part = decided.only(pieces)
        return await board.commit(lambda tx, changes: store(tx, changes, part))

    try:
        for uid, token in decided.tokens.items():
            starts(decided.jobs[uid].attempt, token)
        for outcome in await in_parts(decided.pieces(), work):
            if outcome.result is not None:
                stored.add(outcome.result)
            elif outcome.error is not None:
                stored.bad += [(piece, outcome.error) for piece in outcome.items]
    finally:
        admitted = set(stored.admitted)
        for uid in decided.tokens.keys() - admitted:
            starts(decided.jobs[uid].attempt, None)
    for _, error in stored.bad:
        if is_everybodys(error):
            raise error
    return stored


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
        self._room: LedgerCheck | None = None
        asked = [d.uid for part in (decided.admits, decided.preempts, decided.resizes) for d in part]
        self.versions = tx.jobs.versions(dict.fromkeys(asked))

    @property
    def room(self) -> LedgerCheck:
        if self._room is None:
            self._room = LedgerCheck(self.tx, self.decided.nodes, self.now)
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
        waiting = {w.uid for w in d.waits} - set(self.stored.admitted)
        still = (
            self.tx.jobs.queued(waiting) if waiting else set()
        )  # whoever was suspended meanwhile waits for nothing
        self.changes.add_events(
            self.tx,
            [
                (w.uid, Step("waiting", waiting_words(w), w.verdict.reason.value))
                for w in d.waits
                if w.uid in still
            ],
            self.now,
        )
        early = [admit.uid for admit in self.stored.no_room] if d.early else []
        explained = [*self.stored.in_force, *d.promised, *early]
        d.explanations.store(self.tx, [uid for uid in explained if uid not in d.requests])
        return self.stored

    def _job(self, uid: str) -> Job | None:
        """Return the job if it is stored as it was when it was decided about."""
        job = self.decided.jobs.get(uid)
        return job if job is not None and self.versions.get(uid) == job.version else None

    def _admit(self) -> None:
        moves: list[Move] = []
        rows: list[ResourceRequest] = []
        for admit in self.decided.admits:
            if admit.uid in self.decided.requests:
                rows += self._held(admit)
                continue
            job = self._job(admit.uid)
            if job is None or job.phase is not Phase.QUEUED or job.target in (Target.CANCEL, Target.SUSPEND):
                self.stored.stale.append(admit.uid)
            elif (shares := self._take(job.spec.tenant, job.spec.per_worker, admit)) is not None:
                moves.append(_admission(job, admit, self.now, self.decided.tokens.get(admit.uid)))
                rows.append(_row(job, admit, shares, self.now))
        self.changes.move_many(self.tx, moves, self.now)
        self.tx.ledger.put_many(rows)

    def _take(self, tenant: str, each: Resources, admit: Admit) -> Shares | None:
        """Take the room of an admission, and note whether there was any."""
        shares = self.room.reserve_ranks(tenant, each, admit)
        if shares is None:
            self.stored.no_room.append(admit)
        else:
            self.stored.admitted.append(admit.uid)
            self.stored.in_force.append(admit.uid)
        return shares

    def _held(self, admit: Admit) -> list[ResourceRequest]:
        """Return the row of a pending request that is admitted: it holds until it expires, unless it is confirmed before."""
        asked = self.decided.requests[admit.uid]
        row = self.tx.ledger.get(asked.applier, asked.id)
        if row is None or not row.waits(self.now) or replace(row, expires_at=None) != asked:
            self.stored.stale.append(admit.uid)
            return []
        shares = self._take(row.tenant, row.amount, admit)
        if shares is None:
            return []
        expires_at = self.now + limits.UNCONFIRMED_S
        return [
            replace(
                row,
                phase=RequestPhase.TRIED,
                expires_at=expires_at,
                node=admit.placement[0],
                shares=shares,
            )
        ]

    def _preempt(self, preempt: Preempt) -> None:
        job = self._job(preempt.uid)
        if job is None:
            self.stored.stale.append(preempt.uid)
            return
        if job.phase not in HOLDING or job.phase is Phase.FINISHING or job.target not in GOES_ON:
            return  # it leaves without being asked
        self.stored.in_force.append(job.uid)
        self.changes.update(self.tx, replace(job, target=Target.PREEMPT))
        step = Step("preempted", preempt.verdict.headline, preempt.verdict.reason.value)
        self.changes.add_event(self.tx, job.uid, self.now, step)

    def _resize(self, resize: Resize) -> None:
        job = self._job(resize.uid)
        if (
            job is None
            or job.phase not in HOLDING
            or job.phase is Phase.FINISHING
            or job.target not in GOES_ON
        ):
            self.stored.stale.append(resize.uid)
            return
        if not self._hold(job, resize):
            self.stored.cannot_grow.append(resize)
            return
        self.stored.in_force.append(job.uid)
        before, after = len(job.placement) - job.spec.ps, resize.workers
        why = msg("No job waits for the free room.")
        step = Step(
            "resize",
            msg(
                "Resizing from {before} to {after} workers. {why}",
                before=before,
                after=after,
                why=why if resize.verdict is None else resize.verdict.headline,
            ),
            None if resize.verdict is None else resize.verdict.reason.value,
        )
        if job.phase is Phase.ADMITTED:
            new = replace(job, placement=resize.placement)  # nobody was told of the other ranks yet
        else:
            new = replace(job, target=Target.RESIZE, resize_to=resize.placement)
        self.changes.update(self.tx, new)
        self.changes.add_event(self.tx, job.uid, self.now, step)

    def _hold(self, job: Job, resize: Resize) -> bool:
        """Hold the additional amounts of the next attempt with the present one; returns whether they fit.

        Amounts that are given up are held until the present attempt has ended.
        """
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
            if self.room.reserve_ranks(job.spec.tenant, job.spec.per_worker, more) is None:
                return False
        self.tx.ledger.put(replace(row, amount=resize.amount, shares=shares))
        return True


def waiting_words(wait: Wait) -> Message:
    """Say at which place a job waits and why; one that can never start is at none."""
    message = wait.verdict.headline
    if wait.verdict.reason is Reason.EXCEEDS_MAX_QUOTA:
        return message
    return msg("{place}: {why}", place=behind(wait.position), why=message)


def _admission(job: Job, admit: Admit, now: float, token: JobToken | None) -> Move:
    message = msgs(
        "admitted: 1 rank {where}",
        "admitted: {n} ranks {where}",
        n=len(admit.placement),
        where=ranks_on(admit.placement),
    )
    new = changed(
        job,
        phase=Phase.ADMITTED,
        target=Target.RUN,
        placement=admit.placement,
        admitted_at=now,
        reason=None,
        message=message,
        **wait_ends(job, now),
    )
    move = Move(job, new, Step("admitted", message))
    return move if token is None else changed(move.then(start_of(new)), token=token.sha256)


def _row(job: Job, admit: Admit, shares: Shares, now: float) -> ResourceRequest:
    replica = job.spec.replica
    return ResourceRequest(
        id=job.attempt,
        applier=APPLIER,
        tenant=job.spec.tenant,
        amount=admit.amount,
        phase=RequestPhase.CONFIRMED,
        created_at=now,
        last="confirm",
        holder=job.title if replica is None else replica_holder(replica.name, job.spec.slot or 0),
        user=job.spec.user,
        shares=shares,
    )
