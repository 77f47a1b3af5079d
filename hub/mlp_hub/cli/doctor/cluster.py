"""The doctor's looks at the cluster where notebooks and jobs are pods, and `up`'s."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from mlp_hub import in_cluster
from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.errors import MachineFailure
from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import NOTEBOOK_PORT
from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.executors.kubernetes.nodes.faults import conditions_of
from mlp_hub.executors.kubernetes.operators import discover
from mlp_hub.executors.kubernetes.probes.operators import at_work
from mlp_hub.executors.kubernetes.probes.policies import (
    CallResult,
    Enforcement,
    Reached,
    enforcement,
    reached,
)
from mlp_hub.executors.kubernetes.rbac import OF_HUB, RIGHTS, served
from mlp_hub.executors.kubernetes.tenancy.policies import admission_check
from mlp_hub.executors.kubernetes.tenancy.required_rights import Need, lacking
from mlp_hub.executors.nodes import ConditionKind
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable
from mlp_hub.kubernetes.kinds import Object, labels_of, name_of
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.unix_sockets import url_of
from mlp_language.message import msg
from mlp_language.render import here, render, say

T = TypeVar("T")
OLDEST = (1, 30)
"""Given: the first version whose admission policies are there without a switch."""
PROBE_S = 60.0
"""Tuning: seconds in which the pods that try the network have to run."""
LISTENS_S = 2.0
"""Tuning: seconds until nobody counts as listening."""
_ADMINISTRATOR = "docs/how-to/kubernetes.md"


def describe(settings: Settings) -> str:
    """Say which cluster there is; raise `MachineFailure` where there is none."""

    async def ask(client: KubernetesClient) -> str:
        found = await client.version()
        return say("Kubernetes {version} at {host}", version=found, host=client.host)

    try:
        return asyncio.run(_with_client(settings, ask))
    except (SettingsError, MessageError) as error:
        raise MachineFailure(
            say("Notebooks and jobs should be pods, but {error}.", error=str(error)),
            say("Fix that, or run them on this machine: MLP_EXECUTOR=local"),
        ) from error


def identify(settings: Settings) -> tuple[str, str]:
    """Return what the cluster is known by, empty where it does not say, and its address."""

    async def ask(client: KubernetesClient) -> tuple[str, str]:
        with contextlib.suppress(MessageError):
            found = await client.get(kinds.NAMESPACES, "kube-system")
            return str((found or {}).get("metadata", {}).get("uid", "")), client.host
        return "", client.host

    return asyncio.run(_with_client(settings, ask))


def cluster(settings: Settings) -> list[Check]:
    """Tell what works of the cluster and what not."""
    try:
        return asyncio.run(_with_client(settings, lambda client: _look(settings, client)))
    except (SettingsError, MessageError) as error:
        return [
            Check("cluster", FAIL, str(error), say("See {page}.", page=_ADMINISTRATOR)),
        ]


def cluster_of_pod(settings: Settings) -> list[Check]:
    """Tell of the cluster what a pod of the hub can find out: rights, walls of the teams' namespaces, and its network."""
    try:
        return asyncio.run(_with_client(settings, lambda client: _look_from_pod(settings, client)))
    except (SettingsError, MessageError) as error:
        return [Check("cluster", FAIL, str(error), say("See {page}.", page=_ADMINISTRATOR))]


async def _look_from_pod(settings: Settings, client: KubernetesClient) -> list[Check]:
    found = [await _version(client)]
    if settings.kubernetes_namespaces:
        text = say("the network was not tested: that needs a namespace that the hub makes")
        return [
            *found,
            Check("network", WARN, text, say("Test it with an account that may make one: make doctor")),
        ]
    found += await _rights(client, await served(client))
    return [*found, *await _walls(settings, client), await _network(settings, client)]


async def _with_client(settings: Settings, ask: Callable[[KubernetesClient], Awaitable[T]]) -> T:
    client = await in_cluster.connect(settings)
    try:
        return await ask(client)
    finally:
        await client.close()


async def _look(settings: Settings, client: KubernetesClient) -> list[Check]:
    found = [await _version(client), *await _rights(client, await served(client))]
    found += await _operators(settings, client)
    nodes = (await client.list(kinds.NODES)).items
    found += [_nodes(nodes), _files(settings), _image(settings, nodes), *await _prewarmed(settings, client)]
    found += await _gpu_metrics(settings, client)
    found += await _walls(settings, client)
    return [*found, *await asyncio.gather(_network(settings, client), _address(settings, client))]


async def _version(client: KubernetesClient) -> Check:
    version = await client.version()
    text = say("Kubernetes {version} at {host}", version=version, host=client.host)
    numbers = tuple(int(part) for part in version.lstrip("v").split(".")[:2])
    if numbers < OLDEST:
        least = ".".join(map(str, OLDEST))
        return Check("cluster", WARN, text, say("Versions before {least} are not supported.", least=least))
    return Check("cluster", OK, text)


async def _gpu_metrics(settings: Settings, client: KubernetesClient) -> list[Check]:
    """Tell whether the site's Prometheus measures the work of GPUs; nothing where none is named."""
    service = settings.kubernetes_gpu_metrics
    if not service:
        return []
    prefix = f"{settings.kubernetes_name}-"
    try:
        found = await GpuMetrics(client, service, settings.kubernetes_gpu_metrics_job, prefix).ask()
    except (ClusterError, ClusterUnreachable, TimeoutError, ValueError) as error:
        remedy = say(
            "Check MLP_KUBERNETES_GPU_METRICS, and give the hub's account get on services/proxy there. Until then the work of GPUs is the job's own report."
        )
        text = say("{place}: {error}", place=service, error=str(error) or say("no answer"))
        return [Check("gpu metrics", FAIL, text, remedy)]
    if not found:
        remedy = say(
            "Check MLP_KUBERNETES_GPU_METRICS_JOB, and that the exporter knows pods. Without that the work of GPUs is the job's own report."
        )
        text = say("{place} has no GPU of a pod that the exporter of DCGM measures", place=service)
        return [Check("gpu metrics", WARN, text, remedy)]
    return [Check("gpu metrics", OK, say("{place} measures GPUs of {n} pods", place=service, n=len(found)))]


async def _rights(client: KubernetesClient, operators: Sequence[Need]) -> list[Check]:
    found = await lacking(client, [*RIGHTS, *OF_HUB, *operators])
    if not found:
        return [Check("rights", OK, say("the hub has all rights that it needs"))]
    remedy = say("Give its account this verb in a ClusterRole: see {page}.", page=_ADMINISTRATOR)
    return [Check("rights", FAIL, render(each, here()), remedy) for each in found]


async def _operators(settings: Settings, client: KubernetesClient) -> list[Check]:
    """Tell which way each runtime takes, and whether who is to go it is at work."""
    ways = await discover(client)
    found = [Check("operators", OK, render(each, here())) for each in ways.explain()]
    try:
        tried = await at_work(client, in_cluster.installation_of(settings), ways.served)
    except MessageError as error:
        why = render(error.message, here())
        unknown = say("whether the operators work is not known: {why}", why=why)
        return [*found, Check("operators", WARN, unknown, say("See {page}.", page=_ADMINISTRATOR))]
    for who, fails in tried.items():
        if fails is None:
            found.append(Check("operators", OK, say("{who} works: tested", who=who)))
        else:
            text = say("{who} does not work: {why}", who=who, why=render(fails, here()))
            remedy = say("Jobs that need it do not start: check its pods and their log.")
            found.append(Check("operators", FAIL, text, remedy))
    return found


def _nodes(nodes: Sequence[Object]) -> Check:
    ready = [
        node
        for node in nodes
        if all(each.kind is not ConditionKind.NOT_READY for each in conditions_of(node))
    ]
    text = say("{ready} of {all} nodes are ready", ready=len(ready), all=len(nodes))
    return Check("nodes", OK if ready else FAIL, text, say("Without a node no pod starts."))


def _files(settings: Settings) -> Check:
    kind = next(iter(settings.volume))
    text = say("{kind} volume, here at {path}", kind=kind, path=str(settings.files_dir))
    if kind == "hostPath":
        return Check(
            "volume",
            WARN,
            say("{text}: a directory of each node", text=text),
            say(
                "This is right only if this machine is the cluster's only node. Otherwise name a shared volume: MLP_KUBERNETES_VOLUME"
            ),
        )
    if not settings.files_dir.is_mount():
        return Check(
            "volume",
            WARN,
            say("{text}, where nothing is mounted", text=text),
            say("Mount the volume there, or set its place: MLP_KUBERNETES_FILES"),
        )
    return Check("volume", OK, text)


def _image(settings: Settings, nodes: Sequence[Object]) -> Check:
    image = settings.kubernetes_image
    held = {
        name
        for node in nodes
        for each in node["status"].get("images") or ()
        for name in each.get("names") or ()
    }
    if any(name == image or name.endswith(f"/{image}") for name in held):
        return Check("image", OK, say("{image} is on a node", image=image))
    return Check(
        "image",
        WARN,
        say("{image} is not on any node yet, as far as the nodes report", image=image),
        say(
            "It is fetched when the first notebook starts. If this image does not exist, name another one: MLP_KUBERNETES_IMAGE. In the cluster of `make cluster`: make cluster-images"
        ),
    )


async def _prewarmed(settings: Settings, client: KubernetesClient) -> list[Check]:
    """Return the images that the nodes fetch in advance, and the number of nodes that have them."""
    at = in_cluster.installation_of(settings)
    kept = await client.list(kinds.DAEMON_SETS, at.namespace, labels=prewarming.selector(at))
    checks = []
    for image, ready, all_nodes in map(prewarming.keeper_status, kept.items):
        text = say("{image} is on {ready} of {all} nodes", image=image, ready=ready, all=all_nodes)
        if ready == all_nodes:
            checks.append(Check("prewarmed", OK, text))
        else:
            hint = say(
                "It is being fetched there; the pods of its DaemonSet in {space} have details.",
                space=at.namespace,
            )
            checks.append(Check("prewarmed", WARN, text, hint))
    return checks


async def _walls(settings: Settings, client: KubernetesClient) -> list[Check]:
    """Have the API judge a pod that no tenant may have, in a tenant's namespace; nothing is stored."""
    ours = (await client.list(kinds.NAMESPACES, labels=in_cluster.installation_of(settings).selector)).items
    spaces = [name_of(each) for each in ours if names.TENANT in labels_of(each)]
    if not spaces:
        return []  # nobody has started anything yet
    if await admission_check.holds(client, spaces[0]):
        return [Check("walls", OK, say("{space} refuses pods that the hub did not make", space=spaces[0]))]
    return [
        Check(
            "walls",
            FAIL,
            say("{space} would accept a pod that the hub did not make", space=spaces[0]),
            say("The cluster's API server must have the admission plugin ValidatingAdmissionPolicy."),
        )
    ]


_MEANS = {
    Enforcement.ENFORCED: (OK, msg("the network enforces policies")),
    Enforcement.NOT_ENFORCED: (WARN, msg("the network enforces no policies: teams' pods reach each other")),
    Enforcement.UNKNOWN: (
        WARN,
        msg(
            "whether the network enforces policies is not known: pods do not reach each other even without policies"
        ),
    ),
}


async def _network(settings: Settings, client: KubernetesClient) -> Check:
    """Try with pods whether policies hold; they leave nothing behind."""
    remedy = say("This needs a network that enforces NetworkPolicy, such as Calico, Cilium or Antrea.")
    try:
        found = await enforcement(client, in_cluster.installation_of(settings), PROBE_S)
    except MessageError as error:
        text = say(
            "whether the network enforces policies is not known: {why}", why=render(error.message, here())
        )
        return Check("network", WARN, text, remedy)
    status, means = _MEANS[found]
    return Check("network", status, render(means, here()), "" if status == OK else remedy)


async def _address(settings: Settings, client: KubernetesClient) -> Check:
    """Try with a pod under a tenant's policies whether it reaches the hub, and the hub it."""
    hub, service, data = (
        url_of(of(settings)).removeprefix("http://")
        for of in (in_cluster.hub_address, in_cluster.service_address, in_cluster.data_address)
    )
    text = say(
        "pods reach the hub at {hub}, the service at {service}, files of datasets at {data}",
        hub=hub,
        service=service,
        data=data,
    )
    try:
        found = await reached(client, in_cluster.installation_of(settings), PROBE_S)
    except MessageError as error:
        why = render(error.message, here())
        return Check(
            "address",
            WARN,
            say("whether {what} is not known: {why}", what=text, why=why),
            say("See {page}.", page=_ADMINISTRATOR),
        )
    return _judged(settings, found, text)


def _judged(settings: Settings, found: Reached, text: str) -> Check:
    silent = [f"{host}:{port}" for (host, port), way in found.outward.items() if way is CallResult.SILENT]
    if silent:
        return Check(
            "address",
            FAIL,
            say("a pod gets no answer from this machine at {places}", places=", ".join(silent)),
            say(
                "Check MLP_KUBERNETES_ADDRESS, this machine's firewall, and whether the network's policies identify this machine by that address."
            ),
        )
    if not found.inward:
        return Check(
            "address",
            FAIL,
            say("this machine gets no answer from a pod's port {port}", port=NOTEBOOK_PORT),
            say(
                "This needs a route from this machine to pods, and policies that identify this machine by its address."
            ),
        )
    closed = [f"{host}:{port}" for (host, port), way in found.outward.items() if way is CallResult.CLOSED]
    if not closed:
        return Check("address", OK, say("{text}: tried, both ways", text=text))
    if len(closed) < len(found.outward) or _listens(settings):
        return Check(
            "address",
            FAIL,
            say("a pod reaches this machine, and nothing listens at {places}", places=", ".join(closed)),
            say("Check MLP_HUB_LISTEN_TENANTS, MLP_SERVICE_LISTEN_TENANTS and MLP_DATA_LISTEN_TENANTS."),
        )
    return Check(
        "address",
        OK,
        say("{text}: the way is open; the hub is not up, so the ports were not tried", text=text),
    )


def _listens(settings: Settings) -> bool:
    """Whether the service listens for pods now, asked from here."""
    with contextlib.suppress(OSError):
        socket.create_connection(in_cluster.service_listens(settings), LISTENS_S).close()
        return True
    return False
