"""State of an attempt, and its end, from the cluster's objects and its ranks' records; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from mlp_hub.domain.jobs.job import Cause, Failure, Hint, RankStatus
from mlp_hub.executors.base import AskedToEnd, AttemptPhase, Observation
from mlp_hub.executors.kubernetes import pod_problems
from mlp_hub.executors.kubernetes.attempt_claims import AttemptClaim, End
from mlp_hub.executors.kubernetes.metering.believed import PodUse, believed
from mlp_hub.executors.kubernetes.records import RankRecord, RankUse
from mlp_hub.executors.kubernetes.stages import stages_of
from mlp_hub.executors.kubernetes.views import NO_ROOM, MainView, PodView
from mlp_hub.kubernetes.kinds import POD_GROUPS
from mlp_language.message import Message, msg, to_data

_KILL, _TERM = 9, 15
NO_USE = RankUse()
ENDED = (AttemptPhase.SUCCEEDED, AttemptPhase.FAILED, AttemptPhase.STOPPED, AttemptPhase.LOST)
SEEN_S = 20.0
"""Safety: seconds after a pod ended in which its rank's record may still come to light, where the volume is slow."""
ENDED_S = 30.0
"""Tuning: seconds from a rank's end until it is told that others still run: ranks end together, more or less."""
SHORTLY_S = 60.0
"""Tuning: seconds before a failure in which the end of another rank may be what it comes from."""
SILENT_S = 5.0
"""Tuning: seconds in which an operator takes up an object, and a scheduler a pod; after that they may be down."""
LEFT_S = 60.0
"""Safety: seconds beyond its time after which a deleted pod counts as gone: its node does not answer."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Known facts of an attempt.

    `made`: its main object existed once. `lost_nodes` are nodes of its placement that have gone or are
    silent.
    """

    claim: AttemptClaim
    main: MainView | None
    made: bool
    pods: Sequence[PodView]
    records: Mapping[int, RankRecord]
    now: float
    lost_nodes: AbstractSet[str] = frozenset()
    complaint: pod_problems.Complaint | None = None  # of the cluster, where it makes no pods
    grouped: bool = True  # what has its pods bound as a whole is there, where there is to be something
    told: bool = True  # its main object was told of; pods alone may be told of before it
    measured: Mapping[int, PodUse] = field(default_factory=dict)  # use of ranks by the cluster

    @property
    def alive(self) -> bool:
        """Whether processes of it may be left."""
        return any(not pod.over and not self._abandoned(pod) for pod in self.pods)

    def _abandoned(self, pod: PodView) -> bool:
        return pod.leaves_at is not None and self.now > pod.leaves_at + LEFT_S


@dataclass(frozen=True, slots=True)
class AttemptVerdict:
    """State of an attempt; `end`: the attempt has to be ended in this way, which is not yet recorded."""

    seen: Observation
    end: End | None = None


@dataclass(slots=True)
class _Rank:
    number: int
    role: str
    node: str
    state: str = "pending"  # running, finished, failed, stopped, lost
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    failure: Failure | None = None
    lines: int = 0
    memory_kills: int = 0
    pods: list[PodView] = field(default_factory=list)
    container_at: float | None = None
    first_line_at: float | None = None
    use: RankUse = NO_USE
    asked_at: float | None = None
    killed: bool = False
    reported: bool = False  # a part of its use is its own report alone
    cores_reported: bool = False  # its mean cores are, or its mean memory is
    memory_reported: bool = False

    @property
    def final(self) -> bool:
        return self.state not in ("pending", "running")

    def status(self, state: str) -> RankStatus:
        runs, use = state == "running", self.use
        return RankStatus(
            self.number,
            self.role,
            self.node,
            state,
            self.exit_code,
            self.signal,
            use.cpu if runs else None,
            use.ram if runs else None,
            *((None,) * 4 if runs else (use.cpu_mean, use.cpu_peak, use.ram_mean, use.ram_peak)),
            reported=self.reported,
            cores_reported=self.cores_reported and not runs,
            memory_reported=self.memory_reported and not runs,
        )


def judge(scene: Scene) -> AttemptVerdict:
    """Return the attempt's present state."""
    ranks = _ranks(scene)
    end = scene.claim.end
    proposed = None if end is not None else _end(scene, ranks)
    # whose ranks have all ended by themselves has ended: nobody ends it, and nothing is written down
    by_itself = proposed is not None and proposed.phase is not AttemptPhase.LOST
    by_itself = by_itself and all(rank.final for rank in ranks)
    if by_itself:
        end, proposed = proposed, None
    started = min((r.started_at for r in ranks if r.started_at is not None), default=None)
    waits = None
    if end is not None and (by_itself or (not scene.alive and scene.main is None)):
        phase = end.phase
    elif started is not None or any(rank.final for rank in ranks):
        phase = AttemptPhase.RUNNING
    elif scene.main is None and not scene.pods and not scene.made and end is None:
        phase = AttemptPhase.ABSENT
    else:
        phase, waits = AttemptPhase.STARTING, _waits(scene)
    over = phase in ENDED
    failure = end.failure if over and end is not None else None
    told_of = _remark(scene, ranks) if phase is AttemptPhase.RUNNING and end is None else (None, None)
    seen = Observation(
        scene.claim.attempt,
        phase,
        started,
        _finished(ranks, end) if over else None,
        tuple(rank.status(_shown(rank, phase, failure)) for rank in ranks),
        failure,
        sum(rank.lines for rank in ranks) if over else 0,
        _went_on(ranks, failure) if over else (),
        waits=waits,
        ending=_ending(ranks, phase, failure),
        remark=told_of[0],
        remark_at=told_of[1],
        stages=stages_of(
            scene.pods,
            len(ranks),
            started,
            min((r.first_line_at for r in ranks if r.first_line_at is not None), default=None),
            {r.number: r.container_at for r in ranks if r.container_at is not None},
        ),
    )
    return AttemptVerdict(seen, proposed)


def _ending(ranks: Sequence[_Rank], phase: AttemptPhase, failure: Failure | None) -> AskedToEnd | None:
    """Return the result of the platform's request.

    The request to the other ranks of a rank that failed is not news.
    """
    by_platform = failure is not None and failure.cause in {Cause.TIME_LIMIT, Cause.DISK}
    asked = [rank.asked_at for rank in ranks if rank.asked_at is not None]
    if not asked or not (phase is AttemptPhase.STOPPED or by_platform):
        return None
    return AskedToEnd(min(asked), any(rank.killed for rank in ranks))


def _remark(scene: Scene, ranks: Sequence[_Rank]) -> tuple[Message | None, float | None]:
    """Return the remark that ranks have ended while others continue, once that has lasted."""
    workers = [rank for rank in ranks if rank.role != "ps"]
    over = [rank for rank in workers if rank.state == "finished"]
    left = sum(rank.state == "running" for rank in workers)
    last = max((rank.finished_at for rank in over if rank.finished_at is not None), default=None)
    if not left or last is None or scene.now < last + ENDED_S:
        return None, None
    who = msg("rank {n}", n=over[0].number) if len(over) == 1 else msg("{n} ranks", n=len(over))
    return msg("{who} ended; the others ({left}) still run", who=who, left=left), last


def settled(verdict: AttemptVerdict, claim: AttemptClaim) -> bool:
    """Whether nothing will happen to an attempt of which its watches would not tell."""
    seen = verdict.seen
    if seen.phase in ENDED or seen.phase is AttemptPhase.ABSENT:
        return True
    steady = all(rank.state == "running" for rank in seen.ranks)
    return seen.phase is AttemptPhase.RUNNING and claim.end is None and verdict.end is None and steady


def _finished(ranks: Sequence[_Rank], end: End | None) -> float | None:
    finished = [rank.finished_at for rank in ranks if rank.finished_at is not None]
    return max(finished) if finished else end.at if end is not None else None


def _went_on(ranks: Sequence[_Rank], failure: Failure | None) -> tuple[int, ...]:
    """Return the ranks that lost a process for lack of memory, where that is not why the attempt ended."""
    if failure is not None and failure.cause is Cause.OUT_OF_MEMORY:
        return ()
    return tuple(rank.number for rank in ranks if rank.memory_kills)


def _shown(rank: _Rank, phase: AttemptPhase, failure: Failure | None) -> str:
    """Say what a rank is called: stopped is one that ended, or never began, only because of others or because it was asked."""
    if phase in (AttemptPhase.STOPPED, AttemptPhase.SUCCEEDED):
        return rank.state if rank.state == "finished" or rank.exit_code is not None else "stopped"
    if phase is AttemptPhase.LOST:
        return rank.state if rank.state in ("finished", "stopped") else "failed"
    if phase is AttemptPhase.FAILED and failure is not None and failure.rank != rank.number:
        hushed = rank.state in ("pending", "lost", "running") or rank.signal in (_TERM, _KILL)
        return "stopped" if hushed else rank.state
    return "failed" if rank.state == "lost" else rank.state


def _ranks(scene: Scene) -> list[_Rank]:
    about = scene.claim.about
    found = []
    for number, role in enumerate(about.roles):
        pods = sorted((pod for pod in scene.pods if pod.rank == number), key=lambda pod: pod.made_at)
        node = next((pod.node for pod in reversed(pods) if pod.node), "")
        node = node or (about.nodes[number] if number < len(about.nodes) else "")
        rank = _Rank(number, role, node, pods=pods)
        if (record := scene.records.get(number)) is not None:
            _from_record(rank, record.between(about.at, scene.now), about.network)
        if not rank.final:
            _from_pods(rank, scene)
        known = believed(rank.use, scene.measured.get(number))
        rank.use, rank.reported = known.use, known.reported
        rank.cores_reported, rank.memory_reported = known.cores_reported, known.memory_reported
        found.append(rank)
    return found


def _from_record(rank: _Rank, record: RankRecord, network: str) -> None:
    rank.state, rank.started_at, rank.finished_at = record.state, record.started_at, record.finished_at
    rank.exit_code, rank.signal, rank.lines = record.exit_code, record.signal, record.lost_lines
    rank.first_line_at, rank.use = record.first_line_at, record.use or NO_USE
    rank.container_at, rank.asked_at, rank.killed = record.container_at, record.asked_at, record.killed
    rank.memory_kills = record.memory_kills
    if record.state == "failed":
        cause = record.cause or (Cause.SIGNAL if record.signal else Cause.PROGRAM_ERROR)
        hint = Hint(record.hint) if record.hint in set(Hint) else None
        if hint is Hint.NO_NETWORK and network == "outbound":
            hint = Hint.NETWORK_MISSING
        rank.failure = Failure(
            cause,
            rank.number,
            record.exit_code,
            record.signal,
            record.message,
            record.tail,
            hint,
            record.said,
            record.hint_limit,
        )


def _from_pods(rank: _Rank, scene: Scene) -> None:
    """Set a rank's state from its pod, where it has not recorded its end."""
    if not rank.pods:
        if rank.state == "running":
            rank.state, rank.failure = "lost", pod_problems.rank_lost(rank.number, rank.node)
        return
    pod = rank.pods[-1]
    if pod.over and scene.now < (pod.finished_at or scene.now) + SEEN_S and _may_write(pod, rank):
        return  # its record says more, and comes
    if pod.over:
        rank.started_at = rank.started_at or pod.started_at
        rank.finished_at = pod.finished_at or scene.now
        rank.exit_code, rank.signal = pod.exit_code, pod.signal
        if pod.phase == "Succeeded":
            rank.state = "finished"
        else:
            rank.failure = pod_problems.pod_failed(pod, rank.number)
            rank.state = "lost" if rank.failure.cause is Cause.NODE_LOST else "failed"
    elif _is_taken(pod, scene):
        rank.state, rank.failure = "lost", pod_problems.pod_taken(pod, rank.number)
    elif pod.node in scene.lost_nodes and pod.leaves_at is not None:
        rank.state, rank.failure = "lost", pod_problems.rank_lost(rank.number, pod.node)
    elif pod.waits and (failure := pod_problems.never_starts(pod, rank.number, scene.now)):
        rank.state, rank.failure = "failed", failure
    elif rank.started_at is None and pod.started_at is not None and scene.now > pod.started_at + SEEN_S:
        rank.state, rank.started_at = "running", pod.started_at


def _is_taken(pod: PodView, scene: Scene) -> bool:
    """Whether the cluster or somebody took the pod away, and not all of its attempt."""
    leaves_alone = pod.leaves_at is not None and scene.main is not None and not scene.main.leaving
    return bool(pod.disrupted) or leaves_alone


def _may_write(pod: PodView, rank: _Rank) -> bool:
    """Whether the rank's program was there to write down how it ended: the kernel or the cluster took none of it away."""
    return rank.started_at is not None and pod.signal != _KILL and pod.reason in ("", "Completed", "Error")


def _end(scene: Scene, ranks: Sequence[_Rank]) -> End | None:
    """Return how the attempt has to end, if it has to: the first of these rules that says so."""
    for rule in (_deleted, _failed, _done, _lost, _given_up):
        if (found := rule(scene, ranks)) is not None:
            return End(found[0], scene.now, scene.claim.about.grace_s, found[1])
    return None


Rule = tuple[AttemptPhase, Failure | None]


def _deleted(scene: Scene, ranks: Sequence[_Rank]) -> Rule | None:
    if not scene.made or all(rank.state == "finished" for rank in ranks):
        return None
    about = scene.claim.about
    if scene.main is None and (scene.told or scene.now > about.at + SEEN_S):
        return AttemptPhase.LOST, pod_problems.deleted(about.main[1], scene.claim.name)
    unbound = any(not rank.final and not any(pod.node for pod in rank.pods) for rank in ranks)
    if unbound and not scene.grouped and scene.now > about.at + SEEN_S:
        return AttemptPhase.LOST, pod_problems.deleted(POD_GROUPS.kind, about.group)
    return None


def _failed(scene: Scene, ranks: Sequence[_Rank]) -> Rule | None:
    """The first that failed by itself: others are killed for it, by their launcher or their operator."""
    failed = [rank for rank in ranks if rank.state == "failed"]
    if not failed:
        return None
    first = min(failed, key=lambda rank: (rank.signal in (_KILL, _TERM), rank.finished_at or scene.now))
    return AttemptPhase.FAILED, _after(ranks, first)


def _after(ranks: Sequence[_Rank], first: _Rank) -> Failure | None:
    """Add that another rank had ended well shortly before, which the others may have missed."""
    failure, at = first.failure, first.finished_at
    if failure is None or at is None or failure.cause not in {Cause.PROGRAM_ERROR, Cause.SIGNAL}:
        return failure
    ended = [
        (rank.finished_at, rank)
        for rank in ranks
        if rank.state == "finished"
        and rank.finished_at is not None
        and 0 <= at - rank.finished_at <= SHORTLY_S
    ]
    if not ended:
        return failure
    before, other = min(ended, key=lambda each: each[0])
    said = msg(
        "{what}; rank {n} had ended {seconds} s before, with exit status {code}",
        what=failure.localized_message,
        n=other.number,
        seconds=f"{at - before:.1f}",
        code=other.exit_code or 0,
    )
    return replace(failure, message=str(said), said=to_data(said))


def _done(scene: Scene, ranks: Sequence[_Rank]) -> Rule | None:
    leader, about = _leader(scene, ranks), scene.claim.about
    if leader is not None:
        late = scene.now >= (leader.finished_at or scene.now) + about.linger_s
        if about.has_ps or late or all(rank.final for rank in ranks):
            return AttemptPhase.SUCCEEDED, None
    if all(rank.state == "finished" for rank in ranks):
        return AttemptPhase.SUCCEEDED, None
    return None


def _lost(scene: Scene, ranks: Sequence[_Rank]) -> Rule | None:
    """A rank that went without having failed, unless its leader's end is what ends it."""
    if _leader(scene, ranks) is not None:
        return None
    for rank in ranks:
        if rank.state == "lost":
            return AttemptPhase.LOST, rank.failure
        if rank.state == "stopped":  # it wrote down that it was asked to end; by whom, its pod may tell
            if rank.pods and _is_taken(rank.pods[-1], scene):
                return AttemptPhase.LOST, pod_problems.pod_taken(rank.pods[-1], rank.number)
            return AttemptPhase.LOST, pod_problems.asked_by_others(rank.number)
    gone = sorted(set(scene.claim.about.nodes) & scene.lost_nodes)
    if gone and not any(pod.node for pod in scene.pods):
        return AttemptPhase.LOST, pod_problems.node_silent(gone[0])
    return None


def _given_up(scene: Scene, _ranks: Sequence[_Rank]) -> Rule | None:
    """Return the failure where the cluster refuses to make pods or an operator gave up; None otherwise."""
    if scene.complaint is not None and scene.complaint.final:
        return AttemptPhase.FAILED, pod_problems.no_pods(scene.complaint.said)
    if scene.main is not None and scene.main.failed and not scene.alive:
        return AttemptPhase.FAILED, pod_problems.main_failed(scene.main, scene.claim.about)
    return None


def _leader(scene: Scene, ranks: Sequence[_Rank]) -> _Rank | None:
    """Return the rank with whose end the gang ends, once it has ended well."""
    role = scene.claim.about.ends_with
    leader = next((rank for rank in ranks if rank.role == role), None) if role is not None else None
    return leader if leader is not None and leader.state == "finished" else None


def _waits(scene: Scene) -> Message | None:
    for pod in scene.pods:
        if pod.waits:
            made, ranks = len({each.rank for each in scene.pods}), len(scene.claim.about.roles)
            if pod.waits == NO_ROOM and made < ranks:
                # pods that are bound together are refused until the last is there, whatever room there is
                return _of_none(scene) or pod_problems.pods_so_far(made, ranks)
            return pod_problems.waiting(pod)
    return _of_pods(scene) if scene.pods else _of_none(scene)


def _of_pods(scene: Scene) -> Message | None:
    for pod in scene.pods:
        if not pod.node and scene.now > pod.made_at + SILENT_S:
            return pod_problems.not_bound(pod)
    bound = next((pod for pod in scene.pods if pod.node and pod.started_at is None), None)
    if bound is not None and scene.complaint is not None:
        return pod_problems.on_node(bound, scene.complaint.said)
    if any(pod.node for pod in scene.pods):
        return msg("its pods have their nodes, and fetch their images")
    return _of_none(scene)


def _of_none(scene: Scene) -> Message | None:
    silent = scene.now > scene.claim.about.at + SILENT_S
    if not scene.pods and scene.main is not None and not scene.main.taken_up and silent:
        return pod_problems.not_taken_up(scene.claim.about.main[1])
    if scene.complaint is not None:
        return msg("the cluster makes no pods of it yet: {why}", why=scene.complaint.said)
    return None
