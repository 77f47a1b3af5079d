"""A real hub and proxy whose notebook servers are pods of a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import uuid
from pathlib import Path
from typing import Any

from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.tenancy.keeper import TenantKeeper
from mlp_hub.in_cluster import address_of, connect, installation_of
from mlp_hub.settings import Settings
from mlp_spawner.kubernetes.pod_manifest import pod_name
from support.cluster.kube import Kube, RefusedError
from support.hubs.hub_stack import HubStack
from support.ports import free_port


class PodStack(HubStack):
    """`kube` is the cluster; all that is made there has a name that begins with `name`, and is removed in the end."""

    def __init__(self, kube: Kube, **more: Any) -> None:
        self.kube = kube
        self.name = f"t{uuid.uuid4().hex[:6]}"
        # short, because of the sockets; new each time, because a run that was killed leaves its accounts behind
        home = Path(tempfile.mkdtemp(prefix="mlp-t", dir="/tmp"))
        home.chmod(0o755)
        environ = {
            "MLP_EXECUTOR": "kubernetes",
            "MLP_KUBERNETES_CONFIG": str(kube.kubeconfig),
            "MLP_KUBERNETES_NAME": self.name,
            **more.pop("environ", {}),
        }
        super().__init__(home, **more, **environ)
        host = address_of(self.settings)
        for which in ("HUB", "SERVICE", "DATA"):  # ports that nobody else has
            self.env[f"MLP_{which}_LISTEN_TENANTS"] = f"{host}:{free_port()}"
        self.settings = Settings.load(self.env)
        self.ended.append(self.leave)

    def namespace(self, tenant: str = "default") -> str:
        return f"{self.name}-{tenant}"

    def pod(self, user: str, tenant: str = "default", server: str = "") -> dict[str, Any] | None:
        """Return the pod of a user's server; None where there is none."""
        labels = f"mlp-hub/user={user},app.kubernetes.io/component=notebook"
        found = self.kube.get("pods", "-n", self.namespace(tenant), "-l", labels)["items"]
        return next((p for p in found if p["metadata"]["name"] == pod_name(user, server)), None)

    def keep(self, *tenants: str) -> None:
        """Make what these tenants have in the cluster, as the service does, which is not there in these tests."""
        self._keep(*(TenantPlace(tenant) for tenant in tenants))

    def keep_members(self, tenant: str, *members: str) -> None:
        """Do the same for a tenant with these members."""
        self._keep(TenantPlace(tenant, members=members))

    def _keep(self, *places: TenantPlace) -> None:
        async def go() -> None:
            client = await connect(self.settings)
            keeper = TenantKeeper(client, installation_of(self.settings))
            try:
                await keeper.keep(places)
            finally:
                await keeper.close()
                await client.close()

        asyncio.run(go())

    def leave(self) -> None:
        """Remove what is ours in the cluster."""
        leave(self.kube, self.name)


def leave(kube: Kube, name: str) -> None:
    """Remove all that a hub of this name has in a cluster."""
    ours = ("-l", f"app.kubernetes.io/instance={name}", "--wait=false")
    for kinds in (
        "namespaces,persistentvolumes,priorityclasses",
        "validatingadmissionpolicybindings,validatingadmissionpolicies",
        "queues.scheduling.volcano.sh",
    ):
        with contextlib.suppress(RefusedError):  # a cluster without Volcano
            kube("delete", kinds, *ours)
    kube("delete", "namespace", f"{name}--hub", "--wait=false", "--ignore-not-found")
