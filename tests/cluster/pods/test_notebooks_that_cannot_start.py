"""A notebook server that the cluster cannot or will not start: its start ends at once, the page says why, nothing is held."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster.kube import Kube
from support.cluster.pod_stack import PodStack
from support.hubs.hub_stack import Browser, text_of, user_token
from support.waiting import wait_for

pytestmark = pytest.mark.whole
NONE = "mlp.local/there-is-none:1"
MUCH = 100_000_000
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "none"},
    "spec": {"hard": {"pods": "0"}},
}


@pytest.fixture(scope="module")
def stack(kube: Kube) -> Iterator[PodStack]:
    made = PodStack(kube, config="c.PodSpawner.node_patience_s = 3", environ={"MLP_KUBERNETES_IMAGE": NONE})
    try:
        made.keep("red", "tight")
        made.up()
        yield made
    finally:
        print(made.log("hub")[-6000:])
        made.down()


def refusal(stack: PodStack, user: str, tenant: str, **options: str) -> str:
    """Start a server from the page; return the page that says why there is none."""
    stack.add(user)
    stack.tell_service(tenants={user: [tenant]})
    person = Browser(stack)
    person.login(user)
    person.spawn(user, **({"cpu": "0.2", "ram": "200"} | options))
    token = user_token(stack, user, "read:users!user", "read:servers!user")
    wait_for(lambda: not stack.api("GET", f"/users/{user}", token).json()["servers"])
    wait_for(lambda: f"{user}/" not in stack.ledger()["rows"])
    assert stack.pod(user, tenant) is None
    return text_of(person.get(f"/hub/spawn-pending/{user}"))


def test_an_image_that_does_not_exist_is_named(stack: PodStack) -> None:
    said = refusal(stack, "ima", "red")
    assert f"The image {NONE} of the notebook server is not available" in said
    assert "An administrator of the hub can fix that." in said


def test_a_server_that_fits_no_node_says_what_the_nodes_lack(stack: PodStack) -> None:
    said = refusal(stack, "una", "red", ram=str(MUCH))
    assert "No node of the cluster has room for the notebook server" in said
    assert "Insufficient memory" in said


def test_a_refusal_by_the_cluster_is_shown_in_its_own_words(stack: PodStack, kube: Kube) -> None:
    from support.cluster.kube import Namespace

    Namespace(kube, stack.namespace("tight")).apply(QUOTA)
    said = refusal(stack, "quo", "tight")
    assert "The cluster refused the notebook server" in said
    assert "exceeded quota: none" in said
