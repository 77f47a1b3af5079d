"""Probe whether the cluster's network enforces network policies: two pods call a third, one of them under a policy that forbids it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.namespaces import SECURITY
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError
from mlp_hub.kubernetes.kinds import Object
from mlp_language.message import msg

PORT = 8080
"""Given: port at which the third pod listens."""
LOOK_EVERY_S = 0.3
"""Tuning: seconds between two looks at a pod."""
_HOPELESS = frozenset({"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerError"})
"""Given: the cluster's words for a container that it cannot make."""
_ROLE = "mlp-hub/probe"
_LISTEN = f"import socket as s; l = s.create_server(('', {PORT}))\nwhile True: l.accept()[0].close()"
_CALL = """
import os, socket, sys, time
came = False
for _ in range(10):
    try:
        socket.create_connection((os.environ["TARGET"], int(os.environ["PORT"])), 2).close()
        came = True
    except OSError:
        came = False
    if came == (os.environ["HOPE"] == "reach"):
        break
    time.sleep(1)
sys.exit(0 if came else 3)
"""
"""Given: program of who calls. Policies take a moment to hold, and so does a way to open: it goes on until what is hoped for."""


class Enforcement(StrEnum):
    """What came of it."""

    ENFORCED = "enforced"
    NOT_ENFORCED = "not enforced"
    UNKNOWN = "unknown"  # pods do not reach each other where nothing forbids it


async def enforcement(client: KubernetesClient, at: Installation, patience_s: float = 120.0) -> Enforcement:
    """Tell whether policies are enforced; leaves nothing behind. Raises `Unavailable` where its pods do not run in time."""
    namespace = names.dns_name(f"{at.name}-probe-{uuid.uuid4().hex[:8]}")
    made = kinds.NAMESPACES.named(namespace)
    made["metadata"]["labels"] = {**at.own, **SECURITY, names.COMPONENT: "probe"}
    try:
        await client.create(made, kinds.NAMESPACES)
        async with asyncio.timeout(patience_s):
            return await _probe(client, at, namespace)
    except TimeoutError:
        raise Unavailable(
            msg(
                "pods of image {image} did not run within {seconds} s, so nobody knows whether network policies are enforced",
                image=at.image,
                seconds=round(patience_s),
            )
        ) from None
    finally:
        await client.delete(kinds.NAMESPACES, namespace)


async def _probe(client: KubernetesClient, at: Installation, namespace: str) -> Enforcement:
    closed = {"podSelector": {"matchLabels": {_ROLE: "closed"}}, "policyTypes": ["Egress"], "egress": []}
    policy = kinds.NETWORK_POLICIES.named("closed", namespace, spec=closed)
    await client.apply(policy, kinds.NETWORK_POLICIES)
    await _start(client, _pod(at, namespace, "target", _LISTEN, {}))
    target = await _until(client, namespace, "target", "Running")
    to = {"TARGET": target["status"]["podIP"], "PORT": str(PORT)}
    for role, hope in (("open", "reach"), ("closed", "fail")):
        await _start(client, _pod(at, namespace, role, _CALL, to | {"HOPE": hope}))
    came = {
        role: (await _until(client, namespace, role, "Succeeded", "Failed"))["status"]["phase"] == "Succeeded"
        for role in ("open", "closed")
    }
    if not came["open"]:
        return Enforcement.UNKNOWN
    return Enforcement.NOT_ENFORCED if came["closed"] else Enforcement.ENFORCED


def _pod(at: Installation, namespace: str, role: str, program: str, env: Mapping[str, str]) -> Object:
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
    made = kinds.PODS.named(role, namespace, spec=spec)
    made["metadata"]["labels"] = {**at.own, _ROLE: role}
    return made


async def _start(client: KubernetesClient, pod: Object) -> None:
    while True:
        try:
            await client.create(pod, kinds.PODS)
        except ForbiddenError as error:
            if "serviceaccount" not in error.said:
                raise
            await asyncio.sleep(LOOK_EVERY_S)  # the cluster has not made the namespace's account yet
        else:
            return


async def _until(client: KubernetesClient, namespace: str, name: str, *phases: str) -> Object:
    while True:
        found = await client.get(kinds.PODS, name, namespace)
        if found is not None and found.get("status", {}).get("phase") in phases:
            return found
        if found is not None and (why := _never(found)):
            raise Unavailable(
                msg(
                    "a pod of image {image} does not run, so nobody knows whether network policies are enforced: {why}",
                    image=found["spec"]["containers"][0]["image"],
                    why=why,
                )
            )
        await asyncio.sleep(LOOK_EVERY_S)


def _never(pod: Object) -> str:
    """Say why a pod will not run; nothing where it may."""
    for each in pod.get("status", {}).get("containerStatuses") or ():
        waiting = each["state"].get("waiting") or {}
        if waiting.get("reason") in _HOPELESS:
            return str(waiting.get("message") or waiting["reason"])
    return ""
