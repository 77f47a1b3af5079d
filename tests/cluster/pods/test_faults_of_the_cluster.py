"""What a cluster does to attempts, or refuses them, and what somebody removes by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, CannotStart, LaunchSpec, Observation
from mlp_hub.executors.kubernetes import no_pods, verdict
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.rbac import RIGHTS, served
from mlp_hub.executors.kubernetes.tenancy.required_rights import Need
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import JOBS, POD_GROUPS, Object, name_of
from support import waiting
from support.cluster.kube import Kube, RefusedError
from support.cluster.kube_lab import KubeLab, until
from support.cluster.pods import pod
from support.cluster.tenancy import connect_as
from support.executors.executor_lab import PROGRAMS

LASTS = "print('began', flush=True); " + PROGRAMS["lasts"]
A = AttemptPhase


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


def said(seen: Observation) -> str:
    assert seen.failure is not None
    return str(seen.failure.localized_message)


async def all_run(executor: KubernetesExecutor, spec: LaunchSpec) -> Observation:
    async def look() -> Observation | None:
        seen = await until(executor, spec.attempt, A.RUNNING, A.STARTING)
        return seen if seen.ranks and all(rank.state == "running" for rank in seen.ranks) else None

    found: Observation = await waiting.until(look, what="all ranks to run", every=0.05)
    return found


async def nothing_left(lab: KubeLab) -> None:
    async def look() -> bool:
        return not await asyncio.to_thread(lab.left)

    await waiting.until(look, what="all of it to go", every=0.3)


async def test_an_evicted_pod_is_the_loss_of_its_gang(lab: KubeLab) -> None:
    spec = lab.spec(LASTS, workers=2)

    async with lab.executing() as executor:
        await executor.start(spec)
        await all_run(executor, spec)
        found = await asyncio.to_thread(lab.kube.get, "pods", "-n", lab.namespace)
        pod = next(name_of(each) for each in found["items"] if "-1-" in name_of(each))
        asked = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": lab.namespace},
        }
        path = f"/api/v1/namespaces/{lab.namespace}/pods/{pod}/eviction"
        await asyncio.to_thread(lab, "create", "--raw", path, "-f", "-", given=json.dumps(asked))
        seen = await until(executor, spec.attempt, A.LOST)
        assert seen.failure is not None
        assert (seen.failure.cause, seen.failure.rank) == (Cause.NODE_LOST, 1)
        assert said(seen) == "the cluster removed the pod of rank 1: Eviction API: evicting"
        await executor.forget(spec.attempt)
        await nothing_left(lab)


@pytest.mark.whole
async def test_a_pod_group_that_somebody_deletes_is_a_loss_unless_its_pods_are_bound(
    lab: KubeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "SEEN_S", 1.0)
    runs = lab.spec("import os,time\nwhile not os.path.exists('/workspace/go'): time.sleep(0.05)", workers=2)
    waits = lab.spec("print('never')", workers=2, per_worker=Resources(cpu=900_000, ram=128))

    assert POD_GROUPS in lab.ways.served
    async with lab.executing() as executor:
        for spec in (runs, waits):
            await executor.start(spec)
        await all_run(executor, runs)
        await asyncio.to_thread(lab, "delete", "podgroups.scheduling.volcano.sh", "--all")
        seen = await until(executor, waits.attempt, A.LOST)
        assert said(seen).startswith("somebody deleted its PodGroup job0002-")
        await asyncio.to_thread(lab.put_in_run, runs.of_run, "go", "")
        await until(executor, runs.attempt, A.SUCCEEDED)
        for spec in (runs, waits):
            await executor.forget(spec.attempt)
        await nothing_left(lab)


def refusal(lab: KubeLab, group: str, version: str, plural: str) -> list[Object]:
    """An admission that refuses all objects of a kind in the lab's namespace, as a company's webhook does."""
    name, space = f"{lab.at.name}-no-{plural}", {"kubernetes.io/metadata.name": lab.namespace}
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE"],
        "resources": [plural],
    }
    of = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": of,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no image is signed"}],
        },
    }
    binding = {
        "apiVersion": of,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": space}},
        },
    }
    return [policy, binding]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "what"), [(("batch", "v1", "jobs"), "Job"), (("", "v1", "pods"), "pods")], ids=["job", "pods"]
)
async def test_an_admission_refusal_fails_the_start_with_its_message(
    lab: KubeLab, kind: tuple[str, str, str], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(no_pods, "AGAIN_S", 0.5)
    asked = refusal(lab, *kind)
    lab.apply(*asked)
    probe = (
        pod("probe")
        if what == "pods"
        else JOBS.named("probe", spec={"template": {"spec": pod("probe")["spec"]}})
    )

    def holds() -> bool:
        try:
            lab("create", "--dry-run=server", "-f", "-", given=json.dumps(probe))
        except RefusedError as refused:
            return "no image is signed" in str(refused)
        return False

    try:
        async with lab.executing() as executor:
            await waiting.until(lambda: asyncio.to_thread(holds), what="the admission to hold", every=0.3)
            spec = lab.spec("print('never')")
            await executor.start(spec)
            seen = await until(executor, spec.attempt, A.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.START_FAILED
            assert said(seen).startswith(f"the cluster refused its {what}: ")
            assert said(seen).endswith("denied request: no image is signed")
            await executor.forget(spec.attempt)
            await nothing_left(lab)
    finally:
        for each in asked:
            lab.kube("delete", each["kind"], name_of(each))


@pytest.mark.whole
async def test_a_webhook_that_does_not_answer_is_waited_for_and_named(lab: KubeLab) -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{lab.at.name}-away"},
        "webhooks": [
            {
                "name": "away.example.org",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["jobs"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1,
            }
        ],
    }
    lab.apply(hook)
    spec = lab.spec("print('ran')")

    def holds() -> bool:
        try:
            lab("create", "job", "probe", "--image=none", "--dry-run=server")
        except RefusedError as refused:
            return "away.example.org" in str(refused)
        return False

    try:
        async with lab.executing() as executor:
            await waiting.until(lambda: asyncio.to_thread(holds), what="the webhook to be asked", every=0.3)
            with pytest.raises(Unavailable, match=r"away\.example\.org"):
                await executor.start(spec)
            await asyncio.to_thread(lab.kube, "delete", hook["kind"], f"{lab.at.name}-away")

            async def started() -> bool:
                try:
                    await executor.start(spec)
                except Unavailable:
                    return False  # the API may go on asking it for a moment
                return True

            await waiting.until(started, what="it to be started", every=0.3)
            await until(executor, spec.attempt, A.SUCCEEDED)
    finally:
        lab.kube("delete", str(hook["kind"]), f"{lab.at.name}-away", "--ignore-not-found")


@pytest.mark.whole
async def test_a_cluster_without_operators_refuses_mpi_alone_and_says_what_to_install(lab: KubeLab) -> None:
    mpi = lab.spec("print('never')", runtime="mpi", workers=2)
    others = [lab.spec("print('ran')", runtime=name, workers=2) for name in ("plain", "torch", "tf")]

    async with lab.executing(ways=OperatorWays(frozenset({JOBS}))) as executor:
        with pytest.raises(CannotStart) as refused:
            await executor.start(mpi)
        assert str(refused.value) == (
            "this cluster cannot run runtime mpi on several ranks: install the MPI Operator, with its kind "
            "mpijobs.kubeflow.org/v2beta1"
        )
        assert await executor.known() == []
        for spec in others:
            await executor.start(spec)
        for spec in others:
            await until(executor, spec.attempt, A.SUCCEEDED)


def rules(needs: list[Need]) -> list[dict[str, list[str]]]:
    return [
        {"apiGroups": [each.kind.group], "resources": [each.kind.plural], "verbs": list(each.verbs)}
        for each in needs
    ]


@pytest.mark.whole
async def test_the_rights_that_are_written_down_are_enough_and_one_that_lacks_is_named(lab: KubeLab) -> None:
    name = lab.at.name

    async def needs() -> list[Need]:
        client = KubernetesClient(lab.configuration)
        try:
            return [*RIGHTS, *await served(client)]
        finally:
            await client.close()

    def allow(given: list[Need]) -> None:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules(given),
        }
        lab.apply(role)

    written = await needs()
    allow([need for need in written if need.kind != POD_GROUPS])
    lab.kube("-n", "default", "create", "serviceaccount", name)
    lab.kube(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount=default:{name}"
    )
    token = lab.kube("-n", "default", "create", "token", name).strip()
    spec = lab.spec(LASTS, workers=2)

    try:
        async with lab.executing():
            client = await connect_as(lab.kube, token)
            executor = KubernetesExecutor(client, lab.at, lab.ways, lambda: lab.nodes)
            try:
                opening = asyncio.ensure_future(executor.open())

                async def told() -> str:
                    return str(executor._cache.trouble or "")

                trouble = await waiting.until(told, what="trouble", every=0.05)
                assert 'cannot list resource "podgroups" in API group "scheduling.volcano.sh"' in trouble
                assert "make doctor shows the missing right" in str(executor.trouble())
                await asyncio.to_thread(allow, written)
                await opening
                assert executor.trouble() is None
                await executor.start(spec)
                await all_run(executor, spec)
                await executor.stop(spec.attempt, 1.0)
                await until(executor, spec.attempt, A.STOPPED)
                await executor.forget(spec.attempt)
                await nothing_left(lab)
            finally:
                await executor.close()
                await client.close()
    finally:
        lab.kube("delete", "clusterrolebinding,clusterrole", name)
        lab.kube("-n", "default", "delete", "serviceaccount", name)
