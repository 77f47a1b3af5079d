"""Executor's copy of the cluster: claims, the main objects that they own, and pods; all by watches."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.attempt_claims import CLAIM, AttemptClaim, claim_of
from mlp_hub.executors.kubernetes.stages import refined
from mlp_hub.executors.kubernetes.views import MainView, PodView, main_view, pod_view
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import (
    CONFIG_MAPS,
    POD_GROUPS,
    PODS,
    Kind,
    Object,
    labels_of,
    name_of,
    namespace_of,
)
from mlp_hub.kubernetes.reflector import AnyReflector, Key, Selection, reflector

SYNC_S = 30.0
"""Tuning: seconds that a call waits for the first look at a cluster: how soon one that is gone is said to be."""


class Cache:
    """Attempts as the cluster has them.

    `changed` is called with an attempt, `vanished` with a claim that the hub did not remove.
    `answers_again` is called when the cluster reports again after an outage, for each kind.
    """

    def __init__(
        self,
        client: KubernetesClient,
        selector: str,
        kinds: Collection[Kind],
        changed: Callable[[str], None],
        vanished: Callable[[AttemptClaim], None],
        *,
        answers_again: Callable[[], None] = lambda: None,
    ) -> None:
        self._changed, self._vanished = changed, vanished
        self._removing: set[str] = set()
        self.claims: dict[str, AttemptClaim] = {}
        self._by_label: dict[str, str] = {}
        self._pods: defaultdict[str, dict[Key, PodView]] = defaultdict(dict)
        self._mains: dict[Key, MainView] = {}
        self.made: set[str] = set()
        """Uids of claims whose main object was there once, or must have been, since pods are there."""
        self.told: set[str] = set()
        """Uids of claims whose main object this process has seen.

        Pods come by a separate watch, and can be seen first.
        """
        ours = f"{selector},{names.ATTEMPT}"
        self._claim_copy = reflector(
            client,
            Selection(CONFIG_MAPS, labels=f"{selector},{names.COMPONENT}={CLAIM}", metadata=True),
            claim_of,
            self._on_claim,
            answers_again,
        )
        self._pod_copy = reflector(
            client, Selection(PODS, labels=ours), self._pod_view, self._on_pod, answers_again
        )
        self._main_copies = {
            kind: reflector(client, Selection(kind, labels=ours), main_view, self._on_main, answers_again)
            for kind in kinds
            if kind != POD_GROUPS
        }
        self._group_copy = reflector(
            client,
            Selection(POD_GROUPS, labels=ours, metadata=True),
            lambda found: labels_of(found).get(names.ATTEMPT),
            self._on_group,
        )
        self._has_groups = POD_GROUPS in kinds
        self._watches = [BackgroundTask(copy.run) for copy in self._copies]

    @property
    def _copies(self) -> Sequence[AnyReflector[Any]]:
        groups = (self._group_copy,) if self._has_groups else ()
        return (self._claim_copy, self._pod_copy, *self._main_copies.values(), *groups)

    def begin(self) -> None:
        """Begin to watch, where that is not done."""
        for watch in self._watches:
            watch.start()

    async def synced(self) -> None:
        """Return once all was seen. Raises `ClusterUnreachable`, or the cluster's other error about a watch."""
        await self.seen(SYNC_S)

    @property
    def trouble(self) -> MessageError | None:
        """Why the cluster cannot be asked now; None where it can."""
        return next((copy.trouble for copy in self._copies if copy.trouble is not None), None)

    async def seen(self, seconds: float | None = None) -> None:
        """Return once all was seen, however long that takes where no time is told."""
        for copy in self._copies:
            await copy.synced(seconds)

    async def refresh(self) -> None:
        """Read all claims again."""
        await self._claim_copy.refresh(SYNC_S)

    async def close(self) -> None:
        """Stop watching, until `begin` is called again: then everything is read again."""
        await asyncio.gather(*(watch.stop() for watch in self._watches))
        for copy in self._copies:
            copy.unsync()

    def pods(self, claim: AttemptClaim) -> Sequence[PodView]:
        """Return the pods of an attempt."""
        return tuple(self._pods.get(names.label_value(claim.attempt), {}).values())

    def attempts(self) -> Collection[str]:
        """Return the attempts that have claims, as labels have them."""
        return self._by_label.keys()

    def rank_of(self, namespace: str, name: str) -> tuple[str, int] | None:
        """Return the attempt, as its label has it, and the rank of a pod; None if it is not the pod of a rank."""
        pod = self._pod_copy.objects.get((namespace, name))
        return None if pod is None or pod.rank is None else (pod.attempt, pod.rank)

    def main(self, claim: AttemptClaim) -> MainView | None:
        """Return the main object of an attempt."""
        return self._mains.get((claim.namespace, claim.name))

    def has_group(self, claim: AttemptClaim) -> bool:
        """Whether the group by which an attempt's pods are bound is there, where it has one."""
        group = claim.about.group
        return not group or not self._has_groups or (claim.namespace, group) in self._group_copy.objects

    def left(self, claim: AttemptClaim) -> bool:
        """Whether something of an attempt that ends was not told to go."""
        main = self.main(claim)
        pods = self.pods(claim)
        return (main is not None and not main.leaving) or any(
            pod.leaves_at is None and not pod.over for pod in pods
        )

    def learn_claim(self, found: Mapping[str, object]) -> AttemptClaim:
        """Take in a claim as it was just written."""
        self._claim_copy.learn(dict(found))
        claim = claim_of(dict(found))
        assert claim is not None  # noqa: S101 - the cluster returns what it was given
        return claim

    def learn_made(self, kind: Kind, found: Mapping[str, object]) -> None:
        """Take in an attempt's main object or group as it was just made."""
        if kind in self._main_copies:
            self._main_copies[kind].learn(dict(found))
        elif kind == POD_GROUPS:
            self._group_copy.learn(dict(found))

    def removing(self, claim: AttemptClaim) -> None:
        """Take in that a claim is about to be deleted by this process."""
        self._removing.add(claim.uid)

    def forget(self, claim: AttemptClaim) -> None:
        """Take in that a claim was just deleted."""
        self._claim_copy.unlearn((claim.namespace, claim.name), claim.uid)

    def _on_claim(self, _key: Key, before: AttemptClaim | None, now: AttemptClaim | None) -> None:
        if before is not None and (now is None or now.uid != before.uid):
            self.claims.pop(before.attempt, None)
            self._by_label.pop(names.label_value(before.attempt), None)
            self.made.discard(before.uid)
            self.told.discard(before.uid)
            if before.uid not in self._removing:
                self._vanished(before)
            self._removing.discard(before.uid)
        if now is not None:
            self.claims[now.attempt] = now
            label = names.label_value(now.attempt)
            self._by_label[label] = now.attempt
            if (now.namespace, now.name) in self._mains:
                self.made.add(now.uid)
                self.told.add(now.uid)
            elif label in self._pods:
                self.made.add(now.uid)
        one = now or before
        if one is not None:
            self._changed(one.attempt)

    def _pod_view(self, found: Object) -> PodView | None:
        now = pod_view(found)
        if now is None:
            return None
        before = self._pods.get(now.attempt, {}).get((namespace_of(found), name_of(found)))
        return refined(now, before, time.time())

    def _on_pod(self, key: Key, before: PodView | None, now: PodView | None) -> None:
        if before is not None:
            self._pods[before.attempt].pop(key, None)
            if not self._pods[before.attempt]:
                del self._pods[before.attempt]
        if now is not None:
            self._pods[now.attempt][key] = now
        self._notify(now or before)

    def _on_main(self, key: Key, before: MainView | None, now: MainView | None) -> None:
        if now is not None:
            self._mains[key] = now
        else:
            self._mains.pop(key, None)
        one = now or before
        attempt = self._by_label.get(one.attempt) if one is not None else None
        if attempt is not None:
            self.told.add(self.claims[attempt].uid)
        self._notify(one)

    def _on_group(self, _key: Key, before: str | None, now: str | None) -> None:
        attempt = self._by_label.get(now or before or "")
        if attempt is not None:
            self._changed(attempt)

    def _notify(self, one: PodView | MainView | None) -> None:
        attempt = self._by_label.get(one.attempt) if one is not None else None
        if attempt is not None:
            self.made.add(self.claims[attempt].uid)
            self._changed(attempt)
