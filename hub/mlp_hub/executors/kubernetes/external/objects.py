"""The objects that people brought, and their pods: a copy of the cluster, and what is written down on them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import ExternalJob
from mlp_hub.executors.kubernetes.external.forms import FORMS
from mlp_hub.executors.kubernetes.external.views import ExternalView, maker
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.views import PodView, pod_view
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import PODS, Kind, Object
from mlp_hub.kubernetes.reflector import AnyReflector, Key, Selection, reflector


class ExternalObjects:
    """News of watches: `changed` is called with an object's uid, `ran` with an attempt that has news."""

    def __init__(
        self,
        client: KubernetesClient,
        at: Installation,
        served: Iterable[Kind],
        changed: Callable[[str, ExternalView | None, ExternalView | None], None],
        ran: Callable[[str], None],
    ) -> None:
        self._client, self._at, self._changed, self._ran = client, at, changed, ran
        self._by_uid: dict[str, ExternalView] = {}
        self._of_attempt: dict[str, str] = {}
        self._pods: defaultdict[str, dict[Key, PodView]] = defaultdict(dict)
        self._copies = {
            name: reflector(
                client,
                Selection(form.kind, labels=names.QUEUE),
                maker(form, at),
                self._on_object,
            )
            for name, form in FORMS.items()
            if form.kind in served
        }
        ours = f"{at.selector},{names.ATTEMPT},{names.BROUGHT}"
        self._pod_copy = reflector(client, Selection(PODS, labels=ours), pod_view, self._on_pod)
        self._watches = [BackgroundTask(copy.run) for copy in self._watched]

    @property
    def _watched(self) -> Sequence[AnyReflector[PodView] | AnyReflector[ExternalView]]:
        return (self._pod_copy, *self._copies.values())

    def begin(self) -> None:
        """Begin to watch, where that is not done."""
        for watch in self._watches:
            watch.start()

    async def seen(self) -> None:
        """Return once all was listed."""
        for copy in self._watched:
            await copy.synced()

    async def close(self) -> None:
        """Stop watching."""
        await asyncio.gather(*(watch.stop() for watch in self._watches))
        for copy in self._watched:
            copy.unsync()

    def all(self) -> Sequence[ExternalView]:
        """Return all objects."""
        return tuple(self._by_uid.values())

    def find(self, uid: str) -> ExternalView | None:
        """Return the object of a uid."""
        return self._by_uid.get(uid)

    def of_attempt(self, attempt: str) -> ExternalView | None:
        """Return the object that is let run as this attempt."""
        uid = self._of_attempt.get(names.label_value(attempt))
        return None if uid is None else self._by_uid.get(uid)

    def pods(self, attempt: str) -> Sequence[PodView]:
        """Return the pods of an attempt."""
        return tuple(self._pods.get(names.label_value(attempt), {}).values())

    async def get(self, what: ExternalJob) -> Object | None:
        """Return the object as it is now; None where another has its name."""
        found = await self._client.get(FORMS[what.kind].kind, what.name, what.namespace)
        return found if found is not None and found["metadata"]["uid"] == what.uid else None

    async def patch(self, what: ExternalJob, patch: Object) -> None:
        """Change an object, and know of it at once."""
        about = {**patch.get("metadata", {}), "uid": what.uid}  # of another of its name it is a conflict
        made = await self._client.patch(
            FORMS[what.kind].kind, what.name, {**patch, "metadata": about}, what.namespace
        )
        self._copies[what.kind].learn(made)

    def _on_object(self, _key: Key, before: ExternalView | None, now: ExternalView | None) -> None:
        if before is not None and (now is None or now.what.uid != before.what.uid):
            self._by_uid.pop(before.what.uid, None)
            if before.attempt is not None:
                self._of_attempt.pop(before.attempt, None)
            self._changed(before.what.uid, before, None)
            before = None
        if now is None:
            return
        self._by_uid[now.what.uid] = now
        if before is not None and before.attempt not in (None, now.attempt):
            self._of_attempt.pop(before.attempt, None)
        if now.attempt is not None:
            self._of_attempt[now.attempt] = now.what.uid
        self._changed(now.what.uid, before, now)

    def _on_pod(self, key: Key, before: PodView | None, now: PodView | None) -> None:
        if before is not None and (now is None or now.attempt != before.attempt):
            pods = self._pods[before.attempt]
            pods.pop(key, None)
            if not pods:
                del self._pods[before.attempt]
        if now is not None:
            self._pods[now.attempt][key] = now
        pod = now or before
        if pod is not None:
            self._ran(pod.attempt)
