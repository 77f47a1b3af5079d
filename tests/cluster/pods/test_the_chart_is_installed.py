"""The whole hub as pods: installed by its chart, its leader killed, upgraded and rolled back while a job runs, and removed.

The tests of this file are one story; each goes on where the one before stopped. A person in a browser is `--install=helm` of
the acceptance suite.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import yaml

from mlp_hub.hub_integration.configure import REMEMBERED_S
from support.cluster.asking import Asking
from support.cluster.kube import Kube, RefusedError
from support.cluster.release import NAME, Release
from support.failover.pods_rig import PodsRig
from support.monitoring.prometheus import needs_prometheus, running, until_value
from support.waiting import wait_for

TICKS = """import pathlib, time
n = 0
while not pathlib.Path("enough").exists():
    print("tick", n, flush=True)
    n += 1
    time.sleep(0.5)
print("ticks", n, flush=True)
"""
SUM = "from mpi4py import MPI; world = MPI.COMM_WORLD; print('sum', world.allreduce(world.rank + 1))"
SMALL = {"cpu": 0.1, "ram": 200}
GONE_S = 180.0


@pytest.fixture(scope="module")
def hub(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    hub = Release(kube, tmp_path_factory.mktemp("chart") / "home", MLP_RATE_CHANGES="1000")
    try:
        yield hub
    finally:
        hub.destroy()


def told(what: str, seconds: float) -> None:
    """Say a figure, which is kept with the results of the test."""
    sys.stdout.write(f"{what}: {seconds:.1f} s\n")


class Submitting:
    """Submits jobs one after the other, and has the names of those that were accepted.

    They wait for quota, so that they cost nothing. A job whose request was cut is submitted again under its name, as `mlp` does.
    """

    def __init__(self, hub: Release, name: str) -> None:
        self.hub, self.name = hub, name
        self.accepted: list[str] = []
        self.longest = 0.0
        self.refusal = ""
        self.enough = threading.Event()
        self.thread = threading.Thread(target=self._go)

    def __enter__(self) -> Self:
        self.hub.token("ann")
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.enough.set()
        self.thread.join()

    def until(self, more: int) -> None:
        """Wait until so many more were accepted."""
        wanted = len(self.accepted) + more
        wait_for(lambda: len(self.accepted) >= wanted, message=f"for a leader to take jobs: {self.refusal}")

    def _go(self) -> None:
        while not self.enough.is_set():
            name, began = f"{self.name}{len(self.accepted)}", time.monotonic()
            while not self._submitted(name):
                if self.enough.is_set():  # the test has failed already
                    return
                time.sleep(0.1)
            self.longest = max(self.longest, time.monotonic() - began)
            self.accepted.append(name)
            time.sleep(0.1)

    def _submitted(self, name: str) -> bool:
        body = {"name": name, "code": "pass", "tenant": "narrow", **SMALL}
        with contextlib.suppress(httpx.TransportError):
            answer = self.hub.call("POST", "/users/ann/jobs", "ann", body)
            if answer.is_success or (answer.status_code == 403 and answer.json()["reason"] == "Conflict"):
                return True  # the second is a job whose answer was cut
            self.refusal = answer.text
        return False


def ticks(hub: Release) -> int:
    """Return how far the job is; fail where it has not counted every number once."""
    lines = [line for line in hub.log("ann", "ticks").splitlines() if line.startswith("tick ")]
    assert lines == [f"tick {n}" for n in range(len(lines))]
    return len(lines)


def goes_on(hub: Release) -> None:
    """See that the job does, in its first attempt."""
    before = wait_for(lambda: ticks(hub))
    wait_for(lambda: ticks(hub) > before + 2)
    job = hub.job("ann", "ticks")
    assert (job["phase"], job["restarts"]) == ("running", 0)


def restarts(hub: Release, pod: str) -> int:
    """Return how often a container of a pod was started again."""
    return sum(one["restartCount"] for one in hub.at.get("pod", pod)["status"]["containerStatuses"])


def test_1_a_hub_is_installed_with_the_values_of_the_quickstart(hub: Release) -> None:
    began = time.monotonic()
    notes = hub.up()
    told("seconds from helm install to the login page and the API", time.monotonic() - began)
    assert hub.url in notes
    assert {pod["status"]["phase"] for pod in hub.pods().values()} == {"Running"}
    assert len(hub.pods("service")) == 2
    assert hub.http.post("/hub/login", data={"username": "x"}).status_code in (403, 401)
    hub.add_user("ann")


def test_1b_the_test_of_the_release_says_that_this_network_enforces_no_policies(hub: Release) -> None:
    said = hub.helm("test", "hub", "--logs", check=False)
    assert "the hub has all rights that it needs" in said
    if not os.environ.get("KUBECONFIG"):  # this clone's own enforces none
        assert "Phase:          Failed" in said
        assert "the network enforces no policies: tenants' pods reach each other" in said


def test_2_a_job_of_two_ranks_of_mpi_runs_to_its_end(hub: Release) -> None:
    began = time.monotonic()
    hub.submit("ann", "sum", SUM, runtime="mpi", workers=2, **SMALL)
    hub.wait_phase("ann", "sum", "finished")
    told("seconds of the first MPI job", time.monotonic() - began)
    assert "sum 3" in hub.log("ann", "sum")
    hub.submit("ann", "ticks", TICKS, **SMALL)
    hub.wait_phase("ann", "ticks", "running")
    hub.ok("POST", "/tenants", body={"name": "narrow", "cpu": 0.1, "ram": 1000})
    hub.ok("PUT", "/tenants/narrow/members/ann", body={"role": "member"})
    hub.submit("ann", "first", "import time; time.sleep(36000)", tenant="narrow", **SMALL)
    hub.wait_phase("ann", "first", "running")


@pytest.mark.parametrize(
    "how",
    [
        "its process is killed",
        "its pod is gone",
        # the cluster kills it only after two minutes
        pytest.param("it is frozen", marks=pytest.mark.whole),
    ],
)
def test_3_the_leader_dies_and_nothing_is_lost(hub: Release, how: str) -> None:
    goes_on(hub)
    before = hub.leader()
    with Submitting(hub, how.rpartition(" ")[2]) as submitting:
        submitting.until(2)
        if how == "its pod is gone":
            hub.at("delete", "pod", before, "--grace-period=0", "--force")
        else:
            signal = "KILL" if how == "its process is killed" else "STOP"
            # 1 is tini, whose child it is
            command = f"kill -{signal} $(cat /proc/1/task/1/children)"
            hub.at("exec", before, "-c", "service", "--", "sh", "-c", command)
        if how == "its process is killed":
            wait_for(lambda: restarts(hub, before), message="for it to be started again")
        else:
            wait_for(lambda: hub.leader() != before, message="for the other to lead")
        submitting.until(5)
    told(f"seconds until a job was accepted again: {how}", submitting.longest)
    listed = [job["name"] for job in hub.ok("GET", "/users/ann/jobs", "ann")]
    assert sorted(name for name in listed if name.startswith(submitting.name)) == sorted(submitting.accepted)
    goes_on(hub)
    hub.at("rollout", "status", f"deployment/{NAME}-service", "--timeout=300s")


def test_3b_the_leader_is_ended_five_times_under_load_and_nothing_is_lost_or_doubled(hub: Release) -> None:
    rig = PodsRig(hub)
    with rig.load():
        times = [rig.ended("pod deleted") for _ in range(5)]
    told("seconds until a write was taken, the longest of five kills of the leader under load", max(times))
    assert rig.lost() == []
    goes_on(hub)


def scrapes(hub: Release, token: str) -> list[dict[str, Any]]:
    """Return what the chart's ServiceMonitors mean, as the Prometheus Operator reads them: a job each, with the addresses of the endpoints."""
    wanted = ("--set", "monitoring.serviceMonitor.enabled=true", "--show-only", "templates/monitoring.yaml")
    found = []
    for monitor in yaml.safe_load_all(hub.helm("template", "hub", *hub.with_values(), *wanted)):
        ((one),) = monitor["spec"]["endpoints"]
        labels = ",".join(f"{k}={v}" for k, v in monitor["spec"]["selector"]["matchLabels"].items())
        subsets = [s for e in hub.at.get("endpoints", "-l", labels)["items"] for s in e.get("subsets", [])]
        ports = [(s, p["port"]) for s in subsets for p in s["ports"] if p["name"] == one["port"]]
        found.append({
            "job_name": monitor["metadata"]["name"],
            "metrics_path": one["path"],
            "authorization": {"type": one["authorization"]["type"], "credentials": token},
            "static_configs": [{"targets": [f"{a['ip']}:{port}" for s, port in ports for a in s["addresses"]]}],
            "relabel_configs": [
                {"target_label": r["targetLabel"], "replacement": r["replacement"]} for r in one["relabelings"]
            ],
        })  # fmt: skip
    return found


@needs_prometheus
def test_3c_a_prometheus_scrapes_what_the_service_monitors_name_with_its_token_only(
    hub: Release, tmp_path: Path
) -> None:
    token = hub.run("token", "--user", "admin", "--scope", "read:metrics").stdout.strip()
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [
            *scrapes(hub, token),
            {**scrapes(hub, hub.token("ann"))[0], "job_name": "of-a-user", "relabel_configs": []},
        ],
    }
    with running(tmp_path / "prometheus", config) as prometheus:
        until_value(prometheus, 'sum(up{job="mlp-hub"}) == 2')
        until_value(prometheus, 'sum(up{job="jupyterhub"}) == 1')
        ((_, jobs),) = until_value(prometheus, 'sum(mlp_jobs{job="mlp-hub",phase="running"})')
        assert jobs == 2
        roles = prometheus.query('mlp_replica_info{job="mlp-hub"}')
        assert sorted(labels["replica_role"] for labels, _ in roles) == ["follower", "leader"]
        assert until_value(prometheus, 'sum(mlp_node_capacity{resource="cpu"}) > 0')
        assert prometheus.targets()["of-a-user"].startswith("down server returned HTTP status 403")


def days(hub: Release) -> float:
    """Return a setting, as the API tells it."""
    return float(hub.ok("GET", "/session", "ann")["keeping"]["job_days"])


def test_4_an_upgrade_changes_a_setting_and_a_rollback_takes_it_back_and_no_request_is_refused(
    hub: Release,
) -> None:
    assert days(hub) == 90
    asking = Asking(hub)
    changed = {**hub.values["settings"], "keep_jobs_days": 30}
    for name, act, wanted in (
        ("upgrade", ("upgrade", "hub", *hub.with_values(settings=changed)), 30),
        ("rollback", ("rollback", "hub", "1"), 90),
    ):
        with asking.all_the_time("reads", "writes", "login") as asked:
            hub.helm(*act)
            hub.until_ready()
            wait_for(lambda: days(hub) == wanted, message="for the new settings")  # noqa: B023 - within the loop
        asking.report(name)
        assert [each for found in asked.values() for each in found.refused] == []
        goes_on(hub)
    assert asking.lost() == []


def test_4a_a_notebook_server_answers_all_the_time_while_jupyterhub_is_replaced_and_a_login_waits(
    hub: Release,
) -> None:
    asking = Asking(hub)
    asking.start_lab()
    with asking.all_the_time("lab", "reads", "login") as asked:
        hub.at("rollout", "restart", f"deployment/{NAME}-hub")
        hub.until_ready()
        time.sleep(REMEMBERED_S)  # the server asks the hub again for who comes after so long
    asking.report("JupyterHub is replaced")
    assert [each for found in asked.values() for each in found.refused] == []


def evicted(hub: Release, pod: str) -> bool:
    """Evict a pod as a drain of its node does; whether the cluster let it go."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": hub.at.name},
    }
    path = f"/api/v1/namespaces/{hub.at.name}/pods/{pod}/eviction"
    try:
        hub.at("create", "--raw", path, "-f", "-", given=json.dumps(body))
    except RefusedError as refused:
        if "disruption budget" not in str(refused):
            raise
        return False
    return True


def test_4b_an_evicted_leader_hands_over_without_a_refused_request_and_the_other_is_not_evicted_meanwhile(
    hub: Release,
) -> None:
    asking, rig = Asking(hub), PodsRig(hub)
    leader = rig.settled()
    (other,) = hub.pods("service").keys() - {leader}
    with asking.all_the_time("reads", "writes") as asked:
        assert evicted(hub, leader)
        assert not evicted(hub, other)
        wait_for(lambda: hub.leader() == other, message="for the other to lead")
        rig.settled()
    asking.report("eviction of the leader")
    assert [each for found in asked.values() for each in found.refused] == []
    goes_on(hub)


def test_5_the_job_finishes_with_all_that_it_said(hub: Release) -> None:
    enough = hub.homes / "ann" / "enough"
    enough.touch()
    hub.wait_phase("ann", "ticks", "finished")
    assert f"ticks {ticks(hub)}" in hub.log("ann", "ticks")


def left(hub: Release) -> list[str]:
    """List what the cluster has of the release and of its hub, in the release's namespace and outside of namespaces."""

    def found(namespaced: str) -> list[str]:
        kinds = hub.kube("api-resources", "--verbs=list", f"--namespaced={namespaced}", "-o", "name").split()
        some = ",".join(kind for kind in kinds if not kind.startswith(("events", "componentstatuses")))
        return hub.at("get", some, "-o", "name", "--ignore-not-found").split()

    of_every_namespace = {"serviceaccount/default", "configmap/kube-root-ca.crt"}
    ours = (f"{hub.at.name}-", f"{hub.name}-")
    outside = [one for one in found("false") if one.rpartition("/")[2].startswith(ours)]
    return sorted({*found("true"), *outside} - of_every_namespace)


def test_6_nothing_is_left_but_what_the_values_say_is_kept(hub: Release) -> None:
    hub.helm("uninstall", "hub", "--wait")
    kept = [
        f"persistentvolume/{hub.at.name}-{NAME}-files",
        f"persistentvolumeclaim/{NAME}-files",
        f"secret/{NAME}-secrets",
    ]
    wait_for(lambda: left(hub) == kept, GONE_S, 1, f"for only these to be left: {kept}")


@pytest.mark.whole
def test_7_the_next_installation_has_all_of_it_again_and_without_keep_an_uninstall_leaves_nothing(
    hub: Release,
) -> None:
    hub.helm("install", "hub", *hub.with_values(storage={**hub.values["storage"], "keep": False}))
    hub.until_ready()
    assert {job["name"] for job in hub.ok("GET", "/users/ann/jobs?limit=1000", "ann")} >= {
        "sum",
        "ticks",
        "killed0",
    }
    hub.helm("uninstall", "hub", "--wait")
    wait_for(lambda: left(hub) == [], GONE_S, 1, "for nothing to be left")
    assert (Path(hub.homes) / "ann" / "enough").exists()
