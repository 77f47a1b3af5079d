"""The label by which a Service of the cluster finds the service that leads, on its own pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import PODS, Object, name_of
from mlp_hub.kubernetes.names import COMPONENT, INSTANCE

LEADS = "mlp-hub/leads"
"""Contract: label of the pod whose service leads, with the value `true`."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Contract: of an upgrade's old pods the cluster ends the one first that has the lower one; so the lead changes once."""


class LeaderLabel:
    """The label on the pods of one release. `pod` is NAMESPACE/NAME of this process's own.

    A service that was killed or frozen leaves its label behind. So the one that leads removes it from the others.
    """

    def __init__(self, client: KubernetesClient, pod: str) -> None:
        self._client = client
        self._namespace, _, self._name = pod.partition("/")
        self._of: Mapping[str, str] | None = None

    async def take(self) -> None:
        """Have the label on this pod and on no other; two requests where that is so, one of them once only."""
        labelled = {name_of(one) for one in await self._labelled()}
        if self._name not in labelled:
            await self._put(self._name, "true")
        for other in labelled - {self._name}:
            await self._put(other, None)

    async def leave(self) -> None:
        """Take it off this pod."""
        await self._put(self._name, None)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def _labelled(self) -> list[Object]:
        if self._of is None:
            own = await self._client.get(PODS, self._name, self._namespace)
            labels = {} if own is None else own["metadata"].get("labels", {})
            self._of = {key: labels[key] for key in (INSTANCE, COMPONENT) if key in labels}
        chosen = ",".join(f"{key}={value}" for key, value in {**self._of, LEADS: "true"}.items())
        return list((await self._client.list(PODS, self._namespace, labels=chosen, metadata=True)).items)

    async def _put(self, name: str, value: str | None) -> None:
        cost = None if value is None else "1"
        metadata = {"labels": {LEADS: value}, "annotations": {DELETION_COST: cost}}
        await self._client.patch(PODS, name, {"metadata": metadata}, self._namespace)
