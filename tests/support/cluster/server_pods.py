"""Pods of notebook servers, as a grant makes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mlp_hub.executors.kubernetes.notebooks import Gpus
from mlp_spawner.grant import Grant
from mlp_spawner.kubernetes.pod_manifest import ServerPod, fit
from support.cluster.kube_installation import installation

ROOT = Path("/srv/files")
AT = installation(root=ROOT, image="image:1", pull_secrets=("registry",), cpu_overcommit=2.0)
GRANT = Grant("red", 0.5, 2048, 7, "outbound")
CONFIGURED: dict[str, Any] = {
    "metadata": {"labels": {"own": "1", "mlp-hub/tenant": "blue"}, "annotations": {}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "automountServiceAccountToken": True,
        "containers": [{"name": "notebook", "image": "x", "securityContext": {"privileged": True}}],
    },
}


def made(gpus: Gpus | None = None, affinity: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return the pod of ann's server, of an operator who configured this affinity."""
    configured = CONFIGURED | {
        "spec": CONFIGURED["spec"] | ({"affinity": affinity} if affinity is not None else {})
    }
    given = {
        "user": "ann",
        "server": "",
        "start": "s1",
        "uid": 300_007,
        "home": ROOT / "homes" / "ann",
        "env": {"A": "b"},
        "args": ["--x"],
    }
    of = {name: more.pop(name) for name in ("environment", "image") if name in more}
    return fit(configured, AT, ServerPod(**(given | more)), replace(GRANT, **of), gpus)
