"""The chart beside a hub that a site has already: attached, used and removed; the tests are one story.

The site's hub is JupyterHub with KubeSpawner, configured as Zero-to-JupyterHub renders it: profiles, a hook, a claim for each user.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from mlp_cluster import helm
from support.cluster.chart import CHART, VALUES
from support.cluster.existing_hub import START_S, ExistingHub
from support.cluster.kube import Kube
from support.cluster.pod_stack import leave
from support.hubs.hub_stack import Browser
from support.hubs.kernel_client import Kernel
from support.waiting import wait_for

pytestmark = pytest.mark.whole
MAIL = "bob@example.org"
"""A name as company logins give it, of which KubeSpawner makes names of pods and claims by its own rules."""
FEW = {"requests": {"cpu": "20m", "memory": "64Mi"}}
API = "/services/mlp/api/v1"
LOADED = "import mlp; from IPython import get_ipython; get_ipython().run_line_magic('load_ext', 'mlp')"
SUBMIT = (
    "get_ipython().run_cell_magic('mlp', 'submit --name hello --cpu 0.1 --ram 200M --wait', 'print(6 * 7)')"
)


class Site(ExistingHub):
    """The site's hub with the chart beside it."""

    def __init__(self, kube: Kube, home: Path) -> None:
        super().__init__(kube, home)
        self.installation = self.at.name.replace("site-", "t")
        self.files = home / "files"
        self.program = helm.build()
        self.root = ""

    def helm(self, *words: str | Path) -> str:
        command = [self.program, "--kubeconfig", self.kube.kubeconfig, "--namespace", self.at.name, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self) -> dict[str, Any]:
        """Install the chart, attached; return the values for the site's hub, as the notes print them."""
        self.files.mkdir()
        self.files.chmod(0o777)
        values = {
            "installation": self.installation,
            "address": {"url": f"{self.url}/"},
            "database": {"existingSecret": {"name": ""}, "trial": {"enabled": True}},
            "storage": {
                "source": {"nfs": None, "hostPath": {"path": str(self.files), "type": "Directory"}},
                "keep": False,
            },
            "service": {"replicas": 1},
            "settings": {"node_cpu_overcommit": 16},
        }
        for part in ("hub", "service", "data", "postgresql"):
            values[part] = {**values.get(part, {}), "resources": FEW}  # type: ignore[dict-item]
        file = self.home / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        notes = self.helm("install", "ml", CHART, "--values", VALUES / "attached.yaml", "--values", file)
        begin = notes.index("\nhub:\n")
        found: dict[str, Any] = yaml.safe_load(notes[begin : notes.index("\nThe platform's pods start")])
        return found

    def asked(self, method: str, path: str, token: str = "", **more: Any) -> Any:
        """Call the platform's API, as a browser would find it: behind the site's proxy."""
        headers = {"Authorization": f"Bearer {token or self.root}"}
        answer = self.http.request(method, f"{API}{path}", headers=headers, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def health(self) -> list[str]:
        """Return the reasons of the problems that the service has, asked in its pod."""
        code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8084{API}/health').read().decode())"
        said = self.at("exec", "deploy/ml-mlp-hub-service", "-c", "service", "--", "python", "-c", code)
        return [one["reason"] for one in yaml.safe_load(said)["problems"] if one["component"] == "hub"]

    def held(self) -> float:
        """Return the cores that the default team has in use."""
        return float(self.asked("GET", "/tenants/default")["cpu_inuse"])


@pytest.fixture(scope="module")
def site(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(kube, tmp_path_factory.mktemp("site"))
    try:
        made.up("ann", "bob", "cy")
        yield made
    finally:
        print(made.log("hub")[-6000:], made.log("ml-mlp-hub-service")[-6000:])
        subprocess.run(
            [made.program, "--kubeconfig", kube.kubeconfig, "-n", made.at.name, "uninstall", "ml", "--wait", "--ignore-not-found"],
            check=False,
            capture_output=True,
        )  # fmt: skip
        leave(kube, made.installation)
        made.destroy()
        kube("delete", "pv", f"{made.at.name}-ml-mlp-hub-files", "--wait=false", "--ignore-not-found")


VALUES_FOR_HUB: dict[str, Any] = {}


def test_1_before_the_hub_knows_it_the_service_says_so_in_words(site: Site) -> None:
    began = time.monotonic()
    VALUES_FOR_HUB.update(site.install())
    site.at("rollout", "status", "deployment/ml-mlp-hub-service", f"--timeout={START_S:.0f}s")
    sys.stdout.write(f"helm install to a ready service: {time.monotonic() - began:.1f} s\n")
    wait_for(lambda: site.health() == ["HubTokenUnknown"], START_S, 1, "for the service to miss its token")
    assert "does not know the token of the service `mlp`: check attach.tokens" in site.log(
        "ml-mlp-hub-service"
    )


def test_2_with_the_printed_values_the_hub_is_attached_and_links_the_pages(site: Site) -> None:
    began = time.monotonic()
    site.upgrade(VALUES_FOR_HUB)
    wait_for(lambda: site.health() == [], START_S, 1, "for the service to be known")
    sys.stdout.write(f"upgrade of the site's hub to an attached one: {time.monotonic() - began:.1f} s\n")
    site.root = site.token("root")
    assert site.asked("GET", "/session")["admin"]
    person = Browser(site, httpx.HTTPTransport())
    home = person.login("ann", "any")
    assert 'href="/services/mlp/"' in home.text
    page = person.get("/services/mlp/")
    assert (page.status_code, page.url.path) == (200, "/services/mlp/")


def test_3_a_profile_over_the_quota_is_refused_in_our_words_and_one_within_runs(site: Site) -> None:
    site.asked("PUT", "/tenants/default", json={"cpu": 1, "ram": 4000})
    site.token("ann")
    said = site.spawn("ann", "large")
    assert "cpu" in said, said
    assert "default" in said, said
    assert site.at("get", "pods", "-l", "component=singleuser-server", "-o", "name") == ""
    began = time.monotonic()
    assert site.spawn("ann", "small") == ""
    sys.stdout.write(f"spawn of a profile within the quota: {time.monotonic() - began:.1f} s\n")
    assert site.held() == 0.5
    (pod,) = site.at.get("pods", "-l", "component=singleuser-server")["items"]
    assert pod["metadata"]["labels"]["mlp-hub/charged"] == site.installation
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (env["SITE_HOOK"], env["MLP_TENANT"]) == ("ran", "default")
    claims = [
        one["persistentVolumeClaim"]["claimName"]
        for one in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in one
    ]
    assert claims == ["claim-ann"]


def test_4_a_job_from_the_notebook_finishes(site: Site) -> None:
    kernel = Kernel(site.url, "ann", site.token("ann"))
    try:
        kernel.run(LOADED)
        kernel.run(SUBMIT)
    finally:
        kernel.close()
    job = wait_for(
        lambda: next((one for one in site.asked("GET", "/users/ann/jobs") if one["phase"] == "finished"), None),
        START_S, 0.5, "for the job to finish",
    )  # fmt: skip
    assert job["name"] == "hello"


def test_5_the_quota_counts_all_servers_and_names_of_any_kind(site: Site) -> None:
    site.token(MAIL)
    assert site.spawn(MAIL, "small") == ""
    site.token("cy")
    said = site.spawn("cy", "small")
    assert "Needs 0.5 cpu, 0 free. Servers hold the rest; one must stop." in said, said
    site.stop(MAIL)
    assert site.held() == 0.5
    assert site.spawn("cy", "small") == ""
    site.stop("cy")


def test_6_after_an_uninstall_the_hub_is_as_it_was(site: Site) -> None:
    before = site.at.get("pods", "-l", "component=singleuser-server")["items"]
    site.upgrade({})
    site.helm("uninstall", "ml", "--wait")
    after = site.at.get("pods", "-l", "component=singleuser-server")["items"]
    assert [one["metadata"]["uid"] for one in after] == [one["metadata"]["uid"] for one in before]
    assert site.api("GET", "/users/ann").json()["servers"][""]["ready"]
    site.stop("ann")
    assert site.spawn("ann", "large") == ""
    ours = site.at("get", "all,configmaps,secrets", "-l", "app.kubernetes.io/name=mlp-hub", "-o", "name")
    assert ours == ""
