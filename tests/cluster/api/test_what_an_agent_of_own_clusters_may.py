"""The agent of a tenant's own cluster: what members may, its own Secrets, and streams of its own pods; nothing more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mlp_cluster.place import ROOT
from mlp_hub.executors.base import TenantPlace
from mlp_hub.kubernetes.kinds import JOBS, TF_JOBS
from support.cluster.kube import Kube, RefusedError
from support.cluster.pods import asked, pod
from support.cluster.tenancy import as_somebody, tenancy

JOB = f"layer-{'0' * 8}-{'1' * 16}"
MANIFEST = ROOT / "layers" / "manifests" / "compute.yaml"


@dataclass
class Place:
    """A tenant's namespace; red-cluster is its agent, bob a member, and ann has all rights there."""

    kube: Kube
    namespace: str

    def of(self, who: str) -> Callable[..., str]:
        return as_somebody(self.kube, f"mlp:{who}", self.namespace)

    def creates(self, who: str, given: dict[str, Any]) -> str:
        return self.of(who)("create", "--dry-run=server", "-f", "-", given=given)

    def refused(self, who: str, given: dict[str, Any]) -> str:
        with pytest.raises(RefusedError) as refusal:
            self.creates(who, given)
        return str(refusal.value)


@pytest.fixture(scope="module")
def red(kube: Kube) -> Iterator[Place]:
    loop = asyncio.new_event_loop()
    own = tenancy(kube)
    made = loop.run_until_complete(own.__aenter__())
    try:
        members = ("ann", "bob", "red-cluster")
        loop.run_until_complete(made.keep(TenantPlace("red", members=members)))
        place = Place(kube, f"{made.at.name}-red")
        kube("apply", "-f", "-", given=MANIFEST.read_text().replace("mlp-red", place.namespace))
        kube("annotate", "namespace", place.namespace, "mlp-layer/user=mlp:red-cluster")
        everything = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "all"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        }
        inside = ("-n", place.namespace)
        kube(*inside, "apply", "-f", "-", given=json.dumps(everything))
        kube(
            *inside, "create", "rolebinding", "all", "--role=all", "--user=mlp:ann", "--user=mlp:red-cluster"
        )
        for name in (f"{JOB}-abcde", "notebook"):
            kube(*inside, "create", "-f", "-", given=json.dumps(pod(name, {"mlp-hub/tenant": "red"})))
        yield place
    finally:
        loop.run_until_complete(own.__aexit__(None, None, None))
        loop.close()


def secret(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"a": "b"},
        **fields,
    }


def reads(name: str, of: str) -> dict[str, Any]:
    """Return a job by this name whose pods read a Secret, as files and as a variable."""
    variable = {"name": "A", "valueFrom": {"secretKeyRef": {"name": of, "key": "a"}}}
    volumes = [{"name": "v", "secret": {"secretName": of}}]
    return asked(JOBS, "red", user="red-cluster", name=name, volumes=volumes, container={"env": [variable]})


def test_it_makes_jobs_with_their_secret(red: Place) -> None:
    red.creates("red-cluster", reads(JOB, f"{JOB}.layer"))
    red.creates("red-cluster", secret(f"{JOB}.layer"))
    red.creates("red-cluster", asked(JOBS, "red", user="red-cluster", name=JOB))


@pytest.mark.parametrize("of", ["mlp-token", f"layer-{'0' * 8}-{'2' * 16}.layer", "x.layer"])
def test_its_jobs_read_no_other_secret(red: Place, of: str) -> None:
    assert "may read no Secret" in red.refused("red-cluster", reads(JOB, of))


def test_a_member_reads_no_secret_by_its_names(red: Place) -> None:
    for who in ("bob", "ann"):
        theirs = reads("train", "train.layer")
        theirs["metadata"]["annotations"]["mlp-hub/user"] = who
        assert "may read no Secret" in red.refused(who, theirs)
        named = asked(JOBS, "red", user=who, name=JOB)
        assert "may give no job a name that begins with layer-" in red.refused(who, named)
        named = asked(TF_JOBS, "red", user=who, name=JOB)
        assert "may give no job a name that begins with layer-" in red.refused(who, named)


@pytest.mark.parametrize(
    "given",
    [
        secret("mlp-token"),
        secret("x.layer"),
        secret(
            f"{JOB}.layer",
            type="kubernetes.io/service-account-token",
            metadata={
                "name": f"{JOB}.layer",
                "annotations": {"kubernetes.io/service-account.name": "default"},
            },
        ),
        secret(f"{JOB}-abcde"),
        pod("p", {"mlp-hub/tenant": "red"}),
    ],
    ids=["another Secret", "another name", "a token", "no end", "a pod"],
)
def test_it_makes_nothing_else_whatever_rights_it_has(red: Place, given: dict[str, Any]) -> None:
    assert "may create, change and remove nothing here" in red.refused("red-cluster", given)


def test_nobody_else_makes_its_secrets(red: Place) -> None:
    assert "may create, change and remove nothing here" in red.refused("ann", secret(f"{JOB}.layer"))


def test_it_gets_into_its_own_pods_alone(red: Place) -> None:
    for who, name, passes in (
        ("red-cluster", f"{JOB}-abcde", True),
        ("red-cluster", "notebook", False),
        ("ann", f"{JOB}-abcde", False),
    ):
        with pytest.raises(RefusedError) as refusal:  # the pod does not run, so who may is told that
            red.of(who)("exec", name, "--", "true")
        assert ("may not get into pods" in str(refusal.value)) is not passes, (who, name, str(refusal.value))
