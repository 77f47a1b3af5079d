"""MPI Operator, Training Operator and Volcano as processes beside the API server, with webhooks as in production."""

from __future__ import annotations

import json
import socket
from functools import partial
from pathlib import Path
from typing import Any

from mlp_cluster.api import Api
from mlp_cluster.components import Making
from mlp_cluster.images import JOBS, in_cluster
from mlp_cluster.place import Place
from mlp_cluster.running import until
from mlp_cluster.space import PATIENCE, Space

WEBHOOK_PORTS = {"training-operator": 9443, "volcano-admission-service": 8444}
"""Services whose webhooks the API server calls, and where they listen here."""

ADMISSIONS = (
    "/jobs/mutate", "/jobs/validate", "/podgroups/validate", "/queues/mutate", "/queues/validate",
    "/hypernodes/validate", "/cronjobs/validate",
)  # fmt: skip
"""Volcano's webhooks of its manifest; with another one it waits for ever."""

DEFINITION = "CustomResourceDefinition"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mpi-operator"
WAIT_FOR_MASTER = f"""\
- name: init-pytorch
  image: {in_cluster(JOBS)}
  imagePullPolicy: IfNotPresent
  command: [sh, -c, 'until getent hosts {{{{.MasterAddr}}}}; do sleep 0.5; done']
"""


class Operators:
    """Brings operators to one cluster."""

    def __init__(self, making: Making, space: Space) -> None:
        self.making = making
        self.place: Place = making.place
        self.space = space
        self.api = Api(making.place)

    def mpi(self) -> None:
        """Start the MPI Operator."""
        self._define("mpi-operator")
        if "mpi-operator" not in self.space.running():
            # it would wait for the lock of one that was killed
            self.api.delete(LEASE)
        self._start(
            "mpi-operator",
            *("-kubeConfig", self.place.kubeconfig, "-lock-namespace=default"),
            *("-kube-api-qps=100", "-kube-api-burst=200"),
        )
        self.space.until("mpi-operator", lambda: self.api.get(LEASE) is not None)

    def training(self) -> None:
        """Start the Training Operator; it makes its certificate itself, and waits for it as files."""
        if self._listens("training-operator"):
            return
        self._define("training-operator")
        wait = self.making.file("wait-for-master.yaml")
        wait.write_text(WAIT_FOR_MASTER)
        schemes = ("tfjob", "pytorchjob", "xgboostjob", "paddlejob", "jaxjob")
        self._start(
            "training-operator",
            *(f"--kubeconfig={self.place.kubeconfig}", *(f"--enable-scheme={name}" for name in schemes)),
            *("--metrics-bind-address=127.0.0.1:8180", "--health-probe-bind-address=127.0.0.1:8181"),
            *("--kube-api-qps=100", "--kube-api-burst=200"),
            *(
                f"--pytorch-init-container-image={in_cluster(JOBS)}",
                f"--pytorch-init-container-template-file={wait}",
            ),
        )
        made: dict[str, bytes] = {}

        def is_made() -> bool:
            made.update(self.api.secret("kubeflow", "training-operator-webhook-cert"))
            return bool(made.get("tls.crt"))

        self.space.until("training-operator", is_made)
        certificates = self.making.file("hidden/k8s-webhook-server/serving-certs")
        certificates.mkdir(exist_ok=True)
        for name, content in made.items():
            (certificates / name).write_bytes(content)
        self.space.until("training-operator", partial(self._listens, "training-operator"))

    def volcano(self) -> None:
        """Start Volcano's three parts; the scheduler makes its queues through the webhook."""
        objects = self._define("volcano")
        settings = {
            key: text for one in objects if one["kind"] == "ConfigMap" for key, text in one["data"].items()
        }
        for name in ("volcano-scheduler.conf", "volcano-admission.conf"):
            if "volcano-scheduler" not in self.space.running():  # it reads it again while it is written
                self.making.file(name).write_text(settings[name])
        common = (f"--kubeconfig={self.place.kubeconfig}", "--leader-elect=false", "--logtostderr")
        pki = self.making.pki
        self._start(
            "volcano-webhook-manager",
            *(f"--tls-cert-file={pki('volcano.crt')}", f"--tls-private-key-file={pki('volcano.key')}"),
            *(
                f"--ca-cert-file={pki('ca.crt')}",
                f"--admission-conf={self.making.file('volcano-admission.conf')}",
            ),
            *("--webhook-namespace=volcano-system", "--webhook-service-name=volcano-admission-service"),
            f"--port={WEBHOOK_PORTS['volcano-admission-service']}",
            *(f"--enabled-admission={','.join(ADMISSIONS)}", common[0], common[2]),
        )
        self.space.until("volcano-webhook-manager", partial(self._listens, "volcano-admission-service"))
        conf = f"--scheduler-conf={self.making.file('volcano-scheduler.conf')}"
        fast = ("--kube-api-qps=500", "--kube-api-burst=1000")
        self._start("volcano-scheduler", *common, *fast, conf, "--listen-address=127.0.0.1:8082")
        self._start("volcano-controller-manager", *common, *fast, "--listen-address=127.0.0.1:8083")
        queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
        self.space.until("volcano-scheduler", lambda: self.api.get(queue) is not None)

    def _define(self, operator: str) -> list[dict[str, Any]]:
        """Apply an operator's objects, definitions first, and wait until the definitions count."""
        objects: list[dict[str, Any]] = json.loads((self.making.programs / f"{operator}.json").read_text())
        done = self.making.file(f"{operator}-is-defined")
        if done.exists():
            return objects
        early = {DEFINITION, "Namespace"}
        self.api.create([one for one in objects if one["kind"] in early])
        self.api.create(
            [end for one in objects if one["kind"] not in early for end in beside(one, self.place.node)]
        )
        for one in objects:
            if one["kind"] == DEFINITION:
                path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}"
                until(path, partial(self.api.holds, path, "Established"), PATIENCE)
        done.touch()
        return objects

    def _start(self, name: str, *arguments: str | Path) -> None:
        if name not in self.space.running():
            self.space.start(name, [self.making.program(name), *arguments])

    def _listens(self, service: str) -> bool:
        try:
            socket.create_connection((self.place.node, WEBHOOK_PORTS[service]), 1).close()
        except OSError:
            return False
        return True


def beside(one: dict[str, Any], address: str) -> list[dict[str, Any]]:
    """Make a Service lead to a process beside the API server instead of to pods; other objects stay as they are."""
    if one["kind"] != "Service":
        return [one]
    meta = one["metadata"]
    ports = [
        {"name": port.get("name", ""), "port": _port(meta["name"], port), "protocol": "TCP"}
        for port in one["spec"]["ports"]
    ]
    spec = {key: value for key, value in one["spec"].items() if key != "selector"}
    spec["ports"] = [
        {**port, "targetPort": end["port"]} for port, end in zip(spec["ports"], ports, strict=True)
    ]
    ends = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{meta['name']}-beside",
            "namespace": meta["namespace"],
            "labels": {"kubernetes.io/service-name": meta["name"]},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [{**one, "spec": spec}, ends]


def _port(service: str, port: dict[str, Any]) -> int:
    # a Service's other ports are for metrics, which nobody reads here
    number = int(port["port"])
    return WEBHOOK_PORTS.get(service, number) if number == 443 else number
