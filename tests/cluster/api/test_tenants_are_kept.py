"""What tenants have in a real cluster: made as told, put back, removed, and nothing of anybody else's touched."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import Superseded, TenantPlace
from mlp_hub.executors.kubernetes.tenancy.apply import Foreign
from mlp_hub.executors.kubernetes.tenancy.keeper import KEPT, TenantKeeper
from mlp_hub.executors.kubernetes.tenancy.objects import files
from mlp_hub.executors.kubernetes.tenancy.required_rights import NEEDS, QUEUES, lacking
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.errors import ForbiddenError
from mlp_hub.kubernetes.kinds import Kind, Object
from mlp_language.render import ENGLISH, render
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.cluster.pods import pod
from support.cluster.tenancy import Tenancy, connect_as, running_rig, tenancy
from support.waiting import until

RED = TenantPlace("red", Quota(cpu=4000, ram=8192, gpu=2000), ("ann", "bob"))
BLUE = TenantPlace("blue")


def calls(own: Tenancy) -> int:
    return sum(own.client.calls.values())


async def calm(own: Tenancy) -> None:
    """Return once nothing is asked of the cluster any more."""
    seen = [-1]

    async def look() -> bool:
        before, seen[0] = seen[0], calls(own)
        return before == seen[0]

    await until(look, what="calm", every=1.0)


async def test_a_tenant_has_its_namespace_and_all_objects_in_it(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        name, namespace = own.at.name, f"{own.at.name}-red"
        there = await own.all()
        assert {
            each
            for each in there
            if each[0] not in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        } == {
            ("Namespace", "", namespace),
            ("PersistentVolume", "", f"{name}-files-red"),
            ("PriorityClass", "", f"{name}-job"),
            ("PriorityClass", "", f"{name}-notebook"),
            ("Queue", "", namespace),
            ("LimitRange", namespace, "mlp-limits"),
            ("ResourceQuota", namespace, "mlp-limits"),
            ("NetworkPolicy", namespace, "mlp-apps"),
            ("NetworkPolicy", namespace, "mlp-closed"),
            ("NetworkPolicy", namespace, "mlp-names"),
            ("NetworkPolicy", namespace, "mlp-outbound"),
            ("NetworkPolicy", namespace, "mlp-platform"),
            ("PersistentVolumeClaim", namespace, "mlp-files"),
            ("Role", namespace, "mlp-member"),
            ("RoleBinding", namespace, "mlp-member-0"),
            ("ServiceAccount", namespace, "default"),
        }

        async def bound() -> bool:
            found = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
            return found is not None and found["status"].get("phase") == "Bound"

        await own.until(bound, "the claim to be bound")


async def test_a_volume_is_written_once_and_left_alone_while_it_is_bound(kube: Kube) -> None:
    # who writes it while the cluster binds it has its claim wait for 15 s, and the tenant's first pods with it

    async with running_rig(kube) as own:
        await own.keep(RED)

        async def bound() -> bool:
            claim = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
            return claim is not None and claim.get("status", {}).get("phase") == "Bound"

        await own.until(bound, "the claim to be bound")
        await calm(own)
        assert own.client.calls["apply persistentvolumes"] == 1
        assert own.client.calls["apply persistentvolumeclaims"] == 1


def named_by(claim: Object) -> set[str]:
    """Return who wrote the name of its volume into a claim."""
    return {
        each["manager"]
        for each in claim["metadata"]["managedFields"]
        if "f:volumeName" in each["fieldsV1"].get("f:spec", {})
    }


async def test_the_cluster_itself_names_the_volume_in_a_new_claim(kube: Kube) -> None:
    # where the claim names it, two workers of the cluster's controller write the volume at once: every other claim waits for 15 s

    async with running_rig(kube) as own:
        await own.keep(RED)
        for _ in ("made", "made again"):

            async def bound() -> Object | None:
                found = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
                return found if found is not None and found["status"].get("phase") == "Bound" else None

            claim = await own.until(bound, "the claim to be bound")
            assert claim["spec"]["volumeName"] == f"{own.at.name}-files-red"
            assert named_by(claim) == {"kube-controller-manager"}
            gone = claim["metadata"]["uid"]
            await own.client.delete(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", f"{own.at.name}-red")

            async def other(gone: str = gone) -> bool:
                found = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
                return found is not None and found["metadata"]["uid"] != gone

            await own.until(other, "another claim")


async def test_a_claim_that_named_its_volume_itself_stays_as_it_was(kube: Kube) -> None:
    # as those that an earlier version made

    async with running_rig(kube) as own:
        await own.keep(RED)
        await own.keeper.close()
        namespace = f"{own.at.name}-red"
        _kind, wanted = files.claim(own.at, "red")
        await own.client.delete(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", namespace)

        async def gone() -> bool:
            return await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red") is None

        await own.until(gone, "the claim to go")
        before = await own.client.apply(wanted, kinds.PERSISTENT_VOLUME_CLAIMS)
        own.keeper = TenantKeeper(own.client, own.at)
        await own.keep(RED)

        async def bound() -> Object | None:
            found = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
            return found if found is not None and found["status"].get("phase") == "Bound" else None

        claim = await own.until(bound, "the claim to be bound")
        assert claim["metadata"]["uid"] == before["metadata"]["uid"]
        assert named_by(claim) == {"mlp-hub"}


async def test_keeping_the_same_tenants_again_costs_the_cluster_next_to_nothing(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED, BLUE)
        await calm(own)
        before = dict(own.client.calls)
        await own.keep(RED, BLUE)
        more = {
            what: n - before.get(what, 0) for what, n in own.client.calls.items() if n > before.get(what, 0)
        }
        assert {what for what in more if what.startswith(("apply", "patch", "delete"))} == set()
        assert sum(more.values()) <= 2


async def test_a_keeper_that_restarts_changes_nothing(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)

        async def bound() -> bool:
            claim = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
            return claim is not None and claim.get("status", {}).get("phase") == "Bound"

        await until(bound, what="the claim to be bound, which the volume tells too")
        await calm(own)
        await own.keeper.close()

        async def contents() -> dict[str, Any]:
            found = {}
            for kind in (*KEPT, kinds.QUEUES):
                listed = await own.client.list(kind, labels=own.at.selector)
                found |= {each["metadata"]["uid"]: told(each) for each in listed.items}
            return found

        before = await contents()
        own.keeper = TenantKeeper(own.client, own.at)
        await own.keep(RED)
        assert await contents() == before


async def test_a_changed_tenant_is_changed_in_the_cluster(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        await own.keep(TenantPlace("red", Quota(cpu=6000), ("ann",)))
        quota = await own.get(kinds.RESOURCE_QUOTAS, "mlp-limits", "red")
        assert quota is not None
        assert quota["spec"]["hard"] == {
            "requests.cpu": "12",
            "services.loadbalancers": "0",
            "services.nodeports": "0",
        }
        binding = await own.get(kinds.ROLE_BINDINGS, "mlp-member-0", "red")
        assert binding is not None
        assert [each["name"] for each in binding["subjects"]] == ["mlp:ann"]
        await own.keep(TenantPlace("red"))
        await own.keep(TenantPlace("red"))  # by now a watch has told of the binding that is left
        assert await own.get(kinds.ROLE_BINDINGS, "mlp-member-0", "red") is None


CHANGES: dict[str, tuple[Kind, str, Object]] = {
    "a door opened": (kinds.NETWORK_POLICIES, "mlp-closed", {"spec": {"ingress": [{}]}}),
    "a door opened in a policy that only lets out": (
        kinds.NETWORK_POLICIES,
        "mlp-names",
        {"spec": {"ingress": [{}], "policyTypes": ["Egress", "Ingress"]}},
    ),
    "a policy for fewer pods": (
        kinds.NETWORK_POLICIES,
        "mlp-closed",
        {"spec": {"podSelector": {"matchLabels": {"some": "pods"}}}},
    ),
    "a higher quota": (kinds.RESOURCE_QUOTAS, "mlp-limits", {"spec": {"hard": {"requests.cpu": "999"}}}),
    "no quota": (kinds.RESOURCE_QUOTAS, "mlp-limits", {"spec": {"hard": None}}),
    "more rights": (
        kinds.ROLES,
        "mlp-member",
        {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]},
    ),
    "another member": (kinds.ROLE_BINDINGS, "mlp-member-0", {"subjects": []}),
    "a token for all": (kinds.SERVICE_ACCOUNTS, "default", {"automountServiceAccountToken": True}),
    "a privileged namespace": (
        kinds.NAMESPACES,
        "NAMESPACE",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
    ),
    "a namespace without its labels": (
        kinds.NAMESPACES,
        "NAMESPACE",
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": None, "app.kubernetes.io/instance": None}}},
    ),
    "a policy without what it refuses": (
        kinds.ADMISSION_POLICIES,
        "NAME-pods",
        {"spec": {"validations": [{"expression": "true"}]}},
    ),
    "a policy that passes somebody": (
        kinds.ADMISSION_POLICIES,
        "NAME-pods",
        {
            "spec": {
                "matchConditions": [{"name": "not-eve", "expression": "request.userInfo.username != 'eve'"}]
            }
        },
    ),
    "a policy that passes some namespaces": (
        kinds.ADMISSION_POLICIES,
        "NAME-writes",
        {"spec": {"matchConstraints": {"namespaceSelector": {"matchLabels": {"more": "labels"}}}}},
    ),
    "a binding that only warns": (
        kinds.ADMISSION_BINDINGS,
        "NAME-pods",
        {"spec": {"validationActions": ["Warn"]}},
    ),
    "a binding for some": (
        kinds.ADMISSION_BINDINGS,
        "NAME-pods",
        {"spec": {"matchResources": {"namespaceSelector": {"matchLabels": {"some": "only"}}}}},
    ),
    "another limit": (kinds.LIMIT_RANGES, "mlp-limits", {"spec": {"limits": []}}),
}


def told(found: Object | None) -> Any:
    """Return what of an object is the hub's to say."""
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    kept = {k: v for k, v in found.items() if k not in ("metadata", "status")}
    labels = {k: v for k, v in found["metadata"].get("labels", {}).items() if not k.startswith("others")}
    return kept, labels


async def one(own: Tenancy, kind: Kind, name: str) -> Object | None:
    name = name.replace("NAMESPACE", f"{own.at.name}-red").replace("NAME", own.at.name)
    return await own.get(kind, name, "red")


async def test_changed_objects_are_put_back(kube: Kube) -> None:
    """One after the other, since each waits for little."""

    async with running_rig(kube) as own:
        await own.keep(RED)
        for what, (kind, name, patch) in CHANGES.items():
            before = told(await one(own, kind, name))
            real = name.replace("NAMESPACE", f"{own.at.name}-red").replace("NAME", own.at.name)
            words = ["-n", f"{own.at.name}-red"] if kind.namespaced else []
            group = kind.api_version.rpartition("/")[0]
            full = f"{kind.plural}.{group}" if group else kind.plural
            await asyncio.to_thread(
                kube, *words, "patch", full, real, "--type=merge", "-p", json.dumps(patch)
            )

            async def is_back(kind: Kind = kind, name: str = name, before: Any = before) -> bool:
                return bool(told(await one(own, kind, name)) == before)

            await own.until(is_back, f"{what} to be put back")


DELETED = [
    (kinds.NETWORK_POLICIES, "mlp-apps"),
    (kinds.NETWORK_POLICIES, "mlp-closed"),
    (kinds.RESOURCE_QUOTAS, "mlp-limits"),
    (kinds.ROLE_BINDINGS, "mlp-member-0"),
    (kinds.ADMISSION_BINDINGS, "NAME-pods"),
    (kinds.ADMISSION_POLICIES, "NAME-writes"),
    (kinds.PRIORITY_CLASSES, "NAME-job"),
    (kinds.SERVICE_ACCOUNTS, "default"),
    (kinds.QUEUES, "NAMESPACE"),
    (kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files"),
    (kinds.NAMESPACES, "NAMESPACE"),
]


async def test_deleted_objects_are_created_again(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        for kind, name in DELETED:
            before = await one(own, kind, name)
            assert before is not None, name
            await own.client.delete(kind, before["metadata"]["name"], before["metadata"].get("namespace"))

            async def is_back(kind: Kind = kind, name: str = name, before: Object = before) -> bool:
                now = await one(own, kind, name)
                return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

            await own.until(is_back, f"{kind.kind} {name} to be there again")

        async def bound() -> bool:
            found = await own.get(kinds.PERSISTENT_VOLUME_CLAIMS, "mlp-files", "red")
            return found is not None and found["status"].get("phase") == "Bound"

        await own.until(bound, "the files to be there again")


async def test_labels_added_by_others_stay(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        namespace = f"{own.at.name}-red"
        await asyncio.to_thread(kube, "label", "namespace", namespace, "others=label")
        await asyncio.to_thread(kube, "-n", namespace, "label", "resourcequota", "mlp-limits", "others=label")
        await calm(own)
        await own.keep(TenantPlace("red", Quota(cpu=1000)))
        for kind, name in ((kinds.NAMESPACES, namespace), (kinds.RESOURCE_QUOTAS, "mlp-limits")):
            found = await own.get(kind, name, "red")
            assert found is not None
            assert found["metadata"]["labels"]["others"] == "label"


async def test_a_tenant_that_is_no_more_leaves_nothing(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED, BLUE)
        await own.keep(BLUE)

        async def gone() -> bool:
            return not any("red" in name for _, *names in await own.all() for name in names)

        await own.until(gone, "all of red to be gone")
        assert await own.get(kinds.NAMESPACES, f"{own.at.name}-blue", "blue") is not None


async def test_a_namespace_with_a_pod_stays_until_the_pod_has_gone(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        namespace = f"{own.at.name}-red"
        runs = pod("runs", {"mlp-hub/tenant": "red"})
        await asyncio.to_thread(kube, "-n", namespace, "create", "-f", "-", given=json.dumps(runs))
        await own.keep()
        found = await own.get(kinds.NAMESPACES, namespace, "red")
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"]
        assert await own.get(kinds.PERSISTENT_VOLUMES, f"{own.at.name}-files-red", "red") is not None
        await own.client.delete(kinds.PODS, "runs", namespace, grace_s=0)
        await own.keep()

        async def gone() -> bool:
            return await own.get(kinds.NAMESPACES, namespace, "red") is None

        await own.until(gone, "the namespace to be gone")


async def test_foreign_objects_of_the_same_name_are_left_alone(kube: Kube) -> None:
    async with running_rig(kube) as own:
        namespace = f"{own.at.name}-red"
        await asyncio.to_thread(kube, "create", "namespace", namespace)
        try:
            with pytest.raises(Foreign, match=f"has a Namespace {namespace} that this hub has not made"):
                await own.keep(RED, BLUE)
            found = await own.get(kinds.NAMESPACES, namespace, "red")
            assert found is not None
            assert "pod-security.kubernetes.io/enforce" not in found["metadata"]["labels"]
            assert await own.get(kinds.ROLES, "mlp-member", "red") is None
            assert await own.get(kinds.ROLES, "mlp-member", "blue") is not None
        finally:
            await asyncio.to_thread(kube, "delete", "namespace", namespace, "--wait=false")


async def test_two_hubs_in_one_cluster_do_not_touch_each_others(kube: Kube) -> None:
    async with running_rig(kube) as own, tenancy(kube) as other:
        await own.keep(RED)
        await other.keep(RED, BLUE)
        before = await own.all()
        await other.keep()

        async def gone() -> bool:
            return all(kind.endswith(("Class", "Policy", "Binding")) for kind, *_ in await other.all())

        await own.until(gone, "the other's to be gone")
        await own.keep(RED)
        assert await own.all() == before
        assert {name for *_, name in before}.isdisjoint(name for _, ns, name in await other.all() if not ns)


async def test_names_of_two_hubs_that_meet_are_told(kube: Kube) -> None:
    """`a` with the tenant `b-red`, and `a-b` with the tenant `red`, would have one namespace."""

    async with running_rig(kube) as own:
        name = own.at.name
        async with tenancy(kube, f"{name}-b") as other:
            await own.keep(TenantPlace("b-red"))
            with pytest.raises(Foreign):
                await other.keep(RED)


async def test_a_superseded_keeper_puts_nothing_back(kube: Kube) -> None:
    async with running_rig(kube) as own:
        asked = asyncio.Event()

        @contextlib.asynccontextmanager
        async def act(epoch: int) -> AsyncIterator[None]:
            assert epoch == 7
            asked.set()
            raise Superseded
            yield

        own.keeper = TenantKeeper(own.client, own.at, act)
        await own.keeper.keep([RED], 7)
        await own.client.delete(kinds.ROLES, "mlp-member", f"{own.at.name}-red")
        await asked.wait()
        await calm(own)
        assert await own.get(kinds.ROLES, "mlp-member", "red") is None


async def test_a_volume_that_would_move_is_told(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        await own.keeper.close()
        at = installation(own.at.name, volume={"hostPath": {"path": "/var", "type": "Directory"}})
        moved = TenantKeeper(own.client, at)
        try:
            with pytest.raises(Exception, match=f"volume {own.at.name}-files-red has another place"):
                await moved.keep([RED])
        finally:
            await moved.close()


async def test_without_the_right_the_verb_and_the_kind_are_told(kube: Kube) -> None:
    async with running_rig(kube) as own:
        account = f"keeper-{uuid.uuid4().hex[:6]}"
        await asyncio.to_thread(kube, "-n", "default", "create", "serviceaccount", account)
        try:
            given = await asyncio.to_thread(kube, "-n", "default", "create", "token", account)
            client = await connect_as(kube, given.strip())
            keeper = TenantKeeper(client, own.at)
            with pytest.raises(ForbiddenError, match=r'cannot list resource "nodes"') as refusal:
                await keeper.keep([RED])
            assert f"system:serviceaccount:default:{account}" in str(refusal.value)
            await keeper.close()
            await client.close()
        finally:
            await asyncio.to_thread(kube, "-n", "default", "delete", "serviceaccount", account)


async def test_missing_rights_are_listed_with_the_purpose_of_each(kube: Kube) -> None:
    async with running_rig(kube) as own:
        assert await lacking(own.client, [*NEEDS, QUEUES]) == []
        account = f"reader-{uuid.uuid4().hex[:6]}"
        name = f"system:serviceaccount:default:{account}"
        await asyncio.to_thread(kube, "-n", "default", "create", "serviceaccount", account)
        await asyncio.to_thread(
            kube, "create", "clusterrolebinding", account, "--clusterrole=view", f"--user={name}"
        )
        try:
            token = await asyncio.to_thread(kube, "-n", "default", "create", "token", account)
            client = await connect_as(kube, token.strip())
            said = [render(each, ENGLISH) for each in await lacking(client)]
            assert (
                "the hub may not patch networkpolicies: pods reach their own job, the hub, "
                "and the addresses that their team may reach" in said
            )
            assert "the hub may not list nodes: no pod of a team reaches a node's address" in said
            assert "the hub may not create mpijobs: the hub may give members only rights that it has" in said
            assert not any("get networkpolicies" in each for each in said)
            await client.close()
        finally:
            await asyncio.to_thread(kube, "delete", "clusterrolebinding", account)
            await asyncio.to_thread(kube, "-n", "default", "delete", "serviceaccount", account)
