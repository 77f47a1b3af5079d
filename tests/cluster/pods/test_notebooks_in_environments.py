"""Notebook servers in pods of their environment's image; one that is none for servers is refused in words, at once."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest

from support.cluster.kube import Kube
from support.cluster.pod_stack import PodStack
from support.hubs.hub_stack import Browser, start_server, stop_server, text_of, user_token
from support.hubs.kernel_client import Kernel
from support.waiting import wait_for

NONE = "mlp.local/there-is-none:1"
"""The platform's image of this hub: a server that comes up has that of its environment."""
IMAGES = {"whole": "mlp.local/notebook:dev", "mpi": "mlp.local/mpi:dev", "pause": "mlp.local/pause:dev"}
THERE = [{"uid": f"u-{name}", "name": name, "image": image, "kernel": None} for name, image in IMAGES.items()]


@pytest.fixture(scope="module")
def stack(kube: Kube) -> Iterator[PodStack]:
    made = PodStack(kube, environ={"MLP_KUBERNETES_IMAGE": NONE})
    try:
        made.keep("default")
        made.up()
        made.tell_service(environments={"default": THERE})
        yield made
    finally:
        print(made.log("hub")[-6000:])
        made.down()


@pytest.mark.differs("Content of an environment", only="cluster")
def test_a_server_runs_in_the_image_of_its_environment(stack: PodStack) -> None:
    stack.add("ann")
    token = start_server(stack, "ann", environment="whole")
    try:
        kernel = Kernel(stack.notebooks("ann"), "ann", token)
        assert kernel.run("import mlp; 1+1") == "2"
        kernel.close()
        pod = stack.pod("ann")
        assert pod is not None
        assert [c["image"] for c in pod["spec"]["containers"]] == [IMAGES["whole"]]
        assert stack.ledger()["rows"]["ann/"]["environment"] == "u-whole"
        # a hub that comes anew finds it, whatever has become of the environment
        stack.tell_service(environments={"default": []})
        stack.kill("hub")
        stack.start_hub()
        stack.wait_up()
        assert stack.api("GET", "/users/ann", token).json()["servers"][""]["ready"]
        again = Kernel(stack.notebooks("ann"), "ann", token)
        assert again.run("2+2") == "4"
        again.close()
    finally:
        stack.tell_service(environments={"default": THERE})
        stop_server(stack, "ann", token)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ("mpi", "it lacks jupyterhub and jupyterlab."),
        ("pause", "it has no Python that starts as python"),
        ("none", "team default has no ready environment 'none'; it has: whole"),
    ],
)
def test_an_image_without_a_notebook_server_is_refused_with_its_missing_parts(
    stack: PodStack, environment: str, says: str
) -> None:
    user = f"u-{environment}"
    stack.add(user)
    person = Browser(stack)
    person.login(user)
    person.spawn(user, cpu="0.2", ram="200", environment=environment)
    token = user_token(stack, user, "read:users!user", "read:servers!user")
    wait_for(lambda: not stack.api("GET", f"/users/{user}", token).json()["servers"])
    wait_for(lambda: f"{user}/" not in stack.ledger()["rows"])
    assert stack.pod(user) is None
    said = unescape(text_of(person.get(f"/hub/spawn-pending/{user}")))
    assert says in said
    if environment in IMAGES:
        assert (
            f"The image {IMAGES[environment]} of environment {environment} cannot start a notebook server"
            in said
        )
        assert "Such an image needs Python 3.11 or later, JupyterHub and JupyterLab" in said
