"""Storing the decisions of one cycle: one transaction, each admission checked once more against the ledger.

Where one of them cannot be stored, whatever the reason, the others are stored without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import HOLDING, Job, Phase, Target, wait_ends
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.model import Admit, Preempt, Resize, Verdict, Wait
from mlp_hub.service.apart import apart, is_everybodys
from mlp_hub.service.board import APPLIER, Board, Changes, Moving, Step
from mlp_hub.service.claims import of_core, uid_of, waiting_of_claim
from mlp_hub.service.decide import start_of
from mlp_hub.service.decisions import Told
from mlp_hub.service.left import ROOM, has_left
from mlp_hub.service.room import Room
from mlp_hub.service.sentences import behind, ranks_on
from mlp_hub.service.shares import shares_of
from mlp_hub.service.snapshot import Holders, read_holders
from mlp_hub.service.tokens import JobToken
from mlp_hub.store.records import DecayedUsage
from mlp_hub.store.tx import Tx

_STOPS = frozenset({Target.RUN, Target.RESIZE})


@dataclass(slots=True)
class Decided:
    """What is to be stored. `jobs` are all the jobs concerned as they are in memory, by uid.

    `told` explains the decisions that take effect; `promised` are jobs whose admissions are explained and wait.
    Where it is `early`, an admission that finds no room waits for it too.
    `claims` are those for which room is to be set aside, decided on what others than jobs hold by `holders`.
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
    told: Told = field(default_factory=lambda: Told({}))
    promised: Sequence[str] = ()
    claims: Sequence[Admit] = ()
    holders: Holders | None = None
    early: bool = False

    def __bool__(self) -> bool:
        return bool(self.admits or self.preempts or self.resizes or self.waits or self.usage or self.claims)

    def pieces(self) -> list[Piece]:
        """List what can be stored without the rest, in order."""
        usage = [TenantUsage(tenant, value) for tenant, value in self.usage.items()]
        promised = [Promised(uid) for uid in self.promised]
        claimed = [Claimed(admit) for admit in self.claims]
        uids = {admit.uid for admit in self.claims}
        preempts = [p for p in self.preempts if p.preemptor not in uids]
        resizes = [r for r in self.resizes if r.for_uid not in uids]
        return [*usage, *claimed, *self.admits, *preempts, *resizes, *self.waits, *promised]

    def only(self, pieces: Sequence[Piece]) -> Decided:
        """Return these pieces alone."""
        claims = [p.admit for p in pieces if isinstance(p, Claimed)]
        uids = {admit.uid for admit in claims}
        preempts = [p for p in self.preempts if p.preemptor in uids]
        resizes = [r for r in self.resizes if r.for_uid in uids]
        return replace(
            self,
            claims=claims,
            admits=[p for p in pieces if isinstance(p, Admit)],
            preempts=[*preempts, *(p for p in pieces if isinstance(p, Preempt))],
            resizes=[*resizes, *(p for p in pieces if isinstance(p, Resize))],
            waits=[p for p in pieces if isinstance(p, Wait)],
            usage={p.tenant: p.value for p in pieces if isinstance(p, TenantUsage)},
            promised=[p.uid for p in pieces if isinstance(p, Promised)],
        )


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant has used."""

    tenant: str
    value: DecayedUsage


@dataclass(frozen=True, slots=True)
class Promised:
    """A job that waits for the room it was promised."""

    uid: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim for which room is to be set aside, with all who are stopped or shrunk for it: nobody is without it."""

    admit: Admit


Piece = Claimed | Admit | Preempt | Resize | Wait | TenantUsage | Promised


@dataclass(slots=True)
class Stored:
    """What became of them: who was admitted, who found no room, whose stored job is not the one that was decided about."""

    admitted: list[str] = field(default_factory=list)
    no_room: list[Admit] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    cannot_grow: list[Resize] = field(default_factory=list)
    in_force: list[str] = field(default_factory=list)  # of admissions, preemptions and resizes
    lost_claims: set[str] = field(default_factory=set)  # nobody is stopped for them
    bad: list[tuple[Piece, Exception]] = field(default_factory=list)  # what could not be stored, and why

    def add(self, other: Stored) -> None:
        """Take in what became of others."""
        self.admitted += other.admitted
        self.no_room += other.no_room
        self.stale += other.stale
        self.cannot_grow += other.cannot_grow
        self.in_force += other.in_force
        self.lost_claims |= other.lost_claims


Starts = Callable[[str, JobToken | None], None]
"""Told the token of an attempt that is about to be stored as starting; None: it was not stored."""


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
        for outcome in await apart(decided.pieces(), work):
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
        self._set_aside()
        lost = self.stored.lost_claims
        self._admit()
        for preempt in d.preempts:
            if preempt.preemptor not in lost:
                self._preempt(preempt)
        for resize in d.resizes:
            if resize.for_uid not in lost:
                self._resize(resize)
        told = {w.uid for w in d.waits} - set(self.stored.admitted)
        still = (
            self.tx.jobs.queued(told) if told else set()
        )  # whoever was suspended meanwhile waits for nothing
        self.changes.add_events(
            self.tx,
            [
                (w.uid, Step("waiting", _waiting_words(w), w.verdict.reason.value))
                for w in d.waits
                if w.uid in still
            ],
            self.now,
        )
        early = [admit.uid for admit in self.stored.no_room] if d.early else []
        d.told.store(self.tx, [*self.stored.in_force, *d.promised, *early])
        return self.stored

    def _job(self, uid: str) -> Job | None:
        """Return the job if it is stored as it was when it was decided about."""
        job = self.decided.jobs.get(uid)
        return job if job is not None and self.versions.get(uid) == job.version else None

    def _set_aside(self) -> None:
        """Set room aside for claims that still stand, if what the core knew of others still holds."""
        d = self.decided
        if not d.claims:
            return
        found = read_holders(self.tx, self.now)
        same = d.holders is not None and found.same_room(d.holders)
        waiting = of_core(found.claims)
        rows = {uid_of(c): c for c in found.claims}
        kinds = {n.name: n.gpu_kind for n in d.nodes}
        for admit in d.claims:
            if not same or admit.uid not in waiting:
                self.stored.lost_claims.add(admit.uid)
                continue
            row = rows[admit.uid]
            shares = shares_of(waiting_of_claim(row).per_worker, admit.placement, kinds)
            self.tx.ledger.put(replace(row, shares=shares))

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
        step = Step("preempted", self._said(job, preempt.verdict), preempt.verdict.reason.value)
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
        why = "" if resize.verdict is None else self._said(job, resize.verdict)
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

    def _said(self, job: Job, verdict: Verdict) -> str:
        """Return the reason for the job's timeline: names are not for who has left the tenant."""
        return ROOM if has_left(self.tx, job.spec) else verdict.message

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


def _waiting_words(wait: Wait) -> str:
    """Say at which place a job waits and why; one that can never start is at none."""
    message = wait.verdict.message
    if wait.verdict.reason is Reason.EXCEEDS_MAX_QUOTA:
        return message
    return f"{behind(wait.position)}: {message}"


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
        **wait_ends(job, now),
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
