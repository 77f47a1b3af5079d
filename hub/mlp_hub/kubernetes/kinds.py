"""Kinds of objects of the cluster's API, and the objects as they cross the wire: dictionaries, read by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]
"""An object as the API has it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects. `plural` is its name in paths."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Group of the API that it belongs to; empty for the first one."""
        return self.api_version.rpartition("/")[0]

    @property
    def full_name(self) -> str:
        """Name that no other kind has, as kubectl takes it."""
        return f"{self.plural}.{self.group}".rstrip(".")

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of its objects: of all, of a namespace's, or of one."""
        root = "/api/" if "/" not in self.api_version else "/apis/"
        parts = [root + self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        return "/".join(parts)

    def named(self, name: str, namespace: str | None = None, **fields: Any) -> Object:
        """Return an object of this kind; `fields` are its fields in addition to its metadata."""
        metadata = {"name": name} | ({"namespace": namespace} if self.namespaced and namespace else {})
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}


NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODES = Kind("v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUMES = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PODS = Kind("v1", "Pod", "pods")
EVENTS = Kind("v1", "Event", "events")
CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps")
SECRETS = Kind("v1", "Secret", "secrets")
SERVICES = Kind("v1", "Service", "services")
PERSISTENT_VOLUME_CLAIMS = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
RESOURCE_QUOTAS = Kind("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Kind("v1", "LimitRange", "limitranges")
SERVICE_ACCOUNTS = Kind("v1", "ServiceAccount", "serviceaccounts")
JOBS = Kind("batch/v1", "Job", "jobs")
DAEMON_SETS = Kind("apps/v1", "DaemonSet", "daemonsets")
ROLES = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
NETWORK_POLICIES = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
PRIORITY_CLASSES = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
ADMISSION_POLICIES = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
ADMISSION_BINDINGS = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
SELF_REVIEWS = Kind("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
ENDPOINT_SLICES = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
MPI_JOBS = Kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
TF_JOBS = Kind("kubeflow.org/v1", "TFJob", "tfjobs")
PYTORCH_JOBS = Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs")
VOLCANO_JOBS = Kind("batch.volcano.sh/v1alpha1", "Job", "jobs")
POD_GROUPS = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")
QUEUES = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)
POD_METRICS = Kind("metrics.k8s.io/v1beta1", "PodMetrics", "pods")
NODE_METRICS = Kind("metrics.k8s.io/v1beta1", "NodeMetrics", "nodes", namespaced=False)


def name_of(found: Mapping[str, Any]) -> str:
    """Return an object's name."""
    name: str = found["metadata"]["name"]
    return name


def namespace_of(found: Mapping[str, Any]) -> str:
    """Return the namespace of an object, empty where its kind has none."""
    namespace: str = found["metadata"].get("namespace", "")
    return namespace


def labels_of(found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's labels."""
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    return labels
