"""Settings that say how a hub uses a cluster; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlp_hub.settings.values import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings of the cluster, where notebooks and jobs are pods of the cluster."""

    kubernetes_config: Path | None = setting(
        None,
        "The kubeconfig of the cluster; unset: the file that KUBECONFIG names, else the cluster whose pod the hub is in.",
        kind="path",
    )
    kubernetes_context: str = setting(
        "", "Which context of the kubeconfig; empty: its current one.", kind="str"
    )
    kubernetes_name: str = setting(
        "mlp",
        "What this hub is called in the cluster: begins the names of its namespaces (`NAME-TENANT`), so that several hubs share one.",
        kind="str",
    )
    kubernetes_image: str = setting(
        "mlp.local/notebook:dev",
        "Image of notebook servers, and of jobs whose runtime names none.",
        kind="str",
    )
    kubernetes_pull_policy: str = setting(
        "IfNotPresent",
        "When a node fetches that image.",
        kind="str",
        choices=("IfNotPresent", "Always", "Never"),
    )
    kubernetes_pull_secrets: tuple[str, ...] = setting(
        (),
        "Names of the Secrets, in the tenants' namespaces, by which nodes fetch images.",
        kind="list",
    )
    kubernetes_environment_images: tuple[str, ...] = setting(
        (),
        "Images that members of teams may make environments of, besides those that approved runtimes of the team name: names, or what "
        "they lie below, such as `registry.example.org/ml`; `*`: all. Not asked for where `runtime_review` is off.",
        kind="list",
    )
    kubernetes_prewarmed: int = setting(
        3,
        "Images, at most, that all nodes are to have before somebody waits for them: that of notebooks, and those that jobs of "
        "the last days, and notebook servers with an environment, used most. 0: none; a cluster of one node has none.",
        kind="int",
        unit="images",
        low=0,
        high=20,
    )
    kubernetes_prewarmed_days: float = setting(
        7.0,
        "Period whose jobs and notebook servers decide which images those are.",
        kind="float",
        unit="days",
        low=0.1,
        high=365,
    )
    kubernetes_prewarmed_disk: float = setting(
        0.2,
        "Part of a node's disk that those images may take, from 0 to 1.",
        kind="float",
        low=0,
        high=1,
    )
    kubernetes_node_lost_s: int = setting(
        60,
        "A rank counts as lost, and its job starts again, if its node has not answered for this time.",
        kind="int",
        unit="s",
        low=1,
        high=86_400,
        limit="kubernetes",
    )
    kubernetes_start_slack_s: int = setting(
        3600,
        "Time beyond a job's time limit, for images and for pods that wait, before the cluster ends its pods.",
        kind="int",
        unit="s",
        low=60,
        high=604_800,
        limit="kubernetes",
    )
    kubernetes_files: Path | None = setting(
        None,
        "Where this machine sees the volume of homes and of jobs' files; unset: `files` in the state directory.",
        kind="path",
    )
    kubernetes_volume: str = setting(
        "",
        "That volume as a PersistentVolume names its source, in YAML or JSON, such as `{nfs: {server: nfs.example.org, path: /mlp}}`; "
        "empty: `{hostPath: {path: FILES}}`, which is right where the cluster's only node is this machine.",
        kind="str",
    )
    kubernetes_tolerations: str = setting(
        "",
        "Taints of nodes on which notebooks and jobs run all the same, as a pod's tolerations in YAML or JSON, such as "
        "`[{key: gpu, operator: Exists}]`.",
        kind="str",
    )
    kubernetes_dns: tuple[str, ...] = setting(
        (),
        "Networks of name servers that are no pods of the cluster's own DNS, such as `10.0.0.10/32`: pods may ask these too.",
        kind="list",
    )
    kubernetes_open: tuple[str, ...] = setting(
        (),
        "Private networks that pods of tenants with the network `outbound` reach besides the public ones, such as `10.20.0.0/16`.",
        kind="list",
    )
    kubernetes_user_prefix: str = setting(
        "mlp:",
        "What the cluster puts before a user's name where they come with kubectl, as `--oidc-username-prefix` says it.",
        kind="str",
    )
    kubernetes_address: str = setting(
        "",
        "Host at which pods reach the hub and the service; empty: the address from which this machine reaches the API server.",
        kind="str",
    )
    kubernetes_hub: str = setting(
        "",
        "HOST:PORT at which pods reach the hub, where it is a service of the cluster such as `hub.mlp.svc:8082`; empty: "
        "`kubernetes_address` and the port of `hub_listen_tenants`.",
        kind="str",
    )
    kubernetes_service: str = setting(
        "",
        "HOST:PORT at which pods reach the service, where it is a service of the cluster; empty: `kubernetes_address` and the port of "
        "`service_listen_tenants`.",
        kind="str",
    )
    kubernetes_data: str = setting(
        "",
        "HOST:PORT at which pods reach the files of datasets, where that is a service of the cluster; empty: `kubernetes_address` and the "
        "port of `data_listen_tenants`.",
        kind="str",
    )
    kubernetes_pod: str = setting(
        "",
        "NAMESPACE/NAME of the pod that this process is in. A service that leads gives its pod the label `mlp-hub/leads=true`, by which "
        "the others find it; empty: none.",
        kind="str",
    )
    kubernetes_identities: tuple[str, ...] = setting(
        (),
        "Names under which other parts of this hub use the cluster, such as `system:serviceaccount:mlp:hub`: they may start pods in "
        "tenants' namespaces too.",
        kind="list",
    )
    kubernetes_namespaces: tuple[str, ...] = setting(
        (),
        "Namespaces of teams that an administrator made, such as `mlp-red`; the hub then makes no namespace and needs no right outside of "
        "these and its own. Empty: it makes one for each team.",
        kind="list",
    )
    kubernetes_capacity: str = setting(
        "",
        "Amounts that the hub gives out where it may not read nodes, as a node's capacity in YAML or JSON, such as "
        "`{cpu: 64, memory: 256Gi, nvidia.com/gpu: 8}`; required with `kubernetes_namespaces`.",
        kind="str",
    )
    kubernetes_gpu_metrics: str = setting(
        "",
        "Service of a Prometheus in the cluster that asks NVIDIA's DCGM exporter, as `monitoring/prometheus:9090` (NAMESPACE/SERVICE:PORT, "
        "or NAMESPACE/https:SERVICE:PORT). The work of a job's GPUs is then what the exporter measures. Empty: it is the job's own report.",
        kind="str",
    )
    kubernetes_gpu_metrics_job: str = setting(
        "(nvidia-)?dcgm-exporter",
        "Pattern (RE2) of the label `job` of the exporter's series there. Only these are believed, so no tenant may be able to give "
        "its own series such a job.",
        kind="str",
    )
