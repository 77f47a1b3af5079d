"""A namespace for one probe, and pods in it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.namespaces import SECURITY
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError
from mlp_hub.kubernetes.kinds import Object
from mlp_language.message import msg

LOOK_EVERY_S = 0.3
"""Tuning: seconds between two looks at a pod."""
ROLE = "mlp-hub/probe"
"""Contract: label with the purpose of a probe's pod."""
_HOPELESS = frozenset({"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerError"})
"""Given: the cluster's words for a container that it cannot make."""


@contextlib.asynccontextmanager
async def namespace(client: KubernetesClient, at: Installation) -> AsyncIterator[str]:
    """Have a namespace, and nothing of it afterwards."""
    name = names.dns_name(f"{at.name}-probe-{uuid.uuid4().hex[:8]}")
    made = kinds.NAMESPACES.named(name)
    made["metadata"]["labels"] = {**at.own, **SECURITY, names.COMPONENT: "probe"}
    try:
        await client.create(made, kinds.NAMESPACES)
        yield name
    finally:
        await client.delete(kinds.NAMESPACES, name)


def pod(at: Installation, space: str, role: str, program: str, env: Mapping[str, str]) -> Object:
    """Return a pod that runs a program of Python, fit for a restricted namespace."""
    container = {
        "name": "probe",
        "image": at.image,
        "imagePullPolicy": at.pull_policy,
        "command": ["python3", "-c", program],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "tolerations": [dict(each) for each in at.tolerations],
    }
    made = kinds.PODS.named(role, space, spec=spec)
    made["metadata"]["labels"] = {**at.own, ROLE: role}
    return made


async def start(client: KubernetesClient, wanted: Object) -> None:
    """Create a pod, once the cluster has made its namespace's account."""
    while True:
        try:
            await client.create(wanted, kinds.PODS)
        except ForbiddenError as error:
            if "serviceaccount" not in error.said:
                raise
            await asyncio.sleep(LOOK_EVERY_S)
        else:
            return


async def until(client: KubernetesClient, space: str, name: str, *phases: str) -> Object:
    """Return a pod once it is in one of these phases. Raises `Unavailable` where it will not run."""
    while True:
        found = await client.get(kinds.PODS, name, space)
        if found is not None and found.get("status", {}).get("phase") in phases:
            return found
        if found is not None and (why := _never(found)):
            raise Unavailable(
                msg(
                    "a pod of image {image} does not run: {why}",
                    image=found["spec"]["containers"][0]["image"],
                    why=why,
                )
            )
        await asyncio.sleep(LOOK_EVERY_S)


def _never(found: Object) -> str:
    """Say why a pod will not run; nothing where it may."""
    for each in found.get("status", {}).get("containerStatuses") or ():
        waiting = each["state"].get("waiting") or {}
        if waiting.get("reason") in _HOPELESS:
            return str(waiting.get("message") or waiting["reason"])
    return ""
