"""Notebook servers as pods of a real cluster, behind a real hub and a real proxy."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import httpx
import pytest

from support.cluster.kube import Kube, RefusedError
from support.cluster.pod_stack import PodStack
from support.cluster.tenancy import as_somebody
from support.hubs.hub_stack import Browser, start_server, stop_server, text_of, user_token
from support.hubs.kernel_client import Kernel
from support.waiting import wait_for

RAM = 400
FILLS = """
import os
open(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')
with open('/tmp/much', 'wb') as out:
    while True: out.write(b'1' * (8 << 20))
"""
"""Takes memory that is no process's, so that the server is what is ended for it."""


@pytest.fixture(scope="module")
def stack(kube: Kube) -> Iterator[PodStack]:
    made = PodStack(kube, limits={"small": 1500})
    try:
        made.keep("default")
        made.up()
        yield made
    finally:
        print(made.log("hub")[-6000:], made.log("proxy")[-1500:])
        made.down()


@pytest.fixture(scope="module")
def ann(stack: PodStack) -> Iterator[Kernel]:
    """A server of ann's that most tests share."""
    stack.add("ann")
    token = start_server(stack, "ann")
    kernel = Kernel(stack.notebooks("ann"), "ann", token)
    yield kernel
    kernel.close()


def rows(stack: PodStack) -> dict[str, str]:
    return {key: row["phase"] for key, row in stack.ledger()["rows"].items()}


def test_a_cell_runs_in_a_pod_of_the_tenants_namespace(stack: PodStack, ann: Kernel) -> None:
    assert ann.run("1+1") == "2"
    assert rows(stack)["ann/"] == "confirmed"
    pod = stack.pod("ann")
    assert pod is not None
    assert ann.run("import socket; print(socket.gethostname())").strip() == pod["metadata"]["name"]
    labels = pod["metadata"]["labels"]
    assert (labels["mlp-hub/tenant"], labels["mlp-hub/user"]) == ("default", "ann")


def test_the_pod_is_restricted_and_has_what_was_granted(stack: PodStack, ann: Kernel) -> None:
    pod = stack.pod("ann")
    assert pod is not None
    spec = pod["spec"]
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": "67m", "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }
    namespace = stack.kube.get("namespace", stack.namespace())
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    out = ann.run(
        "import os, pathlib, pwd\n"
        "print(os.getuid(), pwd.getpwuid(os.getuid()).pw_name, os.path.exists('/var/run/secrets'))\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print([line.split()[1] for line in status.splitlines() if line.startswith(('CapEff', 'NoNewPrivs', 'Seccomp:'))])\n"
        "print(os.access('/usr', os.W_OK), os.access('/opt', os.W_OK))"
    )
    uid = stack.settings.uid_base + 1
    assert out.split("\n")[:3] == [f"{uid} ann False", "['0000000000000000', '1', '2']", "False False"]


def test_home_is_the_users_on_the_volume_with_samples_and_nobody_elses(stack: PodStack, ann: Kernel) -> None:
    (stack.settings.homes_dir / "zoe").mkdir(exist_ok=True)
    out = ann.run(
        "import os, pathlib\n"
        "(pathlib.Path.home() / 'mine.txt').write_text('hello')\n"
        "print(os.listdir('/home')); print(sorted(os.listdir('/home/ann')))"
    )
    assert "zoe" not in out
    assert "01-digits-mpi.ipynb" in out
    mine = stack.settings.homes_dir / "ann" / "mine.txt"
    assert mine.read_text() == "hello"
    assert mine.stat().st_uid == stack.settings.uid_base + 1


def test_the_notebook_knows_where_the_platform_is_and_its_token_has_its_scopes_only(ann: Kernel) -> None:
    out = ann.run(
        "import os, urllib.request\n"
        "url = os.environ['MLP_API_URL'] + '/who'\n"
        "ask = urllib.request.Request(url, headers={'Authorization': 'Bearer ' + os.environ['MLP_TOKEN']})\n"
        "print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(ask).read().decode())"
    )
    me = json.loads(out)
    assert me["name"] == "ann"
    assert {s for s in me["scopes"] if s.startswith("custom:")} == {
        *(
            f"custom:mlp:{kind}:{act}"
            for kind in ("jobs", "models", "apps", "data")
            for act in ("read", "write")
        ),
        "custom:mlp:notices:read",
        "custom:mlp:tenants:read",
    }
    assert not {s for s in me["scopes"] if s.startswith(("admin", "tokens", "servers"))}


def test_the_mlp_extension_is_configured_and_lab_has_no_announcements(stack: PodStack, ann: Kernel) -> None:
    out = ann.run(
        "from IPython import get_ipython\nprint(get_ipython().config.InteractiveShellApp.extra_extensions)"
    )
    assert "'mlp'" in out
    person = Browser(stack)
    person.login("ann")
    page = person.get("/user/ann/")
    assert str(page.url.copy_with(query=None)) == f"{stack.notebooks('ann')}/user/ann/lab"
    assert "@jupyterlab/apputils-extension:announcements" in page.text


def test_pods_find_the_hubs_api_at_its_port_and_no_page(stack: PodStack, ann: Kernel) -> None:
    host, port = stack.settings.hub_listens  # type: ignore[misc]
    with httpx.Client(base_url=f"http://{host}:{port}", trust_env=False) as client:
        assert client.get("/hub/api/").status_code == 200
        for path in ("/hub/login", "/hub/home", "/hub/health", "/", "/hub/apis"):
            assert client.get(path).status_code == 404, path
    assert "404" in ann.run(
        "import os, urllib.request\n"
        "url = os.environ['JUPYTERHUB_API_URL'].replace('/hub/api', '/hub/login')\n"
        "try: urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url)\n"
        "except Exception as e: print(e)"
    )


def test_a_server_survives_the_hubs_death(stack: PodStack, ann: Kernel) -> None:
    ann.run("before = 41")
    stack.kill("hub")
    assert ann.run("before + 1") == "42"
    stack.start_hub()
    stack.wait_up()
    token = user_token(stack, "ann", "read:users!user", "read:servers!user")
    assert stack.api("GET", "/users/ann", token).json()["servers"][""]["ready"] is True
    ann.close()
    ann.open()
    assert ann.run("before + 2") == "43"
    assert rows(stack)["ann/"] == "confirmed"


def test_stopping_removes_the_pod_and_gives_everything_back(stack: PodStack) -> None:
    stack.add("eli")
    token = start_server(stack, "eli", ram=512)
    assert stack.ledger()["rows"]["eli/"]["ram"] == 512
    stop_server(stack, "eli", token)
    assert "eli/" not in rows(stack)
    assert stack.pod("eli") is None


def test_a_server_whose_pod_is_deleted_by_hand_gives_back_and_says_so(stack: PodStack) -> None:
    stack.add("fei")
    token = start_server(stack, "fei")
    pod = stack.pod("fei")
    assert pod is not None
    stack.kube("delete", "pod", pod["metadata"]["name"], "-n", stack.namespace(), "--wait=false")
    wait_for(lambda: "fei/" not in rows(stack))
    wait_for(lambda: not stack.api("GET", "/users/fei", token).json()["servers"])
    person = Browser(stack)
    person.login("fei")
    said = "pod was deleted in the cluster, not by the hub. Start it again."
    assert said in text_of(person.get("/hub/spawn/fei"))
    token = start_server(stack, "fei")
    assert said not in text_of(person.get("/hub/home"))
    stop_server(stack, "fei", token)


@pytest.mark.whole
def test_a_server_that_runs_out_of_memory_gives_back_and_says_so(stack: PodStack) -> None:
    stack.add("oma")
    token = start_server(stack, "oma", ram=RAM)
    kernel = Kernel(stack.notebooks("oma"), "oma", token)
    with contextlib.suppress(Exception):
        kernel.run(FILLS)
    with contextlib.suppress(Exception):
        kernel.close()
    wait_for(lambda: "oma/" not in rows(stack))
    wait_for(lambda: not stack.api("GET", "/users/oma", token).json()["servers"])
    person = Browser(stack)
    person.login("oma")
    assert f"ran out of memory: it used more than its {RAM} MiB" in text_of(person.get("/hub/spawn/oma"))
    assert stack.pod("oma") is None


@pytest.mark.whole
def test_a_hub_that_dies_in_the_middle_of_a_start_leaves_nothing(stack: PodStack) -> None:
    stack.add("gil")
    token = user_token(stack, "gil", "servers!user", "read:users!user")
    with contextlib.suppress(httpx.TimeoutException):
        stack.api("POST", "/users/gil/server", token, json={}, timeout=0.4)
    wait_for(lambda: stack.pod("gil") is not None, every=0.05)
    stack.kill("hub")
    assert rows(stack)["gil/"] == "tried"
    stack.start_hub()
    stack.wait_up()
    wait_for(lambda: stack.pod("gil") is None)
    wait_for(lambda: "gil/" not in rows(stack))
    token = start_server(stack, "gil")
    stop_server(stack, "gil", token)


def readable(stack: PodStack, who: str) -> dict[str, str]:
    """Return all that somebody reads in the tenant's namespace, by kind, and the logs of its pods."""
    member = as_somebody(stack.kube, who, stack.namespace())
    kinds = stack.kube("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    found = {}
    for kind in kinds:
        with contextlib.suppress(RefusedError):
            found[kind] = member("get", kind, "-o", "json")
    with contextlib.suppress(RefusedError):
        for pod in json.loads(found["pods"])["items"]:
            found[f"log of {pod['metadata']['name']}"] = member("logs", pod["metadata"]["name"])
    return found


def test_no_object_that_members_read_holds_anothers_token(stack: PodStack, ann: Kernel) -> None:
    said = ann.run(
        "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if 'TOKEN' in k or 'SECRET' in k}))"
    )
    tokens = json.loads(said)
    assert {"JUPYTERHUB_API_TOKEN", "MLP_TOKEN"} <= set(tokens)
    stack.keep_members("default", "bob")
    wait_for(lambda: "pods" in readable(stack, "mlp:bob"))
    found = readable(stack, "mlp:bob")
    pod = stack.pod("ann")
    assert pod is not None
    assert pod["metadata"]["name"] in found["pods"]
    assert f"log of {pod['metadata']['name']}" in found
    assert not {"secrets", "configmaps", "serviceaccounts"} & set(found)
    for kind, text in found.items():
        for name, token in tokens.items():
            assert token not in text, f"{name} is in {kind}"


def test_the_environment_of_a_server_goes_with_its_pod(stack: PodStack) -> None:
    stack.add("sue")
    token = start_server(stack, "sue")
    chosen = ("secrets", "-n", stack.namespace(), "-l", "mlp-hub/user=sue")
    (secret,) = stack.kube.get(*chosen)["items"]
    (owner,) = secret["metadata"]["ownerReferences"]
    pod = stack.pod("sue")
    assert pod is not None
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    stop_server(stack, "sue", token)
    wait_for(lambda: not stack.kube.get(*chosen)["items"])
