"""The nodes of a cluster as the cluster tells them, kept up to date by two watches."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.description import Description, describe
from mlp_hub.executors.kubernetes.nodes.groups import NodeGroup, group_of
from mlp_hub.executors.kubernetes.nodes.requests import Use, use_of
from mlp_hub.executors.kubernetes.nodes.table import NodeTable
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, NODES, PODS, Object, labels_of, name_of
from mlp_hub.kubernetes.reflector import Key, Reflector, Selection
from mlp_hub.scheduler.nodes.states import GROUP

log = logging.getLogger(__name__)
BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Given: selector of pods that take something of a node; one that ends is told as gone."""
OPEN_S = 20.0
"""Tuning: seconds that `open` waits for the cluster's first answer: a hub that starts beside a cluster that is away starts
without nodes, and has them once it answers."""
GATHER_S = 0.02
"""Tuning: seconds after a first change in which further ones are told together: fewer cycles, for a later start."""


class ClusterNodes:
    """Nodes less what pods of others take; the hub's own pods count in its ledger. `nodes` is a view that costs nothing.

    Who was told by `on_nodes` finds all that was heard until then in it; a heartbeat of a node or a pod's new status tells
    nobody. While the cluster does not answer it stays as it was, and `trouble` says why.
    """

    def __init__(self, client: KubernetesClient, installation: Installation) -> None:
        self._at = installation
        self._table = NodeTable()
        self._nodes = Reflector[Description](
            client, Selection(NODES), self._describe, lambda key, _, now: self._node_is(key, now)
        )
        self._pods = Reflector[Use](
            client, Selection(PODS, fields=BOUND), self._use, lambda _, before, now: self._pod_is(before, now)
        )
        of_groups = Selection(CONFIG_MAPS, installation.namespace, labels=GROUP)
        self._groups = Reflector[NodeGroup](
            client, of_groups, _group, lambda key, _, now: self._group_is(key, now)
        )
        self._first_look = BackgroundTask(self._await_both)
        self._watches = (
            BackgroundTask(self._nodes.run, "watch of nodes"),
            BackgroundTask(self._pods.run, "watch of nodes' pods"),
            BackgroundTask(self._groups.run, "watch of groups of nodes"),
        )
        self._callbacks: list[Callable[[], None]] = []
        self._complete = (
            False  # both were listed; before that a node would seem to have more room than it has
        )
        self._soon: asyncio.TimerHandle | None = None

    @property
    def trouble(self) -> MessageError | None:
        """Why the cluster cannot be asked now; None where it can."""
        return self._nodes.trouble or self._pods.trouble or self._groups.trouble

    async def open(self) -> None:
        """Find all nodes, and watch their changes from then on; without an answer the list is empty."""
        if self._first_look.is_started:
            return
        for task in (self._first_look, *self._watches):
            task.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self._first_look.finish()

    async def close(self) -> None:
        """Stop watching."""
        await asyncio.gather(*(task.stop() for task in (self._first_look, *self._watches)))
        self._callbacks.clear()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes as last heard of, in the order of their names."""
        return self._table.view

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of `nodes`, on the event loop; joint changes cause one call."""
        self._callbacks.append(callback)

    def device(self, node: str) -> str | None:
        """Return the resource that pods ask a node's GPUs by, as `nvidia.com/gpu`; None where it has none."""
        found = self._nodes.objects.get(("", node))
        return None if found is None else found.device

    async def _await_both(self) -> None:
        await self._nodes.synced()
        await self._pods.synced()
        self._complete = True
        self._notify()

    def _describe(self, node: Object) -> Description:
        return describe(node, self._at.tolerations, self._at.cpu_overcommit)

    def _use(self, pod: Object) -> Use | None:
        labels = labels_of(pod)
        held = self._at.marks.items() <= labels.items() or labels.get(names.CHARGED) == self._at.name
        return None if held else use_of(pod)

    def _node_is(self, key: Key, now: Description | None) -> None:
        self._table.node_is(key[1], now)
        self._notify_soon()

    def _pod_is(self, before: Use | None, now: Use | None) -> None:
        self._table.pod_is(before, now)
        self._notify_soon()

    def _group_is(self, key: Key, now: NodeGroup | None) -> None:
        self._table.group_is(key[1], now)
        self._notify_soon()

    def _notify_soon(self) -> None:
        if self._complete and self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(GATHER_S, self._notify)

    def _notify(self) -> None:
        self._soon = None
        if self._table.renew():
            for callback in self._callbacks:
                callback()


def _group(found: Object) -> NodeGroup | None:
    try:
        return group_of(found)
    except ValueError as error:
        log.warning("the group of nodes that ConfigMap %s tells of is left out: %s", name_of(found), error)
        return None
