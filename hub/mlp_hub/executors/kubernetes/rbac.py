"""Rights of a hub in a cluster, in addition to those for its tenants, with their purposes."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.tenancy.required_rights import KEEP, LOOK, NEEDS, QUEUES, Need
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterUnreachable
from mlp_hub.kubernetes.kinds import Kind
from mlp_language.message import msg

_LOGS = Kind("v1", "Pod", "pods/log")
_JOB_STATUS = Kind("batch/v1", "Job", "jobs/status")
_RUN = {
    "get": "it was made, and the answer was lost",
    **LOOK,
    "create": "an attempt starts",
    "delete": "an attempt ends",
}
_BROUGHT = {**_RUN, "patch": "one that a member made is held, or let run"}
RIGHTS = (
    *NEEDS,
    Need(
        kinds.PODS,
        {
            "get": "probes of the network and of operators wait for theirs",
            **LOOK,
            "create": "probes of the network and of operators",
            "delete": "parameter servers of a job that has ended",
            "deletecollection": "an attempt ends",
        },
        msg("notebook servers and ranks of jobs are pods"),
    ),
    Need(
        kinds.SECRETS,
        {"create": "a job starts; nobody reads it back"},
        msg("variables and tokens of notebook servers and jobs"),
    ),
    Need(
        _JOB_STATUS,
        {"patch": "its start time is removed"},
        msg("a job made with kubectl takes other nodes when it is held again"),
    ),
    Need(kinds.CONFIG_MAPS, KEEP, msg("records of the attempts of jobs, and of the service that decides")),
    Need(kinds.EVENTS, {"list": "the cluster's warnings"}, msg("why a pod does not start")),
    Need(
        kinds.SERVICES,
        {key: _RUN[key] for key in ("get", "create")},
        msg("names by which the ranks of a job find each other"),
    ),
    Need(
        kinds.DAEMON_SETS,
        {key: KEEP[key] for key in ("list", "patch", "create", "delete")},
        msg("images that nodes have before they are needed"),
    ),
    Need(kinds.JOBS, _BROUGHT, msg("jobs of one rank, and launchers of other jobs")),
)
"""Contract: rights in every cluster, in all namespaces, since tenants come and go."""
_OPERATORS = msg("jobs of that operator")
OF_OPERATORS = (
    *(Need(kind, _BROUGHT, _OPERATORS) for kind in (kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS)),
    Need(kinds.VOLCANO_JOBS, _RUN, _OPERATORS),
    Need(
        kinds.POD_GROUPS,
        {key: _RUN[key] for key in ("get", "list", "watch", "create")},
        msg("all pods of a job are bound, or none"),
    ),
    Need(
        kinds.POD_METRICS,
        {"list": "each look at use"},
        msg("use of pods as their nodes measure it, which no job can write"),
    ),
    Need(kinds.NODE_METRICS, {"list": "each look at use"}, msg("use of processors and memory of nodes")),
    QUEUES,
)
"""Contract: rights in a cluster that serves the kind."""
LEADER = Need(
    kinds.PODS,
    {"patch": "the service that leads has a label, and others have not"},
    msg("a Service of the cluster leads to the pod that leads"),
)
"""Contract: right of a service that is a pod, in its own namespace; there it also reads pods."""
OF_HUB = (
    Need(
        kinds.PODS,
        {**LOOK, "create": "a server starts", "delete": "a server ends"},
        msg("notebook servers are pods"),
    ),
    Need(_LOGS, {"get": "its last lines"}, msg("the last output of a server that did not start")),
    Need(kinds.SECRETS, {"create": "a server starts"}, msg("variables and the token of a server")),
    Need(kinds.EVENTS, LOOK, msg("why a server does not start")),
    Need(kinds.NODES, {"list": "a server with GPUs starts"}, msg("which kinds of GPUs a server can have")),
)
"""Contract: rights of JupyterHub with its own account, in all namespaces."""
_REMOVE = {"list": "which are this hub's", "delete": "the hub was uninstalled"}
OF_CLEAN = tuple(
    Need(kind, _REMOVE, msg("what the service made outside of the release"))
    for kind in (
        kinds.NAMESPACES,
        kinds.PERSISTENT_VOLUMES,
        kinds.PRIORITY_CLASSES,
        kinds.ADMISSION_POLICIES,
        kinds.ADMISSION_BINDINGS,
        kinds.QUEUES,
    )
)
"""Contract: rights of the Job that cleans up after an uninstall."""


_SHUT = msg("pods are limited as in every team's namespace")
IN_GIVEN = (
    Need(
        kinds.NAMESPACES, {"get": "its labels are checked"}, msg("an administrator has made it as it must be")
    ),
    Need(
        kinds.PERSISTENT_VOLUME_CLAIMS,
        {"get": "its claim of all files is looked for"},
        msg("an administrator has made it as it must be"),
    ),
    *(
        Need(kind, KEEP, _SHUT)
        for kind in (
            kinds.NETWORK_POLICIES,
            kinds.SERVICE_ACCOUNTS,
            kinds.RESOURCE_QUOTAS,
            kinds.LIMIT_RANGES,
        )
    ),
    Need(
        kinds.PODS,
        {**LOOK, "deletecollection": "an attempt ends"},
        msg("ranks of jobs are pods"),
    ),
    Need(
        kinds.SECRETS, {"create": "a job starts; nobody reads it back"}, msg("variables and tokens of jobs")
    ),
    Need(kinds.CONFIG_MAPS, KEEP, msg("records of the attempts of jobs")),
    Need(kinds.EVENTS, {"list": "the cluster's warnings"}, msg("why a pod does not start")),
    Need(
        kinds.SERVICES,
        {key: _RUN[key] for key in ("get", "create")},
        msg("names by which the ranks of a job find each other"),
    ),
    *(
        Need(kind, _RUN, msg("jobs of one rank, and of operators"))
        for kind in (kinds.JOBS, kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS, kinds.VOLCANO_JOBS)
    ),
    Need(
        kinds.POD_GROUPS,
        {key: _RUN[key] for key in ("get", "list", "watch", "create")},
        msg("all pods of a job are bound, or none"),
    ),
)
"""Contract: rights of the service in each namespace of a team that an administrator made, where it has none elsewhere."""
IN_HOME = (
    Need(
        kinds.PODS,
        {"get": "which pods are of the release", "list": "which of them has the label", **LEADER.verbs},
        LEADER.purpose,
    ),
    Need(
        kinds.CONFIG_MAPS,
        {key: KEEP[key] for key in ("get", "list", "watch", "create", "patch")},
        msg("the record of the service that decides"),
    ),
)
"""Contract: rights of that service in its own namespace."""
HUB_IN_GIVEN = tuple(need for need in OF_HUB if need.kind.namespaced)
"""Contract: rights of JupyterHub in each namespace of a team that an administrator made."""


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
