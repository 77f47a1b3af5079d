"""Installation of one hub in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes import names

NOTEBOOK, JOB = "notebook", "job"
"""Contract: the two sorts of pods of tenants."""
FILES_CLAIM = "mlp-files"
"""Contract: the claim of the volume of all files in each tenant's namespace, which pods name."""
NOTEBOOK_PORT = 8888
"""Given: port of notebook servers in their pods."""
APP_PORT = 19_998
"""Given: port of replicas of apps in their pods, beside that of agents of launchers."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Installation of one hub in a cluster.

    `name` begins the names of its namespaces and of all objects outside namespaces, so that two hubs
    can share a cluster. `image` is the image of notebooks, and of jobs whose runtime names none.
    `volume` is the source of the volume of all files, as a PersistentVolume has it (`{"hostPath":
    {"path": ...}}`, `{"nfs": ...}`, `{"csi": ...}`). `root` is its path in this process, and
    `directories` are below that. `service` is the host and port at which pods reach the service, `hub`
    those of JupyterHub's API, `data` those of files of datasets: addresses, or names of services in the
    cluster.

    `cpu_overcommit` is the CPU that is given out for each core of a node: pods request from the cluster
    their CPU divided by it.

    `identities` are names under which parts of the hub use the API, in addition to that of the tenants'
    keeper. `controllers` are names of operators that run under other names than in their manifests.
    Members of tenants are known to the cluster by `user_prefix` and their name. `dns` are networks of
    name servers that are not pods of the cluster. `open` are private networks that count as outside:
    pods with access to the outside reach them. `closed` are networks that such pods do not reach
    although they are not private.
    """

    root: Path
    directories: Directories
    volume: Mapping[str, Any]
    image: str
    service: tuple[str, int]
    name: str = "mlp"
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # on all that is made, besides ours
    cpu_overcommit: float = 1.0
    hub: tuple[str, int] | None = None
    data: tuple[str, int] | None = None
    identities: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    user_prefix: str = "mlp:"
    dns: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    prewarmed: int = 0  # images, at most, that all nodes are to have before they are needed
    prewarmed_disk: float = 0.2  # the part of a node's disk that these may take
    node_lost_s: int = 60  # from a node's loss until a rank there counts as lost, and its gang starts again
    start_slack_s: int = 3600  # beyond its time limit, for images and for room, before the cluster ends a job
    notebook_tmp: int = 512  # MiB of /tmp of a notebook server, which is memory
    gpu_metrics: str = ""  # NAMESPACE/SERVICE:PORT of a Prometheus with the metrics of DCGM's exporter
    gpu_metrics_job: str = ""  # pattern of the exporter's job there
    namespaces: tuple[str, ...] = ()  # of teams, where an administrator makes them, and the hub may make none
    home: str = ""  # the hub's own namespace, where it is not made by it
    capacity: Mapping[str, str] = field(default_factory=dict)  # what to give out where nodes cannot be read

    @property
    def namespace(self) -> str:
        """Namespace of the hub itself: its leases, and other objects without a tenant.

        The name of a tenant never begins with a dash.
        """
        return self.home or f"{self.name}--hub"

    @property
    def marks(self) -> dict[str, str]:
        """Labels by which all that this hub makes is known."""
        return {names.MANAGED_BY: "mlp-hub", names.INSTANCE: self.name}

    def namespace_of(self, tenant: str) -> str:
        """Return the namespace of a tenant."""
        return names.dns_name(f"{self.name}-{tenant}")

    def priority_class(self, of: str) -> str:
        """Return the name of the PriorityClass of one sort of pods; empty, the cluster's default, where the hub makes none."""
        return "" if self.namespaces else f"{self.name}-{of}"

    @property
    def own(self) -> dict[str, str]:
        """Labels of all that this hub makes."""
        return {**self.labels, **self.marks}

    @property
    def selector(self) -> str:
        """Selector of all that this hub has made."""
        return ",".join(f"{key}={value}" for key, value in self.marks.items())

    def asked_cpu(self, milli: int) -> str:
        """Return the CPU that a pod requests from the cluster, for `milli` thousandths by the hub's count."""
        return f"{max(1, round(milli / self.cpu_overcommit))}m"

    def below(self, path: str | Path) -> str:
        """Return a path below the root as pods name it: relative to the volume."""
        return Path(path).relative_to(self.root).as_posix()
