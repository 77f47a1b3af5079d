"""The nodes as an executor asks for them that places ranks there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from mlp_hub.executors.base import LaunchSpec, check_placement
from mlp_hub.executors.nodes import NodeInfo


class PlacedNodes:
    """Which of the nodes of a placement are there, and answer, and as what each gives out its GPUs.

    `view` is a new one whenever it tells something else.
    """

    def __init__(
        self,
        view: Callable[[], Sequence[NodeInfo]],
        device: Callable[[str], str | None],
        *,
        chosen: bool = True,
    ) -> None:
        self._view, self._device = view, device
        self._chosen = chosen  # else the cluster chooses nodes that this process cannot read
        self._known: set[str] = set()
        self._seen: Sequence[NodeInfo] | None = None
        self._answering: AbstractSet[str] = frozenset()

    def gone(self, spec: LaunchSpec) -> AbstractSet[str]:
        """Return the nodes of a placement that were there once; raises `CannotStart` for one that never was."""
        there = {node.name for node in self._view()}
        gone = set(spec.placement) & self._known - there
        self._known |= there
        if not gone:
            check_placement(spec, there)
        return gone

    def silent(self, names: Iterable[str]) -> AbstractSet[str]:
        """Return those of these nodes that are not there, or do not answer."""
        view = self._view()
        if not self._chosen:
            return frozenset()
        if view is not self._seen:
            self._seen, self._answering = view, frozenset(node.name for node in view if node.ready)
        return frozenset(names) - self._answering - {""}

    def devices(self, spec: LaunchSpec) -> AbstractSet[str]:
        """Return the resources that the GPUs of a placement are."""
        return {device for node in spec.placement if (device := self._device(node)) is not None}
