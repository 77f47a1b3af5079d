"""Pod of a notebook server: from a grant and an installation, beside an operator's settings; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, NOTEBOOK, NOTEBOOK_PORT, Installation
from mlp_hub.executors.kubernetes.notebooks import Gpus, home_mount, no_gpus, tolerations
from mlp_hub.kubernetes import names, restricted
from mlp_hub.kubernetes.kinds import PODS, SECRETS, Object, name_of, namespace_of
from mlp_hub.sandbox import MODELS, SHELVES, seen_at
from mlp_spawner.grant import Grant
from mlp_spawner.kubernetes.pod_states import CONTAINER, START

_LAUNCHER = (Path(__file__).parents[1] / "launcher.py").read_text()
_READABLE = 30
_START = 10
"""Given: digits of a start that tell a server's starts apart."""


@dataclass(frozen=True, slots=True)
class ServerPod:
    """Properties of one server's pod; `home` is the user's home directory as the hub sees it, `uid` its owner."""

    user: str
    server: str  # empty for the user's only one
    start: str
    uid: int
    home: Path
    env: Mapping[str, str]
    args: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the pod: its users' part is for people, and the digest tells it from all others."""
        return pod_name(self.user, self.server)

    @property
    def secret_name(self) -> str:
        """Name of the secret with its environment: of this start and no other."""
        return f"{self.name}-{self.start[:_START]}"


def secret(made: Object, pod: ServerPod) -> Object:
    """Return what holds the environment of a pod that was just made, and goes with it.

    Members of the tenant read pods, each other's too, and nobody reads Secrets: a server's token is its user's.
    """
    found = SECRETS.named(pod.secret_name, namespace_of(made), stringData=dict(sorted(pod.env.items())))
    owner = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": name_of(made),
        "uid": made["metadata"]["uid"],
    }
    found["metadata"] |= {"labels": made["metadata"]["labels"], "ownerReferences": [owner]}
    return found


def pod_name(user: str, server: str) -> str:
    """Name the pod of a server, unlike that of any other (user, server); dashboards of JupyterHub look for `jupyter-`."""
    readable = re.sub(r"[^a-z0-9]+", "-", f"{user}-{server}".lower()).strip("-")[:_READABLE].strip("-")
    digest = hashlib.sha256(f"{user}/{server}".encode()).hexdigest()[:16]
    return "-".join(filter(None, ("jupyter", readable, digest)))


def labels(installation: Installation, pod: ServerPod, grant: Grant) -> dict[str, str]:
    """Return the labels of a server's pod."""
    return {
        **installation.own,
        **names.JUPYTERHUB_SERVER,
        names.COMPONENT: NOTEBOOK,
        names.TENANT: names.label_value(grant.tenant),
        names.USER: names.label_value(pod.user),
        names.JUPYTERHUB_USER: names.label_value(pod.user),
        names.NETWORK: grant.network,
        **({names.SERVER: names.label_value(pod.server)} if pod.server else {}),
    }


def fit(
    configured: Object, installation: Installation, pod: ServerPod, grant: Grant, gpus: Gpus | None = None
) -> Object:
    """Return the pod to create: an operator's configuration, with the parts corrected that are not theirs."""
    spec = dict(configured["spec"])
    container = next(c for c in spec["containers"] if c["name"] == CONTAINER)
    rest = [c for c in spec["containers"] if c is not container]
    about = configured["metadata"]
    annotations = {
        **about.get("annotations", {}),
        START: pod.start,
        names.JUPYTERHUB_USER: pod.user,
        "mlp-hub/passwd": _passwd(pod),
        "mlp-hub/group": f"root:x:0:\n{pod.user}:x:{pod.uid}:\nnogroup:x:65534:\n",
    }
    spec |= {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "priorityClassName": installation.priority_class(NOTEBOOK),
        "shareProcessNamespace": True,  # its first process reaps what ends, so that the image needs none that does
        "securityContext": restricted.pod(pod.uid),
        "containers": [_container(container, installation, pod, grant, gpus), *rest],
        "volumes": [*spec.get("volumes", ()), *_volumes(installation, grant)],
        "tolerations": [*spec.get("tolerations", ()), *tolerations(installation, grant.tenant)],
    }
    if gpus is not None and gpus.terms:
        spec["affinity"] = _on_nodes(spec.get("affinity") or {}, gpus)
    if installation.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in installation.pull_secrets]
    metadata = {
        "labels": {**about.get("labels", {}), **labels(installation, pod, grant)},
        "annotations": annotations,
    }
    made = PODS.named(pod.name, installation.namespace_of(grant.tenant), spec=spec)
    made["metadata"] |= metadata
    return made


def _on_nodes(configured: Mapping[str, Any], gpus: Gpus) -> dict[str, Any]:
    """Return an operator's affinity with the nodes that have the right GPUs: each of its terms and one of ours must hold."""
    node = dict(configured.get("nodeAffinity") or {})
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    theirs = required.get("nodeSelectorTerms") or [{}]
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *own["matchExpressions"]]}
        for term in theirs
        for own in gpus.terms
    ]
    node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    return {**configured, "nodeAffinity": node}


def _container(
    configured: Mapping[str, Any],
    installation: Installation,
    pod: ServerPod,
    grant: Grant,
    gpus: Gpus | None,
) -> dict[str, Any]:
    # cores that nobody asks for may be used, as on one machine: a limit would slow each start several times
    memory = f"{grant.ram}Mi"
    resources = {
        "requests": {"cpu": installation.asked_cpu(round(grant.cpu * 1000)), "memory": memory},
        "limits": {"memory": memory},
    }
    if gpus is not None:
        resources["limits"][gpus.device] = str(gpus.count)  # what is asked for is the same, by itself
    argv = ["python", "-P", "-s", "-c", _LAUNCHER, f"--ServerApp.port={NOTEBOOK_PORT}", *pod.args]
    return {
        **configured,
        "image": grant.image or installation.image,
        "imagePullPolicy": installation.pull_policy,
        "command": argv,
        "args": [],
        "workingDir": home_mount(pod.user),
        "env": no_gpus(gpus.count if gpus is not None else 0),
        "envFrom": [{"secretRef": {"name": pod.secret_name}}],
        "resources": resources,
        "securityContext": restricted.container(),
        "volumeMounts": [*configured.get("volumeMounts", ()), *_mounts(installation, pod)],
    }


def _mounts(installation: Installation, pod: ServerPod) -> list[dict[str, Any]]:
    return [
        {
            "name": "mlp-files",
            "mountPath": home_mount(pod.user),
            "subPath": installation.below(pod.home),
        },
        *(
            {
                "name": "mlp-files",
                "mountPath": seen_at(kind, pod.user),
                "subPath": installation.below(installation.directories.root / kind / pod.user),
                **({"readOnly": True} if kind == MODELS else {}),
            }
            for kind in SHELVES
        ),
        {"name": "mlp-tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
        {"name": "mlp-shm", "mountPath": "/dev/shm"},  # noqa: S108
        *(
            {"name": "mlp-who", "mountPath": f"/etc/{name}", "subPath": name, "readOnly": True}
            for name in ("passwd", "group")
        ),
    ]


def _volumes(installation: Installation, grant: Grant) -> list[dict[str, Any]]:
    told = [
        {"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['mlp-hub/{name}']"}}
        for name in ("passwd", "group")
    ]
    return [
        {"name": "mlp-files", "persistentVolumeClaim": {"claimName": FILES_CLAIM}},
        {"name": "mlp-tmp", "emptyDir": {"medium": "Memory", "sizeLimit": f"{installation.notebook_tmp}Mi"}},
        {"name": "mlp-shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{max(64, grant.ram // 2)}Mi"}},
        {"name": "mlp-who", "downwardAPI": {"items": told}},
    ]


def _passwd(pod: ServerPod) -> str:
    return (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"{pod.user}:x:{pod.uid}:{pod.uid}:{pod.user}:{home_mount(pod.user)}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
