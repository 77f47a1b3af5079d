"""The installs on which the acceptance suite runs: one machine, a cluster, and all of it in a cluster. `--install` of pytest says which."""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mlp_hub.in_cluster import address_of
from mlp_hub.settings import Settings
from support.cluster.kube import Kube
from support.cluster.pod_stack import leave
from support.cluster.release import PATIENT, release
from support.hubs.live_hub import LiveHub, live_hub
from support.ports import free_port

OVERCOMMIT = "16"
"""CPU given out for each core: pods of other tests are on the node too, and what people may have is the quota's to say."""


class Install(Protocol):
    """A way to have hubs; tests ask for a hub and do not ask of which kind."""

    def hub(self, home: Path, **environ: str) -> contextlib.AbstractContextManager[LiveHub]:
        """Have a hub with its state in this directory, and nothing of it afterwards."""
        ...

    def secret(self, name: str, key: str, value: str, directory: Path) -> Path:
        """Keep a secret where this install keeps them; return a file in `directory` with what was kept."""
        ...


class OneMachine:
    """Notebooks and jobs are processes beside the hub."""

    def hub(self, home: Path, **environ: str) -> contextlib.AbstractContextManager[LiveHub]:
        return live_hub(home, **environ)

    def secret(self, name: str, key: str, value: str, directory: Path) -> Path:
        file = directory / key
        file.write_text(value)
        return file


class InACluster:
    """Notebooks and jobs are pods; each hub has a name of its own in the cluster."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    @contextlib.contextmanager
    def hub(self, home: Path, **environ: str) -> Iterator[LiveHub]:
        name = f"t{uuid.uuid4().hex[:6]}"
        ours = {
            "MLP_EXECUTOR": "kubernetes",
            "MLP_KUBERNETES_CONFIG": str(self.kube.kubeconfig),
            "MLP_KUBERNETES_NAME": name,
            "MLP_NODE_CPU_OVERCOMMIT": OVERCOMMIT,
        }
        home.mkdir(parents=True)
        ours["MLP_CONFIG"] = str(home / "patient.py")
        (home / "patient.py").write_text(PATIENT)
        host = address_of(Settings.load({**ours, "MLP_HOME": str(home)}))
        for which in ("HUB", "SERVICE", "DATA"):  # ports that nobody else has
            ours[f"MLP_{which}_LISTEN_TENANTS"] = f"{host}:{free_port()}"
        try:
            with live_hub(home, **ours, **environ) as hub:
                yield hub
        finally:
            leave(self.kube, name)

    def secret(self, name: str, key: str, value: str, directory: Path) -> Path:
        """Make a Secret in a namespace for it, and read it back as a mount does; the namespace goes again."""
        namespace = f"test-{uuid.uuid4().hex[:8]}"
        self.kube("create", "namespace", namespace)
        try:
            given = directory / "given"
            given.write_text(value)
            self.kube("-n", namespace, "create", "secret", "generic", name, f"--from-file={key}={given}")
            kept = self.kube.get("-n", namespace, "secret", name)["data"][key]
        finally:
            self.kube("delete", "namespace", namespace, "--wait=false")
        file = directory / key
        file.write_bytes(base64.b64decode(kept))
        return file


class ByHelm(InACluster):
    """The hub itself is pods too, as its chart installs them."""

    @contextlib.contextmanager
    def hub(self, home: Path, **environ: str) -> Iterator[LiveHub]:
        with release(self.kube, home, **environ) as hub:
            yield hub
