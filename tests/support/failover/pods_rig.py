"""A hub in pods whose leader is ended in several ways, and the time until a write is accepted again."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Iterator

import httpx

from mlp_cluster.place import find
from mlp_cluster.space import Space
from support.cluster.asking import SERVICE, Asking
from support.cluster.release import Release
from support.failover.failover_load import failover_load
from support.failover.persistent_write import PersistentWrite
from support.waiting import PATIENCE_S, wait_for

CHILD = "$(cat /proc/1/task/1/children)"
"""The service in its container, whose first process is tini."""
WAYS = ("pod deleted", "process killed", "frozen", "cut off")


class PodsRig:
    """A release of the chart with two services, and a client that writes through its proxy."""

    def __init__(self, hub: Release, seed: int = 1) -> None:
        self.hub, self.random = hub, random.Random(seed)
        self.asking = Asking(hub)
        self.acknowledged: list[str] = []
        self._numbers = itertools.count(1)
        self._writes: list[PersistentWrite] = []

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        """Change things all the time, so that a leader is often in the middle of a write."""
        self.hub.ok("POST", "/tenants", body={"name": "red"})
        with failover_load(self.hub, self.random):
            yield
            self.settled()

    def settled(self) -> str:
        """Return the leader's pod, once both services are ready and one leads."""

        def both() -> bool:
            pods = self.hub.pods("service").values()
            ready = [
                all(each["ready"] for each in pod["status"].get("containerStatuses", [{"ready": False}]))
                for pod in pods
            ]
            return ready == [True, True]

        wait_for(both, message="for two services to be ready")
        return self.hub.leader()

    def write(self) -> bool:
        """Have one job taken, by a connection of its own; whether it was acknowledged."""
        name = f"f-{self.asking.run}-{next(self._numbers)}"
        body = {"name": name, "code": "pass", "tenant": "narrow", "cpu": 0.1, "ram": 200}
        try:
            with self.asking.client() as client:
                answer = client.post(f"{SERVICE}/users/ann/jobs", json=body)
        except httpx.TransportError:
            return False
        assert answer.status_code in (201, 429) or answer.status_code >= 500, answer.text
        if answer.status_code == 201:
            self.acknowledged.append(name)
        return answer.status_code == 201

    def ended(self, way: str) -> float:
        """End the leader in one of the `WAYS`, at a random moment; return seconds until a write was answered."""
        leader = self.settled()
        address = self.hub.at.get("pod", leader)["status"]["podIP"]
        time.sleep(self.random.uniform(0.0, 4.0))  # where in its lease, and in a write, it is
        with contextlib.ExitStack() as after:
            if way == "pod deleted":
                self.hub.at("delete", "pod", leader, "--grace-period=0", "--force", "--wait=false")
            elif way == "cut off":
                self._cut("-I", address)
                after.callback(self._cut, "-D", address)
            else:
                self._signal(leader, "KILL" if way == "process killed" else "STOP")
            if way == "frozen":
                after.callback(self._signal, leader, "CONT")
            return self._until_written(leader, way)

    def lost(self) -> list[str]:
        """Return the jobs that were acknowledged and are not listed once, or are listed twice."""
        for tries in self._writes:
            tries.join()
        self.settled()
        listed = [
            job["name"] for job in self.hub.ok("GET", "/users/ann/jobs?limit=1000&tenant=narrow", "ann")
        ]
        doubled = {name for name in listed if listed.count(name) > 1}
        return [name for name in self.acknowledged if name not in listed or name in doubled]

    def _signal(self, pod: str, signal: str) -> None:
        with contextlib.suppress(Exception):  # it may be gone by now
            self.hub.at("exec", pod, "-c", "service", "--", "sh", "-c", f"kill -{signal} {CHILD}")

    def _cut(self, verb: str, address: str) -> None:
        """Drop all packets from and to a pod, as the fall of its node does, or take that back."""
        place = find(self.hub.kube.kubeconfig.parent.name)
        assert place is not None, "the network of a cluster of others cannot be cut"
        for chain, side in (("FORWARD", "-s"), ("FORWARD", "-d"), ("INPUT", "-s")):
            Space(place).run(["iptables", "-w", verb, chain, side, address, "-j", "DROP"])

    def _until_written(self, leader: str, way: str) -> float:
        def by_another() -> bool:  # who is cut off or frozen answers what was asked right before
            return self.write() and self.hub.leader() != leader

        tries = PersistentWrite(by_another if way in ("cut off", "frozen") else self.write)
        self._writes.append(tries)
        took = tries.until_taken()
        assert took is not None, f"nobody took a write for {PATIENCE_S} s after the leader was {way}"
        return took
