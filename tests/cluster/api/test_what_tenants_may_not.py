"""Somebody with kubectl in one tenant's namespace, with more rights there than any member gets: `edit`, and all they could be given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from mlp_hub.executors.base import TenantPlace
from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS, Kind
from support.cluster.kube import Kube, RefusedError
from support.cluster.pods import SMALL, asked, pod, pod_spec
from support.cluster.tenancy import as_somebody, tenancy
from support.waiting import wait_for

KINDS = [JOBS, MPI_JOBS, TF_JOBS, PYTORCH_JOBS]


ALL = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "all"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}


class Attacker:
    """Ann, member of red, to whom somebody gave all rights in red's namespace."""

    def __init__(self, kube: Kube, name: str) -> None:
        self.kube, self.name, self.namespace = kube, name, f"{name}-red"
        self.kubectl = as_somebody(kube, "mlp:ann", self.namespace)
        self.tenant = {"mlp-hub/tenant": "red"}

    def creates(self, given: dict[str, Any]) -> str:
        return self.kubectl("create", "-f", "-", given=given)

    def refused(self, given: dict[str, Any]) -> str:
        with pytest.raises(RefusedError) as refusal:
            self.creates(given)
        return str(refusal.value)


@pytest.fixture(scope="module")
def ann(kube: Kube) -> Iterator[Attacker]:
    """One installation for all of these, since none changes it."""
    loop = asyncio.new_event_loop()
    own = tenancy(kube)
    made = loop.run_until_complete(own.__aenter__())
    try:
        loop.run_until_complete(made.keep(TenantPlace("red", members=("ann", "bob")), TenantPlace("blue")))
        attacker = Attacker(kube, made.at.name)
        kube(
            "-n",
            attacker.namespace,
            "create",
            "rolebinding",
            "too-much",
            "--clusterrole=admin",
            "--user=mlp:ann",
        )
        kube("-n", attacker.namespace, "apply", "-f", "-", given=json.dumps(ALL))
        kube("-n", attacker.namespace, "create", "rolebinding", "all", "--role=all", "--user=mlp:ann")

        yield attacker
    finally:
        loop.run_until_complete(own.__aexit__(None, None, None))
        loop.close()


def test_the_policies_are_of_the_right_types(ann: Attacker) -> None:
    found = ann.kube.get("validatingadmissionpolicies", "-l", f"app.kubernetes.io/instance={ann.name}")[
        "items"
    ]

    def checked() -> bool:
        now = ann.kube.get("validatingadmissionpolicies", "-l", f"app.kubernetes.io/instance={ann.name}")[
            "items"
        ]
        return all("typeChecking" in each.get("status", {}) for each in now)

    wait_for(checked)
    assert len(found) == 6
    found = ann.kube.get("validatingadmissionpolicies", "-l", f"app.kubernetes.io/instance={ann.name}")[
        "items"
    ]
    assert {each["metadata"]["name"]: each["status"]["typeChecking"] for each in found} == {
        f"{ann.name}-{of}": {} for of in ("pods", "writes", "jobs", "mpijobs", "tfjobs", "pytorchjobs")
    }


OTHERS: dict[str, dict[str, Any]] = {
    "pod with the hub's labels": pod(
        "p", {"mlp-hub/tenant": "red", "mlp-hub/job": "x", "mlp-hub/attempt": "x"}
    ),
    "deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b", "mlp-hub/tenant": "red"}},
                "spec": pod_spec(restartPolicy="Always"),
            },
        },
    },
    "cronjob": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}},
    },
    "volcano job": {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v"},
        "spec": {
            "minAvailable": 1,
            "tasks": [{"name": "w", "replicas": 1, "template": {"spec": pod_spec()}}],
        },
    },
    "policy that opens all": {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "open"},
        "spec": {"podSelector": {}, "ingress": [{}], "egress": [{}], "policyTypes": ["Ingress", "Egress"]},
    },
    "claim to another's files": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "theirs"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "mlp-files-blue",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    },
    "config map": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"mlp-hub/attempt": "x"}},
    },
    "secret": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
    "service": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    },
    "account": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other"}},
    "binding": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mlp-member"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mlp:eve"}],
    },
}


def test_a_pod_is_not_created(ann: Attacker) -> None:
    """Two policies refuse it; which of them is asked first is the API's to choose."""
    said = ann.refused(pod("p"))
    assert (
        "only the hub's notebooks and jobs run here" in said
        or "may create, change and remove nothing here" in said
    )


@pytest.mark.parametrize("what", OTHERS)
def test_nothing_but_jobs_is_created(ann: Attacker, what: str) -> None:
    assert "MLP Hub: mlp:ann may create, change and remove nothing here" in ann.refused(OTHERS[what])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_job_that_keeps_all_rules_is_taken_and_changed_by_nobody_but_removed(
    ann: Attacker, kind: Kind
) -> None:
    """Each of these changes would let it run, make it another's or larger."""
    ann.creates(asked(kind, "red", name="kept"))
    plural = f"{kind.plural}.{kind.api_version.partition('/')[0]}"
    bob = as_somebody(ann.kube, "mlp:bob", ann.namespace)
    running = {"spec": {"suspend": False} if kind == JOBS else {"runPolicy": {"suspend": False}}}
    for change in (
        running,
        {"metadata": {"annotations": {"mlp-hub/user": "bob"}}},
        {"metadata": {"labels": {"mlp-hub/queue": None}}},
        {"metadata": {"annotations": {"mlp-hub/job-uid": "x"}}},
        {"spec": {"parallelism": 9} if kind == JOBS else {"runPolicy": {"backoffLimit": 9}}},
        {"metadata": {"ownerReferences": [owner_of(ann, kind)]}},
    ):
        said = pods_way(ann, "patch", plural, "kept", "--type=merge", "-p", json.dumps(change))
        assert "MLP Hub: mlp:ann may not change jobs here" in said, change
    said = pods_way(ann, "patch", plural, "kept", "--subresource=status", "--type=merge", "-p", "{}")
    assert "may create, change and remove nothing here" in said
    with pytest.raises(RefusedError, match="may remove here only jobs that they made with kubectl"):
        bob("delete", plural, "kept")
    ann.kubectl("delete", plural, "kept", "--wait=false")


def owner_of(ann: Attacker, kind: Kind) -> dict[str, Any]:
    """Return a reference to something of another's."""
    namespace = ann.kube.get("namespace", ann.namespace)["metadata"]
    return {"apiVersion": "v1", "kind": "Namespace", "name": ann.namespace, "uid": namespace["uid"]}


def test_a_job_belongs_to_its_creator(ann: Attacker) -> None:
    assert "in the annotation mlp-hub/user: ann" in ann.refused(asked(JOBS, "red", user="bob"))
    assert "in the annotation mlp-hub/user: ann" in ann.refused(asked(MPI_JOBS, "red", user=None))
    ann.kube("-n", ann.namespace, "create", "rolebinding", "eve", "--role=all", "--user=eve")
    with pytest.raises(RefusedError, match=r"in the annotation mlp-hub/user: NAME\. Who has none is known"):
        as_somebody(ann.kube, "eve", ann.namespace)("create", "-f", "-", given=asked(JOBS, "red", user="eve"))


def test_a_job_may_not_pose_as_anothers_or_grow(ann: Attacker) -> None:
    given = asked(JOBS, "red")
    given["metadata"]["ownerReferences"] = [owner_of(ann, JOBS)]
    assert "with owners or finalizers" in ann.refused(given)
    given = asked(TF_JOBS, "red")
    given["metadata"]["finalizers"] = ["a.example.org/stays"]
    assert "with owners or finalizers" in ann.refused(given)
    given = asked(JOBS, "red")
    given["metadata"]["annotations"]["mlp-hub/job-uid"] = "x"
    assert "may set no annotations of the hub but mlp-hub/user" in ann.refused(given)
    given = asked(JOBS, "red")
    given["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}
    given["spec"]["template"]["metadata"]["labels"] = {"a": "b"}
    assert "may not set manualSelector" in ann.refused(given)
    assert "a name that ends with -launcher" in ann.refused(asked(JOBS, "red", name="bobs-launcher"))
    given = asked(PYTORCH_JOBS, "red")
    given["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 9}
    assert "may set no elasticPolicy" in ann.refused(given)
    given = asked(MPI_JOBS, "red")
    given["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "t-blue"}
    assert "may set no schedulingPolicy" in ann.refused(given)


@pytest.mark.differs("Jobs from outside the hub", only="cluster")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_job_without_a_queue_or_with_anothers_is_refused(ann: Attacker, kind: Kind) -> None:
    assert f"may create a {kind.kind} here only with the label mlp-hub/queue" in ann.refused(
        asked(kind, None)
    )
    assert "may name in mlp-hub/queue only the tenant of this namespace" in ann.refused(asked(kind, "blue"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_job_that_would_run_at_once_is_refused(ann: Attacker, kind: Kind) -> None:
    assert f"may create a {kind.kind} here only suspended" in ann.refused(asked(kind, "red", suspend=False))


def mounts(volume: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **volume}]}


TEMPLATES: dict[str, tuple[dict[str, Any], str]] = {
    "hostPath": (mounts({"hostPath": {"path": "/"}}), "may not mount directories of the node (hostPath)"),
    "hostNetwork": ({"hostNetwork": True}, "may not use the node's network or processes"),
    "hostPID": ({"hostPID": True}, "may not use the node's network or processes"),
    "privileged": ({"container": {"securityContext": {"privileged": True}}}, "may not be privileged"),
    "an init container": (
        {"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": True}}]},
        "may not be privileged",
    ),
    "a probe of another host": (
        {"container": {"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}},
        "may name no host in probes and hooks",
    ),
    "a socket probe of another host": (
        {"container": {"readinessProbe": {"tcpSocket": {"host": "127.0.0.1", "port": 10250}}}},
        "may name no host in probes and hooks",
    ),
    "a startup probe of the node": (
        {"container": {"startupProbe": {"httpGet": {"host": "127.0.0.1", "port": 10250}}}},
        "may name no host in probes and hooks",
    ),
    "a hook to another host": (
        {"container": {"lifecycle": {"postStart": {"httpGet": {"host": "127.0.0.1", "port": 80}}}}},
        "may name no host in probes and hooks",
    ),
    "a last hook to another host": (
        {"container": {"lifecycle": {"preStop": {"httpGet": {"host": "127.0.0.1", "port": 80}}}}},
        "may name no host in probes and hooks",
    ),
    "a port of the node": (
        {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}},
        "may take no port of the node",
    ),
    "a capability": (
        {"container": {"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}},
        "may have no more rights than others",
    ),
    "root": ({"container": {"securityContext": {"runAsUser": 0}}}, "may have no more rights than others"),
    "root for all": ({"securityContext": {"runAsUser": 0}}, "may have no more rights than others"),
    "another account": ({"serviceAccountName": "builder"}, "may run under the account default only"),
    "a token": ({"automountServiceAccountToken": True}, "may have no token of the cluster"),
    "a projected token": (
        mounts({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
        "may have no token of the cluster",
    ),
    "a foreign class": ({"priorityClassName": "system-node-critical"}, "may name no priority class but"),
    "a node": ({"nodeName": "n1"}, "may choose no node"),
    "tolerations": ({"tolerations": [{"operator": "Exists"}]}, "may choose no node"),
    "a kind of node": ({"nodeSelector": {"a": "b"}}, "may choose no node"),
    "a runtime of nodes": ({"runtimeClassName": "nvidia"}, "may choose no node"),
    "a device that is not counted": (
        {"container": {"resources": {**SMALL, "limits": {"memory": "64Mi", "example.com/tpu": "8"}}}},
        "may ask for cpu, memory, ephemeral-storage and GPUs only",
    ),
    "all GPUs of the node by a variable": (
        {"container": {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}},
        "may not set NVIDIA_VISIBLE_DEVICES",
    ),
    "large pages": (
        {"container": {"resources": {**SMALL, "limits": {"memory": "64Mi", "hugepages-2Mi": "8Gi"}}}},
        "may ask for cpu, memory, ephemeral-storage and GPUs only",
    ),
    "a device by a claim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "bobs"}]},
        "may ask for cpu, memory, ephemeral-storage and GPUs only",
    ),
    "no resources": ({"container": {"resources": {}}}, "has to say of each container what it needs"),
    "no limit of memory": (
        {"container": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}},
        "has to say of each container what it needs",
    ),
    "pods that others' services find": (
        {"template": {"training.kubeflow.org/job-name": "bobs"}},
        "may set on pods no labels and no annotations with a prefix",
    ),
    "everybody's files": (
        mounts({"persistentVolumeClaim": {"claimName": "mlp-files"}}),
        "may mount no claim",
    ),
    "a home by its subPath": (
        {
            **mounts({"persistentVolumeClaim": {"claimName": "mlp-files"}}),
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/h", "subPath": "homes/bob"}]},
        },
        "may mount no claim",
    ),
    "a secret": (mounts({"secret": {"secretName": "ssh"}}), "may read no Secret and no ConfigMap"),
    "a secret in the environment": (
        {"container": {"env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}},
        "may read no Secret and no ConfigMap",
    ),
    "another's attempt": (mounts({"configMap": {"name": "digits"}}), "may read no Secret and no ConfigMap"),
    "a volume of another kind": (
        mounts({"csi": {"driver": "files.csi.example.org"}}),
        "may have no volumes but emptyDir and downwardAPI",
    ),
    "forged labels": (
        {"template": {"mlp-hub/network": "outbound"}},
        "may set on pods no labels and no annotations with a prefix",
    ),
    "pods that pose as the hub's": (
        {"template": {"app.kubernetes.io/managed-by": "mlp-hub"}},
        "may set on pods no labels and no annotations with a prefix",
    ),
}


@pytest.mark.parametrize(
    "annotation",
    ["k8s.v1.cni.cncf.io/networks", "scheduling.k8s.io/group-name", "mlp-hub/end", "sidecar.istio.io/inject"],
)
def test_pods_are_given_no_annotation_that_a_network_or_a_scheduler_obeys(
    ann: Attacker, annotation: str
) -> None:
    given = asked(JOBS, "red")
    given["spec"]["template"]["metadata"]["annotations"] = {annotation: "others"}
    assert "may set on pods no labels and no annotations with a prefix" in ann.refused(given)


@pytest.mark.parametrize(("role", "replicas"), [("Worker", -8), ("Mirror", -8), ("Mirror", 1)])
@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.kind)
def test_pods_that_are_less_than_none_or_of_no_role_are_refused(
    ann: Attacker, kind: Kind, role: str, replicas: int
) -> None:
    given = asked(kind, "red")
    specs = next(of for name, of in given["spec"].items() if name.endswith("ReplicaSpecs"))
    specs[role] = {"replicas": replicas, "template": next(iter(specs.values()))["template"]}
    said = ann.refused(given)  # of a kind that can be scaled the API itself looks at the number
    assert "may ask for pods of the roles" in said or "should be a non-negative integer" in said


@pytest.mark.parametrize("what", TEMPLATES)
def test_forbidden_fields_of_a_template_are_refused(ann: Attacker, what: str) -> None:
    fields, said = TEMPLATES[what]
    other = KINDS[1 + list(TEMPLATES).index(what) % 3]
    for kind in (JOBS, other):
        assert said in ann.refused(asked(kind, "red", **fields)), kind


def test_labels_of_the_hub_are_not_forged_on_a_job(ann: Attacker) -> None:
    for label in ("mlp-hub/attempt", "mlp-hub/user", "app.kubernetes.io/managed-by"):
        assert "may set no labels of the hub" in ann.refused(asked(JOBS, "red", labels={label: "mlp-hub"}))


def pods_way(ann: Attacker, *words: str) -> str:
    with pytest.raises(RefusedError) as refusal:
        ann.kubectl(*words)
    return str(refusal.value)


@pytest.fixture(scope="module")
def notebook(ann: Attacker) -> str:
    ann.kube("-n", ann.namespace, "create", "-f", "-", given=json.dumps(pod("notebook", ann.tenant)))
    return "notebook"


@pytest.mark.parametrize("way", ["exec?command=sh", "attach", "portforward?ports=8888", "proxy/"])
def test_nobody_gets_into_a_pod(ann: Attacker, notebook: str, way: str) -> None:
    path = f"/api/v1/namespaces/{ann.namespace}/pods/{notebook}/{way}"
    assert "may not get into pods or services here" in pods_way(ann, "get", "--raw", path)


def test_no_container_is_added_to_a_pod(ann: Attacker, notebook: str) -> None:
    more = {"spec": {"ephemeralContainers": [{**pod_spec()["containers"][0], "name": "e"}]}}
    words = ["patch", "pod", notebook, "--subresource=ephemeralcontainers", "-p", json.dumps(more)]
    assert "may not add containers to pods here" in pods_way(ann, *words)


def test_an_accounts_token_is_not_to_be_had(ann: Attacker) -> None:
    assert "may not have tokens of a tenant's accounts" in pods_way(ann, "create", "token", "default")


CHANGES: dict[str, list[str]] = {
    "a pod's labels": ["label", "pod", "notebook", "mlp-hub/network=outbound"],
    "a policy": ["patch", "networkpolicy", "mlp-closed", "--type=merge", "-p", '{"spec":{"ingress":[{}]}}'],
    "the quota": [
        "patch",
        "resourcequota",
        "mlp-limits",
        "--type=merge",
        "-p",
        '{"spec":{"hard":{"pods":"9"}}}',
    ],
    "the account": ["patch", "serviceaccount", "default", "-p", '{"automountServiceAccountToken":true}'],
    "a pod's life": ["delete", "pod", "notebook", "--wait=false"],
    "a policy's life": ["delete", "networkpolicy", "mlp-closed"],
    "the role": ["patch", "role", "mlp-member", "--type=json", "-p", '[{"op":"remove","path":"/rules/0"}]'],
}


@pytest.mark.parametrize("what", CHANGES)
def test_nothing_of_the_tenant_is_changed(ann: Attacker, notebook: str, what: str) -> None:
    assert "may create, change and remove nothing here" in pods_way(ann, *CHANGES[what])


def test_an_account_of_the_tenants_own_may_no_more(ann: Attacker) -> None:
    name = f"system:serviceaccount:{ann.namespace}:default"
    ann.kube("-n", ann.namespace, "create", "rolebinding", "pods-too", "--role=all", f"--user={name}")
    with pytest.raises(RefusedError, match="may create, change and remove nothing here"):
        as_somebody(ann.kube, name, ann.namespace)("create", "configmap", "c")


def test_an_account_from_elsewhere_starts_nothing_but_may_watch_over_the_rest(ann: Attacker) -> None:
    name = "system:serviceaccount:ci:runner"
    ann.kube("-n", ann.namespace, "create", "rolebinding", "runner", "--role=all", f"--user={name}")
    runner = as_somebody(ann.kube, name, ann.namespace)
    runner("create", "configmap", "trust-bundle")
    for what in ("pod with the hub's labels", "deployment", "cronjob"):
        with pytest.raises(RefusedError, match="may create, change and remove nothing here"):
            runner("create", "-f", "-", given=OTHERS[what])


FOR_ALL: dict[str, tuple[dict[str, Any], str]] = {
    "no label of its tenant": ({"labels": {}}, "carries no label mlp-hub/tenant of this namespace"),
    "another tenant's label": ({"labels": {"mlp-hub/tenant": "blue"}}, "carries no label mlp-hub/tenant"),
    "another account": ({"serviceAccountName": "builder"}, "may run under the account default only"),
    "a token": ({"automountServiceAccountToken": True}, "may have no token of the cluster"),
    "a priority of the system": ({"priorityClassName": "system-cluster-critical"}, "may not have a priority"),
    "another claim": (
        mounts({"persistentVolumeClaim": {"claimName": "other"}}),
        "may mount no claim but mlp-files",
    ),
    "a volume of another kind": (
        mounts({"csi": {"driver": "files.csi.example.org"}}),
        "may have no volumes of other kinds",
    ),
    "all files": (
        {
            **mounts({"persistentVolumeClaim": {"claimName": "mlp-files"}}),
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/all"}]},
        },
        "may mount mlp-files by a subPath only",
    ),
    "files by a name out of its environment": (
        {
            **mounts({"persistentVolumeClaim": {"claimName": "mlp-files"}}),
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/all", "subPathExpr": "$(A)"}]},
        },
        "may mount mlp-files by a subPath only",
    ),
}


@pytest.mark.parametrize("what", FOR_ALL)
def test_forbidden_pods_are_refused_whoever_creates_them(ann: Attacker, what: str) -> None:
    """The hub's own and the operators' too: a template that got past all else stops here."""
    fields, said = FOR_ALL[what]
    given = pod("p", fields.get("labels", ann.tenant), **{k: v for k, v in fields.items() if k != "labels"})
    if "serviceAccountName" in fields:
        ann.kube("-n", ann.namespace, "create", "serviceaccount", "builder")
    with pytest.raises(RefusedError) as refusal:
        ann.kube("-n", ann.namespace, "create", "-f", "-", given=json.dumps(given))
    assert "MLP Hub: pod p" in str(refusal.value)
    assert said in str(refusal.value)


@pytest.mark.parametrize("what", ["hostPath", "hostNetwork", "hostPID", "privileged"])
def test_without_the_label_of_pod_security_the_same_is_refused(ann: Attacker, what: str) -> None:
    fields, said = TEMPLATES[what]
    ann.kube(
        "label", "namespace", ann.namespace, "pod-security.kubernetes.io/enforce=privileged", "--overwrite"
    )
    with pytest.raises(RefusedError) as refusal:
        ann.kube("-n", ann.namespace, "create", "-f", "-", given=json.dumps(pod("p", ann.tenant, **fields)))
    assert said in str(refusal.value) or "violates PodSecurity" in str(refusal.value)


def test_the_hubs_own_pods_and_homes_by_their_sub_path_pass(ann: Attacker) -> None:
    files = {
        **mounts({"persistentVolumeClaim": {"claimName": "mlp-files"}}),
        "container": {"volumeMounts": [{"name": "v", "mountPath": "/home/ann", "subPath": "homes/ann"}]},
    }
    given = pod("fits", ann.tenant, priorityClassName=f"{ann.name}-job", **files)
    ann.kube("-n", ann.namespace, "create", "-f", "-", given=json.dumps(given))


def test_a_member_reads_their_own_namespace_and_no_other(kube: Kube, ann: Attacker) -> None:
    """Bob has what members have and no more: no object that holds a token."""
    own = as_somebody(kube, "mlp:bob", ann.namespace)
    own("get", "pods,events,jobs,mpijobs,tfjobs,pytorchjobs,resourcequotas", "-o", "name")
    own("auth", "can-i", "get", "pods", "--subresource=log")
    for what in ("secrets", "configmaps", "serviceaccounts"):
        with pytest.raises(RefusedError, match=f'User "mlp:bob" cannot list resource "{what}"'):
            own("get", what)
    for verb, what in (
        ("create", "pods"),
        ("create", "pods/exec"),
        ("get", "pods/exec"),
        ("create", "pods/attach"),
        ("create", "pods/portforward"),
        ("get", "pods/proxy"),
        ("update", "pods/ephemeralcontainers"),
        ("patch", "jobs"),
        ("update", "mpijobs"),
        ("deletecollection", "jobs"),
    ):
        resource, _, part = what.partition("/")
        with pytest.raises(RefusedError):
            own("auth", "can-i", verb, resource, *([f"--subresource={part}"] if part else []))
    with pytest.raises(RefusedError, match='User "mlp:bob" cannot list resource "pods"'):
        as_somebody(kube, "mlp:bob", f"{ann.name}-blue")("get", "pods")
