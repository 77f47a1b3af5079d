"""Probe whether a cluster's operators are at work: each is given a job that is held, Volcano's scheduler a pod to bind.

That the API serves their kinds says nothing of it, and where an operator runs nobody knows: its deployment may be called
anything. A job that is held makes no pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.gang.pods import GROUP, SCHEDULER
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.probes.space import LOOK_EVERY_S, namespace, pod, start
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import MPI_JOBS, POD_GROUPS, PYTORCH_JOBS, TF_JOBS, Kind, Object
from mlp_language.message import Message, msg

PATIENCE_S = 10.0
"""Tuning: seconds in which an operator has to take up a job: one that is at work takes a moment."""
VOLCANO = "Volcano's scheduler"
OPERATORS: Mapping[Kind, str] = {
    MPI_JOBS: "MPI Operator",
    TF_JOBS: "Training Operator",
    PYTORCH_JOBS: "Training Operator",
}


async def at_work(
    client: KubernetesClient, at: Installation, served: Collection[Kind], patience_s: float = PATIENCE_S
) -> Mapping[str, Message | None]:
    """Tell of each operator whose kinds are served what it fails to do; None of one that is at work. Leaves nothing behind."""
    tried = {kind: who for kind, who in OPERATORS.items() if kind in served}
    async with namespace(client, at) as space:
        asked = [(who, _takes_up(client, at, space, kind, patience_s)) for kind, who in tried.items()]
        if POD_GROUPS in served:
            asked.append((VOLCANO, _binds(client, at, space, patience_s)))
        answers = await asyncio.gather(*(asking for _, asking in asked))
    found: dict[str, Message | None] = {}
    for (who, _), answer in zip(asked, answers, strict=True):
        found[who] = found.get(who) or answer
    return found


async def _takes_up(
    client: KubernetesClient, at: Installation, space: str, kind: Kind, patience_s: float
) -> Message | None:
    """Have an operator write down that a job is held."""
    wanted = kind.named(f"held-{kind.plural}", space, spec=_held(at, kind))
    try:
        await client.create(wanted, kind)
        if await _gets_condition(client, kind, wanted, patience_s):
            return None
    except MessageError as error:
        return error.message
    return msg("nothing handled a trial {kind} within {seconds} s", kind=kind.kind, seconds=round(patience_s))


async def _binds(client: KubernetesClient, at: Installation, space: str, patience_s: float) -> Message | None:
    """Have the scheduler say something of a pod: that it has a node, or why it has none."""
    group = POD_GROUPS.named("bound", space, spec={"minMember": 1})
    bound = pod(at, space, "bound", "pass", {})
    bound["spec"]["schedulerName"] = SCHEDULER
    bound["metadata"]["annotations"] = {GROUP: "bound"}
    try:
        await client.create(group, POD_GROUPS)
        await start(client, bound)
        if await _gets_condition(client, kinds.PODS, bound, patience_s):
            return None
    except MessageError as error:
        return error.message
    return msg("it did not react to a trial pod within {seconds} s", seconds=round(patience_s))


async def _gets_condition(client: KubernetesClient, kind: Kind, wanted: Object, patience_s: float) -> bool:
    """Whether somebody writes down a condition of an object in this time."""
    end = asyncio.get_running_loop().time() + patience_s
    while True:
        found = await client.get(kind, wanted["metadata"]["name"], wanted["metadata"]["namespace"])
        if found is not None and (found.get("status") or {}).get("conditions"):
            return True
        if asyncio.get_running_loop().time() >= end:
            return False
        await asyncio.sleep(LOOK_EVERY_S)


def _held(at: Installation, kind: Kind) -> dict[str, Any]:
    names = {MPI_JOBS: "launcher", TF_JOBS: "tensorflow", PYTORCH_JOBS: "pytorch"}
    made = pod(at, "", "held", "pass", {})["spec"]
    del made["restartPolicy"]
    made["containers"][0]["name"] = names[kind]
    one = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": made}}
    policy = {"suspend": True}
    if kind == MPI_JOBS:
        return {"runPolicy": policy, "mpiReplicaSpecs": {"Launcher": one, "Worker": one}}
    replicas = "tfReplicaSpecs" if kind == TF_JOBS else "pytorchReplicaSpecs"
    return {"runPolicy": policy, replicas: {"Worker": one}}
