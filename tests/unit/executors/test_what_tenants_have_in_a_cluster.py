"""All that stands in a cluster for a tenant and for all of them, whole (`golden/`; `pytest --golden` writes it anew)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.tenancy.conflicts import MOST_S, Fights
from mlp_hub.executors.kubernetes.tenancy.drift import digest, strangers, without_more
from mlp_hub.executors.kubernetes.tenancy.objects.limits import resource_quota
from mlp_hub.executors.kubernetes.tenancy.objects.members import AT_ONCE, bindings
from mlp_hub.executors.kubernetes.tenancy.tenant import for_all, for_tenant
from mlp_hub.kubernetes.kinds import ADMISSION_POLICIES
from support.cluster.kube_installation import installation

GOLDEN = Path(__file__).parent / "golden"
AT = installation(dns=("10.99.0.1/32",), identities=("system:serviceaccount:mlp-hub:hub",))
PLACE = TenantPlace("red", Quota(cpu=4500, gpu=2500, ram=8192), ("bob", "ann"))


def written(objects: list[dict]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, width=120, allow_unicode=True)


def test_a_tenants_objects(golden: Callable[[Path, str], None]) -> None:
    objects = for_tenant(AT, PLACE, ["203.0.113.7/32"], volcano=True)
    golden(GOLDEN / "tenant.yaml", written([each for _, each in objects]))


def test_the_objects_of_all_tenants(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "all-tenants.yaml", written([each for _, each in for_all(AT, "admin")]))


def test_resources_excluded_from_one_admission_policy_are_covered_by_another() -> None:
    """Else a cluster whose operator has the kind in another version would take any job of it, by anybody's rules."""
    specs = [each["spec"] for kind, each in for_all(installation(), "hub") if kind == ADMISSION_POLICIES]

    def told(spec: dict, which: str) -> set[tuple[str, str, str]]:
        rules = spec["matchConstraints"][which]
        return {(r["apiGroups"][0], r["apiVersions"][0], r["resources"][0]) for r in rules}

    looked_at = {each for spec in specs for each in told(spec, "resourceRules")}
    left = {each for spec in specs for each in told(spec, "excludeResourceRules")}
    harmless = {("authorization.k8s.io", "*", "*"), ("", "*", "pods/eviction")}
    assert left - harmless <= looked_at
    assert ("kubeflow.org", "v2beta1", "mpijobs") in left


def test_every_object_says_whose_it_is() -> None:
    for _, each in (*for_tenant(AT, PLACE, volcano=True), *for_all(AT, "admin")):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "mlp-hub"
        assert labels["app.kubernetes.io/instance"] == "mlp"
        assert labels["app.kubernetes.io/component"] == "tenancy"


def test_a_quota_lets_a_whole_generation_of_pods_end_while_the_next_one_starts() -> None:
    _, found = resource_quota(AT, "red", Quota(cpu=4500, gpu=500, ram=100))
    assert found["spec"]["hard"] == {
        "requests.cpu": "9000m",
        "requests.memory": "200Mi",
        "requests.nvidia.com/gpu": "1",
        "requests.nvidia.com/gpu.shared": "1",
        "requests.amd.com/gpu": "1",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }


def test_without_a_limit_of_the_tenant_there_is_none_in_the_cluster() -> None:
    _, found = resource_quota(AT, "red", Quota())
    assert found["spec"]["hard"] == {"services.loadbalancers": "0", "services.nodeports": "0"}


def test_many_members_are_several_bindings() -> None:
    found = bindings(AT, "red", [f"u{n:05}" for n in range(AT_ONCE + 1)])
    assert [(each["metadata"]["name"], len(each["subjects"])) for _, each in found] == [
        ("mlp-member-0", AT_ONCE),
        ("mlp-member-1", 1),
    ]


def test_names_of_tenants_that_a_namespace_cannot_have_do_not_meet() -> None:
    names = {
        for_tenant(AT, TenantPlace(name))[0][1]["metadata"]["name"] for name in ("Team A", "team a", "team-a")
    }
    assert len(names) == 3
    assert "mlp-team-a" in names


def test_a_new_status_does_not_count_as_a_change_and_a_label_does() -> None:
    found = {
        "metadata": {"name": "x", "resourceVersion": "1"},
        "spec": {"a": 1},
        "status": {"phase": "Pending"},
    }
    later = {
        "metadata": {"name": "x", "resourceVersion": "2"},
        "spec": {"a": 1},
        "status": {"phase": "Bound"},
    }
    assert digest(found) == digest(later)
    later["metadata"]["labels"] = {"a": "b"}
    assert digest(found) != digest(later)


def test_a_manager_that_edits_an_object_is_foreign_and_one_that_writes_its_status_is_not() -> None:
    def manages(manager: str, field: str, **more: str) -> dict:
        return {"manager": manager, "fieldsV1": {field: {}}, **more}

    fields = [
        manages("mlp-hub", "f:spec"),
        manages("kubectl-edit", "f:spec"),
        manages("kubectl-label", "f:metadata"),
        manages("controller", "f:spec", subresource="status"),
    ]
    assert strangers({"metadata": {"managedFields": fields}}) == ["kubectl-edit"]


def test_foreign_additions_are_removed_at_any_depth() -> None:
    wanted = {"kind": "K", "metadata": {}, "spec": {"a": {"b": 1}, "list": [1]}}
    found = {"kind": "K", "metadata": {}, "spec": {"a": {"b": 2, "c": 3}, "list": [1, 2], "more": {}}}
    assert without_more(wanted, found) == {"spec": {"a": {"b": 1, "c": None}, "list": [1], "more": None}}


def test_a_contested_object_is_put_back_less_and_less_often() -> None:
    fights = Fights()
    waits = [fights.next_wait("x") for _ in range(20)]
    assert waits == sorted(waits)
    assert waits[-1] == MOST_S
    assert fights.next_wait("y") == waits[0]
