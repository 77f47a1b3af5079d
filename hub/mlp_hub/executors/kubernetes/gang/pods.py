"""Pods of ranks, fit for a restricted namespace, with the view that a user's pods have of the files."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

from mlp_hub.domain.resources import MILLI
from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.kubernetes.gang.files import MOUNT, START, USERS, paths
from mlp_hub.executors.kubernetes.gang.shape import Outline, RankGroup
from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, JOB
from mlp_hub.executors.kubernetes.nodes.affinity import on_nodes
from mlp_hub.executors.kubernetes.nodes.devices import no_gpus
from mlp_hub.executors.nodes import TENANT as TENANT_TAINT
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.shared_volume.prepare import model_directory
from mlp_hub.executors.workspace import MODEL, WORKSPACE
from mlp_hub.kubernetes import names, restricted
from mlp_hub.kubernetes.kinds import Object, labels_of
from mlp_language.message import Message, msg

ONE_NODE = "kubernetes.io/hostname"
"""Given: label by which pods are beside each other on one node; its value need not be the node's name."""
SCHEDULER = "volcano"
TMP_LEAST = 1024
"""Limit of kubernetes: MiB of temporary files of a rank, or its memory if that is more."""
GROUP = "scheduling.k8s.io/group-name"
MARGIN_S = 5
"""Safety: seconds beyond the grace in which a rank's last lines are written before its pod is killed."""
JOB_INDEX = "batch.kubernetes.io/job-completion-index"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
TASK_INDEX = "volcano.sh/task-index"
INDEX_LABELS = (JOB_INDEX, REPLICA_INDEX, TASK_INDEX)
"""Labels by which controllers number the pods of a part."""


_MISSING = re.compile(r'exec: "([^"]+)": (?:executable file not found|stat .*: no such file)')


def lacking(said: str) -> Message | None:
    """Return the program that an image lacks for a rank, from the node's message about the container's start."""
    found = _MISSING.search(said)
    if found is None:
        return None
    return msg("the image has no {program}, which runs the ranks: install it there", program=found[1])


def rank_of(pod: Object) -> int | None:
    """Return the rank of a pod of a gang; None for other pods."""
    labels = labels_of(pod)
    first = labels.get(names.FIRST_RANK)
    if first is None:
        return None
    return int(first) + next((int(labels[key]) for key in INDEX_LABELS if key in labels), 0)


def template(
    shape: Outline, part: RankGroup, *, container: str = "rank", index: str | None = None, **more: Any
) -> dict[str, Any]:
    """Return the pods of one part. `index` is the label by which their controller numbers them, `more` fields of their spec."""
    labels = shape.labels | {
        names.ROLE: names.label_value(part.role),
        names.FIRST_RANK: str(part.first),
        names.NETWORK: shape.spec.network,
        **({names.APP: names.label_value(shape.spec.env["MLP_APP"])} if shape.spec.listens else {}),
    }
    annotations = {names.JUPYTERHUB_USER: shape.spec.user} | ({GROUP: shape.group} if shape.together else {})
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": ceil(shape.spec.grace_s) + MARGIN_S,
            "securityContext": restricted.pod(shape.uid),
            **_where(shape, part),
            "containers": [_container(shape, part, container, index)],
            "volumes": _volumes(shape),
            **(
                {"imagePullSecrets": [{"name": s} for s in shape.at.pull_secrets]}
                if shape.at.pull_secrets
                else {}
            ),
            **more,
        },
    }


def _container(shape: Outline, part: RankGroup, name: str, index: str | None) -> dict[str, Any]:
    amount = amounts(shape)
    number: dict[str, Any] = {"name": "MLP_INDEX", "value": "0"}
    if index is not None:
        number = {
            "name": "MLP_INDEX",
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{index}']"}},
        }
    return {
        "name": name,
        "image": shape.image,
        "imagePullPolicy": shape.at.pull_policy,
        "command": ["python3", "-IS", START],
        "workingDir": "/",
        "env": [
            {"name": "MLP_FIRST_RANK", "value": str(part.first)},
            number,
            *no_gpus(shape.spec.per_worker.gpu),
        ],
        "resources": {
            "requests": amount | {"cpu": shape.at.asked_cpu(shape.spec.per_worker.cpu)},
            "limits": amount,
        },
        "securityContext": restricted.container(),
        "terminationMessagePolicy": "File",
        "volumeMounts": _mounts(shape),
    }


def amounts(shape: Outline) -> dict[str, str]:
    """Return what one rank has; raises `CannotStart` where it is a part of a gpu."""
    each = shape.spec.per_worker
    amount = {"cpu": f"{each.cpu}m", "memory": f"{each.ram}Mi"}
    if each.gpu % MILLI:
        raise CannotStart(
            msg("a cluster gives whole GPUs to a rank, not {gpu}; ask for 1", gpu=f"{each.gpu / MILLI:g}")
        )
    if each.gpu:
        amount[shape.device] = str(each.gpu // MILLI)
    return amount


def _where(shape: Outline, part: RankGroup) -> dict[str, Any]:
    """Return where pods may go: to the nodes that we chose, past the taint that leaves a node to their tenant."""
    affinity: dict[str, Any] = {}
    if not shape.at.namespaces and (chosen := on_nodes(shape.spec.placement)) is not None:
        affinity["nodeAffinity"] = chosen
    if part.role == "ps":
        beside = {
            "matchLabels": {names.ATTEMPT: names.label_value(shape.spec.attempt)},
            "matchExpressions": [{"key": names.ROLE, "operator": "NotIn", "values": ["ps"]}],
        }
        affinity["podAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"topologyKey": ONE_NODE, "labelSelector": beside}}
            ]
        }
    own = {
        "key": TENANT_TAINT,
        "operator": "Equal",
        "value": shape.spec.tenant,
        "effect": "NoSchedule",
    }
    silent = (
        {
            "key": f"node.kubernetes.io/{why}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": shape.at.node_lost_s,
        }
        for why in ("not-ready", "unreachable")
    )
    where: dict[str, Any] = {
        "tolerations": [own, *silent, *map(dict, shape.at.tolerations)],
        "priorityClassName": shape.at.priority_class(JOB),
    }
    if affinity:
        where["affinity"] = affinity
    if shape.together:
        where["schedulerName"] = SCHEDULER
    return where


def _volumes(shape: Outline) -> list[dict[str, Any]]:
    ram, shm = shape.spec.per_worker.ram, shape.spec.per_worker.part("shm")
    keys = [{"key": key, "path": path} for key, path in paths().items()]
    volumes: list[dict[str, Any]] = [
        {"name": "files", "persistentVolumeClaim": {"claimName": FILES_CLAIM}},
        {"name": "start", "secret": {"secretName": shape.name, "items": keys, "defaultMode": 0o444}},
        {"name": "tmp", "emptyDir": {"sizeLimit": f"{max(TMP_LEAST, ram)}Mi"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{shm or max(64, ram // 2)}Mi"}},
    ]
    claims = sorted({mount.name for mount in shape.spec.mounts})
    return volumes + [
        {"name": f"claim-{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, claim in enumerate(claims)
    ]


def _mounts(shape: Outline) -> list[dict[str, Any]]:
    spec, at = shape.spec, shape.at
    mounts: list[dict[str, Any]] = [
        _mount("files", home_mount(spec.user), at.below(at.directories.home(spec.user))),
        _mount("files", WORKSPACE, at.below(at.directories.workspace(spec.of_run))),
        _mount("start", MOUNT, read_only=True),
        _mount("start", "/etc/passwd", USERS, read_only=True),
        _mount("tmp", "/tmp"),  # noqa: S108 - the pod's own
        _mount("shm", "/dev/shm"),  # noqa: S108
        *(
            _mount("files", data.path, at.below(at.directories.stored(data.of)), read_only=True)
            for data in spec.data
        ),
    ]
    if spec.model is not None:
        model = at.below(model_directory(spec, at.directories))
        mounts.append(_mount("files", MODEL, model, read_only=True))
    claims = sorted({mount.name for mount in spec.mounts})
    return mounts + [
        _mount(f"claim-{claims.index(mount.name)}", mount.path, read_only=mount.read_only)
        for mount in spec.mounts
    ]


def _mount(volume: str, path: str, below: str = "", *, read_only: bool = False) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": volume, "mountPath": path}
    if below:
        mount["subPath"] = below
    if read_only:
        mount["readOnly"] = True
    return mount
