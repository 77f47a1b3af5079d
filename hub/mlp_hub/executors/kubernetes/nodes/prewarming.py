"""Images that nodes have before somebody waits for them: of each that is used most, a pod that only waits, on each node.

A pod in which nothing happens keeps its image on the node too: a node that runs short of disk removes images that nobody uses.
All images that run here have `python3`, so the pods need nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.nodes import TENANT
from mlp_hub.kubernetes import names, restricted
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import DAEMON_SETS, NODES, Object, name_of
from mlp_hub.kubernetes.quantities import whole

COMPONENT = "images"
"""Contract: component of the object that keeps images on nodes."""
LEAST_NODES = 2
"""Tuning: nodes below which nothing is fetched before it is used: on the only one each image is fetched once anyway."""
UNKNOWN_SIZE = 2 << 30
"""Tuning: assumed bytes of an image that no node knows: more fetches fewer images, less fills the disk."""
_WAIT = "import signal; signal.pause()"
_ANYBODY = 65534
"""Given: the user that owns nothing."""


def selector(at: Installation) -> str:
    """Return the selector of all that keeps images on nodes for this hub."""
    return f"{at.selector},{names.COMPONENT}={COMPONENT}"


def chosen(at: Installation, used: Iterable[str], nodes: Sequence[Object]) -> list[str]:
    """Return the images to be on all nodes: that of notebooks, then those that are used most, as many as there is room for."""
    if len(nodes) < LEAST_NODES:
        return []
    sizes = {
        name: int(each.get("sizeBytes", 0))
        for node in nodes
        for each in node.get("status", {}).get("images") or ()
        for name in each.get("names") or ()
    }
    disks = [
        whole(disk)
        for node in nodes
        if (disk := node.get("status", {}).get("allocatable", {}).get("ephemeral-storage"))
    ]
    room = at.prewarmed_disk * min(disks) if disks else None
    found: list[str] = []
    for image in dict.fromkeys((at.image, *used)):
        size = sizes.get(image, UNKNOWN_SIZE)
        if len(found) == at.prewarmed:
            break
        if room is not None and size > room:
            continue
        room = None if room is None else room - size
        found.append(image)
    return found


def daemon_set(at: Installation, image: str) -> Object:
    """Return what has an image fetched to each node where pods of tenants may run, and keeps it there."""
    name = f"image-{hashlib.sha256(image.encode()).hexdigest()[:12]}"
    # not with the hub's own labels: what these pods take of a node is not the hub's to give out
    labels = {names.COMPONENT: COMPONENT, "mlp-hub/image": name}
    container: dict[str, Any] = {
        "name": "image",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-IS", "-c", _WAIT],
        "resources": {
            "requests": {"cpu": "1m", "memory": "16Mi"},
            "limits": {"cpu": "100m", "memory": "64Mi"},
        },
        "securityContext": restricted.container(),
    }
    pod: Mapping[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": restricted.pod(_ANYBODY),
        # of nodes that are left to a tenant, too
        "tolerations": [{"key": TENANT, "operator": "Exists"}, *map(dict, at.tolerations)],
        "imagePullSecrets": [{"name": secret} for secret in at.pull_secrets],
        "containers": [container],
    }
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    made = DAEMON_SETS.named(name, at.namespace, spec=spec)
    made["metadata"]["labels"] = {**at.own, names.COMPONENT: COMPONENT}
    return made


async def keep(client: KubernetesClient, at: Installation, used: Iterable[str]) -> None:
    """Have the images that are used most on all nodes, and no others for that reason. The hub's own namespace is there."""
    nodes = (await client.list(NODES)).items if at.prewarmed else []
    wanted = [daemon_set(at, image) for image in chosen(at, used, nodes)]
    keeps = {name_of(each) for each in wanted}
    for each in (await client.list(DAEMON_SETS, at.namespace, labels=selector(at))).items:
        if name_of(each) not in keeps:
            await client.delete(DAEMON_SETS, name_of(each), at.namespace)
    for each in wanted:
        await client.apply(each, DAEMON_SETS)


def keeper_status(found: Object) -> tuple[str, int, int]:
    """Return the image of a keeper object, the number of nodes that have it, and the number that need it."""
    status = found.get("status") or {}
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image, int(status.get("numberReady", 0)), int(status.get("desiredNumberScheduled", 0))
