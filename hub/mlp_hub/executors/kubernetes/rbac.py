"""Rights of a hub in a cluster, in addition to those for its tenants, with their purposes."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.tenancy.required_rights import KEEP, NEEDS, QUEUES, Need
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterUnreachable
from mlp_hub.kubernetes.kinds import Kind
from mlp_language.message import msg

LOOK = ("get", "list", "watch")
_LOGS = Kind("v1", "Pod", "pods/log")
_JOB_STATUS = Kind("batch/v1", "Job", "jobs/status")
RIGHTS = (
    *NEEDS,
    Need(kinds.PODS, (*KEEP, "deletecollection"), msg("notebook servers and ranks of jobs are pods")),
    Need(_LOGS, ("get",), msg("the last output of a server that did not start")),
    Need(kinds.SECRETS, ("create",), msg("variables and tokens of notebook servers and jobs")),
    Need(_JOB_STATUS, ("patch",), msg("a job made with kubectl takes other nodes when it is held again")),
    Need(kinds.CONFIG_MAPS, KEEP, msg("records of the attempts of jobs, and of the service that decides")),
    Need(kinds.EVENTS, LOOK, msg("why a pod does not start")),
    Need(kinds.SERVICES, KEEP, msg("names by which the ranks of a job find each other")),
    Need(kinds.DAEMON_SETS, KEEP, msg("images that nodes have before they are needed")),
    Need(kinds.JOBS, KEEP, msg("jobs of one rank, and launchers of other jobs")),
)
"""Contract: rights in every cluster, in all namespaces, since tenants come and go."""
_OPERATORS = msg("jobs of that operator")
OF_OPERATORS = (
    *(
        Need(kind, KEEP, _OPERATORS)
        for kind in (kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS, kinds.VOLCANO_JOBS)
    ),
    Need(kinds.POD_GROUPS, KEEP, msg("all pods of a job are bound, or none")),
    Need(kinds.POD_METRICS, ("list",), msg("use of pods as their nodes measure it, which no job can write")),
    Need(kinds.NODE_METRICS, ("list",), msg("use of processors and memory of nodes")),
    QUEUES,
)
"""Contract: rights in a cluster that serves the kind."""


async def served(client: KubernetesClient) -> list[Need]:
    """Return those of operators, and of measures, that the cluster has."""
    return [need for need in OF_OPERATORS if await _serves(client, need.kind)]


async def _serves(client: KubernetesClient, kind: Kind) -> bool:
    try:
        return await client.serves(kind)
    except ClusterUnreachable:
        if kind not in (kinds.POD_METRICS, kinds.NODE_METRICS):
            raise
        return False  # another program answers for these, and it is down; the cluster itself may be well


def row(need: Need) -> str:
    """Write a right as a row of the documentation."""
    return f"| `{need.kind.full_name}` | {', '.join(need.verbs)} | {need.purpose} |"
