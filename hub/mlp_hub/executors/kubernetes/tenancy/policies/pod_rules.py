"""Limits of pods in a tenant's namespace, in CEL, for pods by any creator and for people's templates.

Pod Security covers most of them too. These remain when somebody removes that label.
"""

from __future__ import annotations

from collections.abc import Callable

from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, Installation
from mlp_hub.executors.kubernetes.nodes.devices import DEVICES, GPUS_SEEN
from mlp_hub.executors.kubernetes.tenancy.objects.namespaces import ACCOUNT
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Object

Never = Callable[[str, str], Object]

_VOLUMES = "(!has({s}.volumes) || {s}.volumes.all(v, %s))"


def _containers(rule: str) -> str:
    """Return what all containers `c` keep. They are asked one list after the other: to the API these are of two types."""
    return f"{{s}}.containers.all(c, {rule}) && (!has({{s}}.initContainers) || {{s}}.initContainers.all(c, {rule}))"


_OF_NODES = (
    "(!has({s}.hostNetwork) || !{s}.hostNetwork) && (!has({s}.hostPID) || !{s}.hostPID) && "
    "(!has({s}.hostIPC) || !{s}.hostIPC)"
)
_NO_HOST_PATH = _VOLUMES % "!has(v.hostPath)"
_UNPRIVILEGED = _containers(
    "!has(c.securityContext) || ((!has(c.securityContext.privileged) || !c.securityContext.privileged) && "
    "(!has(c.securityContext.allowPrivilegeEscalation) || !c.securityContext.allowPrivilegeEscalation))"
)
_NO_OTHER_HOST = (
    "(!has({p}.httpGet) || !has({p}.httpGet.host)) && (!has({p}.tcpSocket) || !has({p}.tcpSocket.host))"
)
_ASKED = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_ASKS_ITSELF = " && ".join(
    [
        *(
            _containers(f"!has(c.{probe}) || ({_NO_OTHER_HOST.replace('{p}', f'c.{probe}')})")
            for probe in _ASKED
        ),
        *(
            _containers(
                f"!has(c.lifecycle) || !has(c.lifecycle.{hook}) || "
                f"({_NO_OTHER_HOST.replace('{p}', f'c.lifecycle.{hook}')})"
            )
            for hook in _HOOKS
        ),
    ]
)
"""Safety: the kubelet asks what these name, in the node's network, past all policies. Pod Security refuses it since 1.34 alone."""
_NO_HOST_PORT = _containers("!has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)")
_NO_MORE_RIGHTS = _containers(
    "!has(c.securityContext) || ("
    "(!has(c.securityContext.capabilities) || !has(c.securityContext.capabilities.add) || "
    "size(c.securityContext.capabilities.add) == 0) && "
    '(!has(c.securityContext.procMount) || c.securityContext.procMount in ["", "Default"]) && '
    "(!has(c.securityContext.runAsUser) || c.securityContext.runAsUser > 0) && "
    "(!has(c.securityContext.runAsNonRoot) || c.securityContext.runAsNonRoot))"
)
_NOT_ROOT = (
    "!has({s}.securityContext) || ((!has({s}.securityContext.runAsUser) || {s}.securityContext.runAsUser > 0) && "
    "(!has({s}.securityContext.runAsNonRoot) || {s}.securityContext.runAsNonRoot))"
)
_OWN_ACCOUNT = (
    f'(!has({{s}}.serviceAccountName) || {{s}}.serviceAccountName in ["", "{ACCOUNT}"]) && '
    f'(!has({{s}}.serviceAccount) || {{s}}.serviceAccount in ["", "{ACCOUNT}"])'
)
_NO_IDENTITY = "(!has({s}.automountServiceAccountToken) || !{s}.automountServiceAccountToken) && " + (
    _VOLUMES % "!has(v.projected) || !has(v.projected.sources) || "
    "v.projected.sources.all(p, !has(p.serviceAccountToken) && !has(p.clusterTrustBundle))"
)
_OWN_CLASS = (
    '!has({s}.priorityClassName) || {s}.priorityClassName == "" || {s}.priorityClassName.startsWith("%s-")'
)
_NOT_THE_SYSTEMS = '!has({s}.priorityClassName) || !{s}.priorityClassName.startsWith("system-")'
_NO_CLAIM = _VOLUMES % "!has(v.persistentVolumeClaim) && !has(v.ephemeral)"
_ONLY_FILES = _VOLUMES % (
    f'!has(v.ephemeral) && (!has(v.persistentVolumeClaim) || v.persistentVolumeClaim.claimName == "{FILES_CLAIM}")'
)
_PLAIN = _VOLUMES % "has(v.emptyDir) || has(v.downwardAPI) || has(v.secret)"
_KNOWN = _VOLUMES % (
    "has(v.emptyDir) || has(v.downwardAPI) || has(v.configMap) || has(v.secret) || has(v.projected) || "
    "has(v.persistentVolumeClaim)"
)
_BY_SUB_PATH = _containers(
    "!has(c.volumeDevices) && (!has(c.volumeMounts) || c.volumeMounts.all(m, "
    '(has(m.subPath) && m.subPath != "" && !has(m.subPathExpr)) || !has({s}.volumes) || '
    "!{s}.volumes.exists(v, v.name == m.name && has(v.persistentVolumeClaim))))"
)
_NOT_PLACED = (
    '(!has({s}.nodeName) || {s}.nodeName == "") && (!has({s}.tolerations) || size({s}.tolerations) == 0) && '
    "(!has({s}.nodeSelector) || size({s}.nodeSelector) == 0) && !has({s}.affinity) && "
    "(!has({s}.topologySpreadConstraints) || size({s}.topologySpreadConstraints) == 0) && "
    "(!has({s}.schedulingGates) || size({s}.schedulingGates) == 0) && "
    '(!has({s}.schedulerName) || {s}.schedulerName in ["", "default-scheduler"]) && '
    '(!has({s}.runtimeClassName) || {s}.runtimeClassName == "")'
)
_SIZED = _containers(
    'has(c.resources) && has(c.resources.limits) && "memory" in c.resources.limits && ("cpu" in c.resources.limits || '
    '(has(c.resources.requests) && "cpu" in c.resources.requests))'
)
_GIVEN_OUT = 'r in ["cpu", "memory", "ephemeral-storage"%s] || r.startsWith("nvidia.com/mig-")'
_COUNTED = (
    _containers(
        "!has(c.resources) || (!has(c.resources.claims) && "
        f"(!has(c.resources.limits) || c.resources.limits.all(r, {_GIVEN_OUT})) && "
        f"(!has(c.resources.requests) || c.resources.requests.all(r, {_GIVEN_OUT})))"
    )
    % (("".join(f', "{device}"' for device in DEVICES),) * 4)
    + " && !has({s}.resourceClaims)"
)
"""Safety: resources that the ledger counts; a tenant could take all of any other resource of nodes."""
_GPUS_AS_ASKED = _containers(f'!has(c.env) || c.env.all(e, e.name != "{GPUS_SEEN}")')
_OF_JOBS = (
    """["job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"]"""
)
"""Given: labels that the API itself sets on the pods of a Job, whatever was asked for."""
_OWN_NAMES = (
    "!has(t.metadata) || ((!has(t.metadata.labels) || t.metadata.labels.all(l, "
    f'l in {_OF_JOBS} ? request.kind.kind == "Job" : !l.contains("/"))) && '
    '(!has(t.metadata.annotations) || t.metadata.annotations.all(a, !a.contains("/") || a.startsWith("kubectl.kubernetes.io/"))))'
)
"""Safety: by labels and annotations with a prefix controllers, networks and schedulers know pods, and do what they say."""
_NO_SECRETS = (
    "!has({s}.imagePullSecrets) && " + _VOLUMES % "!has(v.configMap) && !has(v.projected) && "
    '(!has(v.secret) || (variables.own != "" && v.secret.secretName == variables.own))'
    + " && "
    + _containers(
        "!has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || (!has(e.valueFrom.configMapKeyRef) && "
        '(!has(e.valueFrom.secretKeyRef) || (variables.own != "" && has(e.valueFrom.secretKeyRef.name) && '
        "e.valueFrom.secretKeyRef.name == variables.own)))))"
    )
)
"""Safety: of Secrets, pods of a tenant's own cluster read the one that its agent made for their job; others read none."""

_SAY_NODES = "may not use the node's network or processes (hostNetwork, hostPID, hostIPC): leave them out."
_SAY_HOST_PATH = "may not mount directories of the node (hostPath). Homes are mounted by the hub."
_SAY_PRIVILEGED = "may not be privileged: leave securityContext.privileged and allowPrivilegeEscalation out."
_SAY_HOSTS = (
    "may name no host in probes and hooks (livenessProbe, readinessProbe, startupProbe, lifecycle): the node would ask it. "
    "Leave host out: the pod itself is asked."
)
_SAY_PORTS = "may take no port of the node (hostPort): leave it out."
_SAY_RIGHTS = (
    "may have no more rights than others (capabilities.add, procMount, runAsUser 0, runAsNonRoot false): leave them out of "
    "securityContext."
)
_SAY_ACCOUNT = f"may run under the account {ACCOUNT} only: leave serviceAccountName out."
_SAY_IDENTITY = (
    "may have no token of the cluster: leave automountServiceAccountToken and projected tokens out."
)


def of_pods() -> list[Object]:
    """Return what every pod keeps."""
    tenant = f'"{names.TENANT}"'
    labelled = (
        f"has(object.metadata.labels) && {tenant} in object.metadata.labels && {tenant} in namespaceObject.metadata.labels && "
        f"object.metadata.labels[{tenant}] == namespaceObject.metadata.labels[{tenant}]"
    )
    return [
        _of_pod(
            labelled,
            f"carries no label {names.TENANT} of this namespace: only the hub's notebooks and jobs run here.",
        ),
        _of_pod(_OF_NODES, _SAY_NODES),
        _of_pod(_NO_HOST_PATH, _SAY_HOST_PATH),
        _of_pod(_UNPRIVILEGED, _SAY_PRIVILEGED),
        _of_pod(_ASKS_ITSELF, _SAY_HOSTS),
        _of_pod(_NO_HOST_PORT, _SAY_PORTS),
        _of_pod(_NO_MORE_RIGHTS, _SAY_RIGHTS),
        _of_pod(_NOT_ROOT, _SAY_RIGHTS),
        _of_pod(_OWN_ACCOUNT, _SAY_ACCOUNT),
        _of_pod(_NO_IDENTITY, _SAY_IDENTITY),
        _of_pod(_NOT_THE_SYSTEMS, "may not have a priority of the cluster's own parts."),
        _of_pod(_ONLY_FILES, f"may mount no claim but {FILES_CLAIM}."),
        _of_pod(
            _KNOWN,
            "may have no volumes of other kinds than emptyDir, configMap, secret, projected and claims.",
        ),
        _of_pod(
            _BY_SUB_PATH, f"may mount {FILES_CLAIM} by a subPath only: the whole of it is everybody's files."
        ),
    ]


def of_templates(at: Installation, never: Never) -> list[Object]:
    """Return what templates keep that people give; `never` makes a rule of an expression and its sentence."""

    def each(rule: str, message: str) -> Object:
        return never(f"variables.templates.all(t, {rule.replace('{s}', 't.spec')})", message)

    return [
        each(_OF_NODES, _SAY_NODES),
        each(_NO_HOST_PATH, _SAY_HOST_PATH),
        each(_UNPRIVILEGED, _SAY_PRIVILEGED),
        each(_ASKS_ITSELF, _SAY_HOSTS),
        each(_NO_HOST_PORT, _SAY_PORTS),
        each(_NO_MORE_RIGHTS, _SAY_RIGHTS),
        each(_NOT_ROOT, _SAY_RIGHTS),
        each(_OWN_ACCOUNT, _SAY_ACCOUNT),
        each(_NO_IDENTITY, _SAY_IDENTITY),
        each(
            _OWN_CLASS % at.name,
            f"may name no priority class but {at.name}-...: leave priorityClassName out.",
        ),
        each(
            _NOT_PLACED,
            "may choose no node (nodeName, nodeSelector, affinity, tolerations, schedulerName, runtimeClassName and the like): leave them out. "
            "The hub places jobs.",
        ),
        never(
            f"variables.templates.all(t, {_OWN_NAMES})",
            "may set on pods no labels and no annotations with a prefix: by them others' pods are found, and networks are chosen.",
        ),
        each(
            _SIZED,
            "has to say of each container what it needs: resources.limits.memory, and cpu in limits or requests. It is counted so.",
        ),
        each(
            _COUNTED,
            "may ask for cpu, memory, ephemeral-storage and GPUs only (no resourceClaims): the rest is not counted.",
        ),
        each(
            _GPUS_AS_ASKED,
            f"may not set {GPUS_SEEN}: a container has the GPUs that it asks for in resources.limits.",
        ),
        each(_NO_CLAIM, "may mount no claim: homes are mounted by the hub."),
        each(
            _NO_SECRETS, "may read no Secret and no ConfigMap: those here are of others' notebooks and jobs."
        ),
        each(_PLAIN, "may have no volumes but emptyDir and downwardAPI."),
    ]


def _of_pod(rule: str, message: str) -> Object:
    who = 'has(object.metadata.name) ? object.metadata.name : object.metadata.generateName + "..."'
    return {
        "expression": rule.replace("{s}", "object.spec"),
        "messageExpression": f'"MLP Hub: pod " + ({who}) + " {message}"',
        "reason": "Forbidden",
    }
