"""Messages of a cluster about a pod or an object that does not run, or was removed, as failures.

Each has its way out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlp_hub.domain.errors import MessageError
from mlp_hub.domain.jobs.job import Cause, Failure
from mlp_hub.executors.kubernetes.attempt_claims import About
from mlp_hub.executors.kubernetes.gang import lacking
from mlp_hub.executors.kubernetes.views import NO_ROOM, MainView, PodView
from mlp_hub.kubernetes.errors import ClusterUnreachable, ForbiddenError
from mlp_language.message import Message, msg, to_data

IMAGE_S = 120.0
"""Limit of kubernetes: seconds for which a node may fail to pull an image before the job fails."""
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})
_NEVER = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_CONFIG = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)
CONFIG_S = 20.0
"""Limit of kubernetes: seconds for which a container may lack what it needs before the job fails."""
_NO_SUCH_IMAGE = re.compile(
    r"(?i)not found|manifest unknown|does not exist|unauthorized|denied|no basic auth|invalid reference"
)
"""Given: how registries say that an image is not there, or not for us; anything else may pass."""
_START = frozenset({"StartError", "ContainerCannotRun"})
_NODE = frozenset({"NodeLost", "NodeShutdown", "Terminated", "UnexpectedAdmissionError", "NodeAffinity"})
_DISK = re.compile(r"(?i)ephemeral|emptydir|disk")


@dataclass(frozen=True, slots=True)
class Complaint:
    """Complaint of the cluster about an attempt without pods, and whether more waiting is in vain."""

    said: str
    final: bool


def of_cluster(error: MessageError) -> Message:
    """Say to everybody why the cluster is not heard of."""
    if isinstance(error, ClusterUnreachable):
        return msg(
            "the cluster does not answer; running work continues, and nothing starts or ends until the cluster answers"
        )
    if isinstance(error, ForbiddenError):
        return msg(
            "the hub may not read everything that it needs of the cluster; make doctor shows the missing right"
        )
    return msg("the hub does not keep up with the cluster; the log of its service has the reason")


def failure(cause: Cause, said: Message, rank: int | None = None, pod: PodView | None = None) -> Failure:
    """Make a failure of a sentence of ours."""
    code, signal = (pod.exit_code, pod.signal) if pod is not None else (None, None)
    return Failure(cause, rank, code, signal, str(said), said=to_data(said))


def not_taken_up(kind: str) -> Message:
    """Say that an operator does nothing with an attempt's main object."""
    return msg(
        "nothing in the cluster handles its {kind}: the operator is perhaps down, which make doctor checks",
        kind=kind,
    )


def not_bound(pod: PodView) -> Message:
    """Say that a pod has no node, and nobody says why."""
    return msg(
        "its pod {pod} has no node, and no scheduler gives a reason: the scheduler is perhaps down, which make doctor checks",
        pod=pod.name,
    )


def on_node(pod: PodView, why: str) -> Message:
    """Return the node's message about a pod that it cannot start."""
    return msg("node {node} cannot start its pod yet, and tries again: {why}", node=pod.node, why=why)


def pods_so_far(made: int, ranks: int) -> Message:
    """Say that the cluster has not made all pods of a gang yet."""
    return msg("{n} of its {all} pods are made", n=made, all=ranks)


def waiting(pod: PodView) -> Message:
    """Say what a pod waits for."""
    if pod.waits == NO_ROOM:
        return msg("the cluster has no room for its pod {pod} now: {why}", pod=pod.name, why=pod.message)
    if pod.waits in _PULL:
        return msg("its image cannot be fetched, but the cluster tries again: {why}", why=pod.message)
    if pod.waits == "SchedulingGated":
        return msg("its pod {pod} is held back by the cluster", pod=pod.name)
    return msg("its pod {pod} waits: {reason} {why}", pod=pod.name, reason=pod.waits, why=pod.message or "-")


def never_starts(pod: PodView, rank: int, now: float) -> Failure | None:
    """Return the failure of a pod that will not start; None where that may pass."""
    waited = now - pod.made_at
    if pod.waits in _NEVER or (
        pod.waits in _PULL and (waited > IMAGE_S or _NO_SUCH_IMAGE.search(pod.message))
    ):
        said = msg(
            "the image of rank {rank} is not available: {why}; name one that the cluster's nodes can pull, or ask its administrator for access",
            rank=rank,
            why=pod.message or pod.waits,
        )
        return failure(Cause.START_FAILED, said, rank)
    if pod.waits in _CONFIG and (lacks := lacking(pod.message)):
        return failure(Cause.START_FAILED, lacks, rank)
    if pod.waits in _CONFIG and waited > CONFIG_S:
        said = msg(
            "the container of rank {rank} cannot be made ({reason}): {why}",
            rank=rank,
            reason=pod.waits,
            why=pod.message or "-",
        )
        return failure(Cause.START_FAILED, said, rank)
    return None


def pod_failed(pod: PodView, rank: int) -> Failure:
    """Return why a pod failed whose rank could not write it down."""
    if pod.reason == "Evicted":
        cause = Cause.DISK if _DISK.search(pod.message) else Cause.NODE_LOST
        said = msg("the pod of rank {rank} was evicted: {why}", rank=rank, why=pod.message or "-")
        return failure(cause, said, rank)
    if pod.disrupted or pod.leaves_at is not None:
        return pod_taken(pod, rank)
    cause, said = _cause(pod, rank)
    if cause is Cause.PROGRAM_ERROR and pod.message:
        return Failure(cause, rank, pod.exit_code, None, pod.message)
    return failure(cause, said, rank, pod)


def _cause(pod: PodView, rank: int) -> tuple[Cause, Message]:
    if pod.reason == "OOMKilled":
        return Cause.OUT_OF_MEMORY, msg(
            "rank {rank} was killed: it used more memory than the limit of its pod", rank=rank
        )
    if pod.reason == "DeadlineExceeded":
        return Cause.TIME_LIMIT, msg("it ran longer than its time limit allows")
    if pod.reason in _START:
        why = pod.message or pod.reason
        return Cause.START_FAILED, lacking(why) or msg(
            "the container of rank {rank} could not start: {why}", rank=rank, why=why
        )
    if pod.reason in _NODE or (pod.started_at is None and pod.exit_code is None and pod.signal is None):
        return Cause.NODE_LOST, msg(
            "node {node} did not run the pod of rank {rank} ({reason}): {why}",
            node=pod.node or "-",
            rank=rank,
            reason=pod.reason or "-",
            why=pod.message or "-",
        )
    if pod.signal is not None:
        return Cause.SIGNAL, msg("rank {rank} was killed by signal {signal}", rank=rank, signal=pod.signal)
    return Cause.PROGRAM_ERROR, msg(
        "rank {rank} ended with exit status {code}", rank=rank, code=pod.exit_code or 0
    )


def pod_taken(pod: PodView, rank: int) -> Failure:
    """Return the loss of a rank whose pod was taken away."""
    if pod.disrupted:
        said = msg("the cluster removed the pod of rank {rank}: {why}", rank=rank, why=pod.disrupted)
    else:
        said = msg("somebody deleted the pod {pod} of rank {rank}", pod=pod.name, rank=rank)
    return failure(Cause.NODE_LOST, said, rank)


def rank_lost(rank: int | None, node: str) -> Failure:
    """Return the loss of a rank with its node or pod."""
    if rank is None:
        return failure(Cause.NODE_LOST, msg("node {node} vanished before its ranks were there", node=node))
    said = msg("the pod of rank {rank} on node {node} vanished without a reason", rank=rank, node=node or "-")
    return failure(Cause.NODE_LOST, said, rank)


def node_silent(node: str) -> Failure:
    """Return the loss of an attempt one of whose nodes went, or fell silent, before any rank was there."""
    said = msg("node {node} does not answer, and none of its ranks had begun", node=node)
    return failure(Cause.NODE_LOST, said)


def asked_by_others(rank: int) -> Failure:
    """Return the loss of a rank that somebody else asked to end."""
    return failure(Cause.NODE_LOST, msg("rank {rank} was asked to end by the cluster", rank=rank), rank)


def deleted(kind: str, name: str) -> Failure:
    """Return the loss of an attempt whose main object somebody has removed."""
    return failure(Cause.NODE_LOST, msg("somebody deleted its {kind} {name}", kind=kind, name=name))


def namespace_deleted(name: str) -> Failure:
    """Return the loss of an attempt whose namespace somebody is removing."""
    return failure(Cause.NODE_LOST, msg("somebody deleted its namespace {name}", name=name))


def claim_deleted(name: str) -> Failure:
    """Return the loss of an attempt whose claim somebody has removed."""
    return failure(Cause.NODE_LOST, msg("somebody deleted its ConfigMap {name}, or its namespace", name=name))


def main_failed(main: MainView, about: About) -> Failure:
    """Return why an operator gave an attempt up whose ranks told nothing."""
    if main.reason == "DeadlineExceeded":
        return failure(Cause.TIME_LIMIT, msg("it ran longer than its time limit allows"))
    said = msg("its {kind} failed ({reason}): {why}", kind=about.main[1], reason=main.reason, why=main.failed)
    return failure(Cause.START_FAILED, said)


def refused(kind: str, why: str) -> Failure:
    """Return the failure of an attempt of which the cluster refused an object."""
    said = msg("the cluster refused its {kind}: {why}", kind=kind, why=why)
    return failure(Cause.START_FAILED, said)


def no_pods(why: str) -> Failure:
    """Return the failure of an attempt of whose pods the cluster refused one."""
    return failure(Cause.START_FAILED, msg("the cluster refused its pods: {why}", why=why))
