"""GPUs of a notebook server: the resource by which its pod asks for them, and the nodes that have the chosen kind; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.description import Description, describe
from mlp_hub.executors.kubernetes.nodes.devices import OWN_KIND, label_of
from mlp_hub.kubernetes.kinds import Object
from mlp_language.message import Message, msg


class NoGpus(MessageError):  # noqa: N818 - says what is so
    """No node has such GPUs; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs as a pod asks for them. `terms` select the nodes that have the right kind; none: all that have the device."""

    device: str
    count: int
    terms: tuple[Mapping[str, Any], ...] = ()


def gpus_of(nodes: Iterable[Object], count: int, kind: str, at: Installation) -> Gpus:
    """Return GPUs of a kind, or of any for an empty kind, by the cluster's nodes; raise `NoGpus`."""
    known = [describe(node, at.tolerations) for node in nodes]
    there = [node for node in known if node.device is not None]
    right = [node for node in there if not kind or node.kind == kind]
    amounts: Counter[str] = Counter()
    for node in right:
        assert node.device is not None  # noqa: S101 - chosen so
        amounts[node.device] += 1 + dict(node.allocatable.devices).get(node.device, 0)
    if not amounts:
        raise NoGpus(_none(kind, {node.kind or "?" for node in there}))
    device = max(amounts, key=lambda name: (amounts[name], name))
    terms = _terms(device, (node for node in right if node.device == device)) if kind else ()
    return Gpus(device, count, terms)


def _terms(device: str, nodes: Iterable[Description]) -> tuple[Mapping[str, Any], ...]:
    """Return terms that select the nodes of a kind by the labels that tell it; none where the device itself does."""
    values: dict[str, set[str]] = {}
    for node in nodes:
        label = label_of(device, node.labels)
        if label is None:
            return ()
        values.setdefault(label[0], set()).add(label[1])
    own = {"key": OWN_KIND, "operator": "DoesNotExist"}  # where it is there, it counts and no other label
    return tuple(
        {
            "matchExpressions": [
                {"key": name, "operator": "In", "values": sorted(found)},
                *([own] if name != OWN_KIND else []),
            ]
        }
        for name, found in sorted(values.items())
    )


def _none(kind: str, kinds: Iterable[str]) -> Message:
    there = ", ".join(sorted(kinds))
    if kind and there:
        return msg(
            "no node of the cluster has GPUs of the kind {kind}; available: {there}", kind=kind, there=there
        )
    return msg("no node of the cluster has GPUs; start without GPUs")
