"""Probe of the network with pods: whether policies hold, whether a tenant's pods reach the hub, and the hub them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.kubernetes.installation import NOTEBOOK_PORT, Installation
from mlp_hub.executors.kubernetes.probes.space import ROLE, namespace, pod, start, until
from mlp_hub.executors.kubernetes.tenancy.objects.network import policies
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import Object
from mlp_language.message import msg

PORT = 8080
"""Given: port at which the third pod listens."""
CALL_S = 12.0
"""Tuning: seconds in which the hub has to come through to a pod: policies take a moment to hold."""
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
"""Given: program of the calling pod; it continues until the expected result or its last try.

Policies take a moment to take effect, and so does a way to open.
"""
_MEMBER = f"""
import json, os, socket, threading, time
called = threading.Event()
door = socket.create_server(("", {NOTEBOOK_PORT}))
def listen():
    while True:
        door.accept()[0].close()
        called.set()
threading.Thread(target=listen, daemon=True).start()
found = {{}}
for _ in range(3):
    for host, port in json.loads(os.environ["TARGETS"]):
        if found.get(f"{{host}} {{port}}") in ("answers", "closed"):
            continue
        try:
            socket.create_connection((host, port), 2).close()
            found[f"{{host}} {{port}}"] = "answers"
        except ConnectionRefusedError:
            found[f"{{host}} {{port}}"] = "closed"
        except OSError as error:
            found[f"{{host}} {{port}}"] = str(error)
    if all(each in ("answers", "closed") for each in found.values()):
        break
    time.sleep(1)
called.wait({CALL_S + 3})
open("/dev/termination-log", "w").write(json.dumps(found))
"""
"""Given: program of a pod as tenants have them, under their policies: it listens as a notebook server does, and calls the hub."""


class Enforcement(StrEnum):
    """Result of a test of policies."""

    ENFORCED = "enforced"
    NOT_ENFORCED = "not enforced"
    UNKNOWN = "unknown"  # pods do not reach each other where nothing forbids it


class CallResult(StrEnum):
    """Result of a pod's call."""

    ANSWERS = "answers"
    CLOSED = "closed"  # the host is reached, and nothing listens at the port
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Reached:
    """Connections between a pod as tenants have them and the hub, by address.

    `inward`: the hub reaches the pod.
    """

    outward: Mapping[tuple[str, int], CallResult] = field(default_factory=dict)
    inward: bool = False


async def enforcement(client: KubernetesClient, at: Installation, patience_s: float = 120.0) -> Enforcement:
    """Tell whether policies are enforced; leaves nothing behind. Raises `Unavailable` where its pods do not run in time."""
    async with _in_time(at, patience_s), namespace(client, at) as space:
        return await _enforced(client, at, space)


async def reached(client: KubernetesClient, at: Installation, patience_s: float = 120.0) -> Reached:
    """Tell what is reached between tenants' pods and this process's host; leaves nothing behind. Raises `Unavailable` likewise."""
    async with _in_time(at, patience_s), namespace(client, at) as space:
        for each in _policies_of_tenants(at, space):
            await client.apply(each, kinds.NETWORK_POLICIES)
        places = [each for each in (at.hub, at.service, at.data) if each is not None]
        await start(client, pod(at, space, "member", _MEMBER, {"TARGETS": json.dumps(places)}))
        member = await until(client, space, "member", "Running")
        inward = await _comes_through(member["status"]["podIP"], NOTEBOOK_PORT)
        ended = await until(client, space, "member", "Succeeded", "Failed")
        return Reached(_outward(places, ended), inward)


@contextlib.asynccontextmanager
async def _in_time(at: Installation, patience_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(patience_s):
            yield
    except TimeoutError:
        raise Unavailable(
            msg(
                "pods of image {image} did not run within {seconds} s",
                image=at.image,
                seconds=round(patience_s),
            )
        ) from None


async def _enforced(client: KubernetesClient, at: Installation, space: str) -> Enforcement:
    closed = {"podSelector": {"matchLabels": {ROLE: "closed"}}, "policyTypes": ["Egress"], "egress": []}
    policy = kinds.NETWORK_POLICIES.named("closed", space, spec=closed)
    await client.apply(policy, kinds.NETWORK_POLICIES)
    await start(client, pod(at, space, "target", _LISTEN, {}))
    target = await until(client, space, "target", "Running")
    to = {"TARGET": target["status"]["podIP"], "PORT": str(PORT)}
    for role, hope in (("open", "reach"), ("closed", "fail")):
        await start(client, pod(at, space, role, _CALL, to | {"HOPE": hope}))
    came = {
        role: (await until(client, space, role, "Succeeded", "Failed"))["status"]["phase"] == "Succeeded"
        for role in ("open", "closed")
    }
    if not came["open"]:
        return Enforcement.UNKNOWN
    return Enforcement.NOT_ENFORCED if came["closed"] else Enforcement.ENFORCED


def _policies_of_tenants(at: Installation, space: str) -> Sequence[Object]:
    """Return the policies of every tenant's pods, in this namespace; the tenants' keeper does not know them."""
    found = []
    for kind, each in policies(at, "probe"):
        if not each["spec"]["podSelector"]:
            one = kind.named(each["metadata"]["name"], space, spec=each["spec"])
            one["metadata"]["labels"] = {**at.own, names.COMPONENT: "probe"}
            found.append(one)
    return found


async def _comes_through(host: str, port: int) -> bool:
    end = asyncio.get_running_loop().time() + CALL_S
    while asyncio.get_running_loop().time() < end:
        with contextlib.suppress(OSError):
            async with asyncio.timeout(2.0):
                _, writer = await asyncio.open_connection(host, port)
                writer.close()
                return True
        await asyncio.sleep(0.3)
    return False


def _outward(places: Sequence[tuple[str, int]], ended: Object) -> Mapping[tuple[str, int], CallResult]:
    state = ended["status"]["containerStatuses"][0]["state"]
    try:
        report = json.loads((state.get("terminated") or {}).get("message") or "{}")
    except ValueError:
        report = {}
    said = {place: report.get(f"{place[0]} {place[1]}") for place in places}
    return {
        place: CallResult(text) if text in set(CallResult) else CallResult.SILENT
        for place, text in said.items()
    }
