"""State of an attempt of a job that somebody brought, and its end, from the object and its pods; pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from mlp_hub.domain.jobs.job import Cause, Failure, RankStatus
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.executors.kubernetes import pod_problems
from mlp_hub.executors.kubernetes.attempt_claims import End
from mlp_hub.executors.kubernetes.external.views import ExternalView
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.executors.kubernetes.verdict import LEFT_S, AttemptVerdict
from mlp_hub.executors.kubernetes.views import PodView
from mlp_language.message import Message, msg

A = AttemptPhase


def alive(pods: Sequence[PodView], now: float) -> list[PodView]:
    """Return those of these pods of which processes may be left."""
    return [p for p in pods if not p.over and (p.leaves_at is None or now <= p.leaves_at + LEFT_S)]


def judge(
    view: ExternalView,
    attempt: str,
    pods: Sequence[PodView],
    now: float,
    *,
    lost_nodes: AbstractSet[str] = frozenset(),
    complaint: Complaint | None = None,
) -> AttemptVerdict:
    """Return the attempt's present state.

    Retries within it are its controller's, which reports its end.
    """
    left = alive(pods, now)
    started = min((p.started_at for p in pods if p.started_at is not None), default=None)
    proposed = None
    if view.end is None and not view.over and (found := _ends(view, pods, now, lost_nodes, complaint)):
        proposed = End(found[0], now, 0.0, found[1])
    end = view.end
    if end is None and view.over:
        well = view.over == "Succeeded"
        end = End(
            A.SUCCEEDED if well else A.FAILED,
            view.finished_at or now,
            failure=None if well else _failure(view, pods),
        )
    waits = None
    if end is not None and not left:
        phase = end.phase
    elif started is not None:
        phase = A.RUNNING
    else:
        phase, waits = A.STARTING, _waits(pods, complaint)
    over = phase not in (A.RUNNING, A.STARTING)
    seen = Observation(
        attempt,
        phase,
        started,
        end.at if over and end is not None else None,
        ranks_of(view, pods),
        end.failure if over and end is not None else None,
        leaves=False,
        waits=waits,
    )
    return AttemptVerdict(seen, proposed)


def ranks_of(view: ExternalView, pods: Sequence[PodView]) -> tuple[RankStatus, ...]:
    """Return the state of its ranks: of each the newest pod; without numbers, the newest of all pods."""
    newest = sorted(pods, key=lambda pod: pod.made_at, reverse=True)
    numbered: dict[int, PodView] = {}
    for pod in newest:
        if pod.rank is not None and pod.rank < view.ranks:
            numbered.setdefault(pod.rank, pod)
    free = [rank for rank in range(view.ranks) if rank not in numbered]
    others = sorted((p for p in newest if p.rank is None), key=lambda pod: (pod.over, -pod.made_at))
    numbered |= dict(zip(free, others, strict=False))
    roles = [role.lower() for role, count in view.parts for _ in range(count)]
    absent = "stopped" if view.end is not None else _WITHOUT_POD[view.over]
    node = view.nodes[0] if len(view.nodes) == 1 else ""
    found = []
    for rank, role in enumerate(roles):
        if (one := numbered.get(rank)) is None:
            found.append(RankStatus(rank, role, node, absent))
        else:
            found.append(RankStatus(rank, role, one.node, _state(one), one.exit_code, one.signal))
    return tuple(found)


_WITHOUT_POD = {"": "pending", "Succeeded": "finished", "Failed": "stopped"}
"""Given: state of a rank whose pod is not there, or not any more: operators remove what runs on when the job has ended."""


def _state(pod: PodView) -> str:
    if pod.over:
        return "finished" if pod.phase == "Succeeded" else "failed"
    return "running" if pod.started_at is not None else "pending"


def _ends(
    view: ExternalView,
    pods: Sequence[PodView],
    now: float,
    lost_nodes: AbstractSet[str],
    complaint: Complaint | None,
) -> tuple[AttemptPhase, Failure] | None:
    for pod in pods:
        # one that is started again and again is its controller's to give up
        waits = pod.waits and pod.waits != "CrashLoopBackOff" and not pod.over
        if waits and (why := pod_problems.never_starts(pod, pod.rank or 0, now)):
            return A.FAILED, why
        if not pod.over and pod.node in lost_nodes and pod.leaves_at is not None:
            return A.LOST, pod_problems.rank_lost(pod.rank or 0, pod.node)
    if (gone := lost_nodes & set(view.nodes)) and not any(pod.node for pod in pods):
        return A.LOST, pod_problems.rank_lost(None, min(gone))
    if complaint is not None and complaint.final:
        return A.FAILED, pod_problems.no_pods(complaint.said)
    return None


def _failure(view: ExternalView, pods: Sequence[PodView]) -> Failure:
    if view.reason == "DeadlineExceeded":
        return pod_problems.failure(Cause.TIME_LIMIT, msg("it ran longer than its time limit allows"))
    failed = sorted((p for p in pods if p.phase == "Failed"), key=lambda pod: pod.finished_at or 0.0)
    if failed:
        return pod_problems.pod_failed(failed[0], failed[0].rank or 0)
    said = msg("its {kind} failed ({reason}): {why}", kind=view.what.kind, reason=view.reason, why=view.said)
    return pod_problems.failure(Cause.PROGRAM_ERROR, said)


def _waits(pods: Sequence[PodView], complaint: Complaint | None) -> Message | None:
    for pod in pods:
        if pod.waits:
            return pod_problems.waiting(pod)
    if any(pod.node for pod in pods):
        return msg("its pods have their nodes, and fetch their images")
    if complaint is not None:
        return msg("the cluster makes no pods of it yet: {why}", why=complaint.said)
    return None
