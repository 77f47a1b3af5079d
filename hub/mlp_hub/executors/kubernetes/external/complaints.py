"""Why the cluster makes no pods of an object that somebody brought: of events about it and its launcher, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime

from mlp_hub.executors.kubernetes import no_pods
from mlp_hub.executors.kubernetes.external.views import ExternalView
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import EVENTS, JOBS, Object


async def ask(client: KubernetesClient, view: ExternalView, since: float, now: float) -> Complaint | None:
    """Return what the cluster has said against an object since its attempt began."""
    found = await client.list(EVENTS, view.namespace, fields="type=Warning")
    begun = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    mine = [each for each in found.items if is_about(view, each) and no_pods.when(each) >= begun]
    return no_pods.complaint_of(mine, now - since)


def is_about(view: ExternalView, event: Object) -> bool:
    """Whether an event is about an object or its launcher; that pods of an earlier attempt were refused is nothing."""
    if f"carries no label {names.TENANT}" in str(event.get("message") or ""):
        return False
    of = event.get("involvedObject") or {}
    if of.get("uid") == view.what.uid:
        return True
    return of.get("kind") == JOBS.kind and of.get("name") == launcher_of(view)


def launcher_of(view: ExternalView) -> str:
    """Return the name of the Job by which an MPIJob's processes are started. Nobody may bring one of such a name."""
    return f"{view.name}-launcher"
