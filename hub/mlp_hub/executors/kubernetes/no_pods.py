"""Why a cluster makes no pods for an attempt: as its events tell, which are asked for only then."""

from __future__ import annotations

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from mlp_hub.executors.kubernetes.attempt_claims import AttemptClaim
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.executors.kubernetes.views import PodView
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import EVENTS, Object

AFTER_S = 3.0
"""Tuning: seconds without a pod after which the cluster's events are read: calls, for how soon it is told."""
AGAIN_S = 10.0
"""Tuning: seconds between two looks at them for an attempt."""
APART_S = 2.0
"""Tuning: seconds between two questions about a namespace, of whichever attempts: calls, for how soon it is told."""
QUOTA_S = 60.0
"""Tuning: seconds in which a quota of the cluster's may become free, which the hub's own would have kept free."""
_NEVER = re.compile(r"violates PodSecurity|denied the request|denied request|is invalid|Invalid value")
_ON_NODES = frozenset(
    {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume", "NetworkNotReady"}
)
"""Given: reasons of events by which a node, or who attaches volumes to it, says why a pod that it has does not run."""
_QUOTA = re.compile(
    r"exceeded quota|must specify (limits|requests)|maximum .* usage per|minimum .* usage per"
)


class EventsOfNamespaces:
    """Warnings of the cluster: one question answers for all attempts of a namespace, which a slow cluster makes wait together."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._heard: dict[str, tuple[float, Sequence[Object]]] = {}  # when it was asked, and the answer

    async def since(self, namespace: str, due: float, now: float) -> Sequence[Object] | None:
        """Return what the cluster said when it was asked at `due` or later; None where it was asked only just before that."""
        async with self._asking[namespace]:
            asked, events = self._heard.get(namespace, (-math.inf, ()))
            if asked >= due:
                return events
            if now < asked + APART_S:
                return None
            listed = await self._client.list(EVENTS, namespace, fields="type=Warning")
            self._heard[namespace] = now, listed.items
            return listed.items


class AttemptComplaints:
    """Complaints of the cluster about attempts: it makes no pods for them, or nodes do not start their pods."""

    def __init__(self, client: KubernetesClient, clock: Callable[[], float]) -> None:
        self._events, self._clock = EventsOfNamespaces(client), clock
        self._found: dict[str, tuple[float, Complaint | None]] = {}  # when it was asked, and the answer

    def of(self, attempt: str) -> Complaint | None:
        """Return the complaint about an attempt, as last asked for."""
        return self._found.get(attempt, (0.0, None))[1]

    def forget(self, attempt: str) -> None:
        """Forget an attempt."""
        self._found.pop(attempt, None)

    async def ask(self, claim: AttemptClaim, pods: Sequence[PodView]) -> None:
        """Read the cluster's events where it makes no pods, or nodes do not bring them to run."""
        all_made = len(pods) >= len(claim.about.roles)
        if all_made and not any(pod.node and pod.started_at is None and not pod.waits for pod in pods):
            self.forget(claim.attempt)
            return
        now = self._clock()
        last, _ = self._found.get(claim.attempt, (claim.about.at + AFTER_S - AGAIN_S, None))
        due = last + AGAIN_S
        if now >= due and (events := await self._events.since(claim.namespace, due, now)) is not None:
            if all_made:
                self._found[claim.attempt] = now, of_nodes(events, claim, now - AGAIN_S)
            else:
                self._found[claim.attempt] = now, complaint(events, claim, now - claim.about.at)


def complaint(events: Sequence[Object], claim: AttemptClaim, waited_s: float) -> Complaint | None:
    """Return what the cluster says against an attempt's objects."""
    return complaint_of([each for each in events if _about(each).startswith(claim.name)], waited_s)


def of_nodes(events: Sequence[Object], claim: AttemptClaim, since: float) -> Complaint | None:
    """Return what nodes have said since then against an attempt's pods that they do not bring to run: they try again."""
    after = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    mine = [
        each
        for each in events
        if _about(each).startswith(claim.name) and each.get("reason") in _ON_NODES and when(each) >= after
    ]
    return Complaint(str(max(mine, key=when).get("message") or ""), final=False) if mine else None


def complaint_of(mine: Sequence[Object], waited_s: float) -> Complaint | None:
    """Return the joint message of these events, after `waited_s` seconds without all pods."""
    if not mine:
        return None
    said = str(max(mine, key=when).get("message") or "")
    worst = next((text for each in mine if _NEVER.search(text := str(each.get("message") or ""))), None)
    if worst is not None:
        return Complaint(worst, final=True)
    return Complaint(said, final=bool(_QUOTA.search(said)) and waited_s > QUOTA_S)


def _about(event: Object) -> str:
    of: Mapping[str, str] = event.get("involvedObject") or {}
    return of.get("name") or ""


def when(event: Object) -> str:
    """Return when an event came last, as the cluster writes it."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])
