"""The programs that make up the cluster: how each is started. Only numbers that differ from the default stand here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlp_cluster.images import PAUSE, in_cluster
from mlp_cluster.machine import CNI
from mlp_cluster.place import DOMAIN, NODE, Place

_FAST = ("--leader-elect=false", "--bind-address=127.0.0.1", "--kube-api-qps=500", "--kube-api-burst=1000")

SEES_ALL_S = 3600
"""Tuning: seconds that a node which kwok plays may go unheard of, where no other is: thousands of them say nothing else all day,
and a machine that cannot keep up with them would lose them all."""


@dataclass(frozen=True)
class Component:
    """A program with its arguments, and what it reads: files of the cluster's folder, written before."""

    argv: list[str]
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Making:
    """What components are made from. `pods`: there is a node that runs them, beside those that kwok plays."""

    place: Place
    programs: Path
    pods: bool = True

    def program(self, name: str) -> str:
        return str(self.programs / name)

    def file(self, name: str) -> Path:
        return self.place.folder / name

    def pki(self, name: str) -> str:
        return str(self.place.folder / "pki" / name)


def etcd(m: Making) -> Component:
    """The store. It need not outlive a fall of the machine."""
    peer, client = "http://127.0.0.1:2380", "http://127.0.0.1:2379"
    argv = [
        *(m.program("etcd"), f"--data-dir={m.file('etcd')}", "--unsafe-no-fsync", "--log-level=warn"),
        *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
        *(
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        ),
    ]
    return Component(argv)


def apiserver(m: Making) -> Component:
    """The API server. It calls webhooks at the addresses of their endpoints, for which no proxy is needed."""
    argv = [
        *(m.program("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443"),
        *("--bind-address=0.0.0.0", f"--advertise-address={m.place.node}"),
        *(f"--service-cluster-ip-range={m.place.services}", "--enable-aggregator-routing=true"),
        *(
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
        ),
        f"--tls-cert-file={m.pki('apiserver.crt')}",
        f"--tls-private-key-file={m.pki('apiserver.key')}",
        f"--client-ca-file={m.pki('ca.crt')}",
        f"--kubelet-client-certificate={m.pki('admin.crt')}",
        f"--kubelet-client-key={m.pki('admin.key')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
        f"--service-account-key-file={m.pki('accounts.pub')}",
        f"--service-account-signing-key-file={m.pki('accounts.key')}",
        f"--requestheader-client-ca-file={m.pki('ca.crt')}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={m.pki('front-proxy.crt')}",
        f"--proxy-client-key-file={m.pki('front-proxy.key')}",
    ]
    return Component(argv)


def controller_manager(m: Making) -> Component:
    """The controllers of Kubernetes itself."""
    argv = [
        *(
            m.program("kube-controller-manager"),
            f"--kubeconfig={m.pki('controller-manager.kubeconfig')}",
            *_FAST,
        ),
        *("--use-service-account-credentials=true", f"--root-ca-file={m.pki('ca.crt')}"),
        f"--service-account-private-key-file={m.pki('accounts.key')}",
        f"--cluster-signing-cert-file={m.pki('ca.crt')}",
        f"--cluster-signing-key-file={m.pki('ca.key')}",
        *(() if m.pods else (f"--node-monitor-grace-period={2 * SEES_ALL_S}s",)),
    ]
    return Component(argv)


def scheduler(m: Making) -> Component:
    """The default scheduler."""
    return Component([m.program("kube-scheduler"), f"--kubeconfig={m.pki('scheduler.kubeconfig')}", *_FAST])


def kwok(m: Making) -> Component:
    """Plays the nodes that are annotated so, and their pods."""
    argv = [
        *(m.program("kwok"), f"--kubeconfig={m.place.kubeconfig}", "--manage-all-nodes=false"),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--node-lease-duration-seconds={200 if m.pods else SEES_ALL_S}",
        "--server-address=127.0.0.1:10247",
    ]
    return Component(argv)


def containerd(m: Making) -> Component:
    """What runs containers. It may be in a container itself, without the right to be spared when memory is short."""
    state = m.place.folder
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    config = f"""\
version = 2
root = "{state}/containerd"
state = "{state}/containerd-state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{state}/containerd.sock"
[ttrpc]
  address = "{state}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{state}/containerd-opt"
[{cri}]
  sandbox_image = "{in_cluster(PAUSE)}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
[{cri}.cni]
  bin_dir = "{CNI}"
  conf_dir = "{state}/cni"
[{cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""
    ranges = [[{"subnet": m.place.pods}]]
    ipam = {
        "type": "host-local",
        "dataDir": f"{state}/cni-addresses",
        "ranges": ranges,
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": ipam,
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
    return Component(
        ["containerd", "--config", f"{state}/containerd.toml"],
        {"containerd.toml": config, "cni/10-pods.conflist": json.dumps(network)},
    )


def kubelet(m: Making) -> Component:
    """The node."""
    state = m.place.folder
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(m.pki("ca.crt"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(m.pki("kubelet.crt")),
        "tlsPrivateKeyFile": str(m.pki("kubelet.key")),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{m.place.name}",  # else two clusters would clean up each other's pods
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        "clusterDNS": [m.place.node],
        "clusterDomain": DOMAIN,
        "resolvConf": f"{state}/resolv.conf",
        "containerRuntimeEndpoint": f"unix://{state}/containerd.sock",
        "podLogsDir": f"{state}/pods",
        "volumePluginDir": f"{state}/volume-plugins",
        # images cannot be pulled again: they are never collected, and the disk may be almost full
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }
    argv = [
        *(
            m.program("kubelet"),
            f"--config={state}/kubelet.json",
            f"--kubeconfig={m.pki('kubelet.kubeconfig')}",
        ),
        *(f"--root-dir={state}/kubelet", f"--cert-dir={state}/kubelet/pki"),
        *(f"--hostname-override={NODE}", f"--node-ip={m.place.node}"),
    ]
    return Component(
        argv, {"kubelet.json": json.dumps(config), "resolv.conf": f"nameserver {m.place.node}\n"}
    )


def proxy(m: Making) -> Component:
    """Makes services' addresses lead to pods."""
    config: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(m.pki("proxy.kubeconfig"))},
        "mode": "iptables",
        "clusterCIDR": m.place.pods,
        "hostnameOverride": NODE,
        "oomScoreAdj": 0,
        # these would set what belongs to the host
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    return Component(
        [m.program("kube-proxy"), f"--config={m.file('proxy.json')}"], {"proxy.json": json.dumps(config)}
    )


def dns(m: Making) -> Component:
    """The cluster's names. Nothing is kept in between: a name that was asked for too early would stay unknown."""
    # nothing leads out, so names outside are unknown
    corefile = f"""\
.:53 {{
    bind {m.place.node}
    errors
    ready 127.0.0.1:8190
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {m.place.kubeconfig} {m.place.name}
        pods verified
        ttl 1
    }}
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"""
    return Component([m.program("coredns"), "-conf", str(m.file("Corefile"))], {"Corefile": corefile})


CONTROL: dict[str, Callable[[Making], Component]] = {
    "kube-controller-manager": controller_manager,
    "kube-scheduler": scheduler,
    "kwok": kwok,
}
"""What runs beside the API server."""

ON_NODE: dict[str, Callable[[Making], Component]] = {"kubelet": kubelet, "kube-proxy": proxy, "coredns": dns}
"""What makes a node that runs pods, when containerd is there."""
