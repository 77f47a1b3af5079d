"""Starting a cluster: each step does only what is not done, so that it also mends one that was half there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlp_cluster import certificates, components, machine, programs, store
from mlp_cluster.api import Api
from mlp_cluster.components import Component, Making
from mlp_cluster.operators import Operators
from mlp_cluster.place import DRAFT, NODE, Place, alone, claim, find
from mlp_cluster.running import say, until
from mlp_cluster.space import PATIENCE, Space
from mlp_cluster.store import Store


def up(name: str, *, pods: bool) -> Place:
    """Build what is needed, start what does not run, and wait until all of it is there."""
    machine.check(pods=pods)
    with alone("builds"):
        built = programs.build()
        if pods:
            store.template(built)
    with alone(name):
        place = claim(name)
        space = Space(place)
        if not space.whole():
            machine.check_watches(pods=pods)
            space.destroy()  # of one that was killed nothing is worth keeping
            place = claim(name)
            space = Space(place)
            space.make(built / "pause")
            certificates.write(place)
        kubectl = place.folder / "kubectl"
        new = kubectl.with_suffix(DRAFT)
        new.unlink(missing_ok=True)
        new.symlink_to(built / "kubectl")
        new.replace(kubectl)  # somebody may be running it
        Starting(Making(place, built, pods), space).all(pods=pods)
    return place


def down(name: str) -> bool:
    """End a cluster and all that it left; say whether there was one."""
    with alone(name):
        place = find(name) or Place(name, 0)
        space = Space(place)
        there = space.holder() is not None or place.folder.exists()
        space.destroy()
    return there


class Starting:
    """The order in which things start."""

    def __init__(self, making: Making, space: Space) -> None:
        self.making = making
        self.space = space
        self.api = Api(making.place)
        self.operators = Operators(making, space)

    def all(self, *, pods: bool) -> None:
        """Start everything."""
        self._component("etcd", components.etcd)
        self._component("kube-apiserver", components.apiserver)
        self.space.until("kube-apiserver", self._answers)
        say("API server")
        for name, make in components.CONTROL.items():
            self._component(name, make)
        work: list[Callable[[], None]] = [self.operators.mpi, self.operators.training, self.operators.volcano]
        if pods:
            work.insert(0, self.node)
        with ThreadPoolExecutor(len(work)) as pool:
            for done in [pool.submit(one) for one in work]:
                done.result()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        until("the default service account", lambda: self.api.get(account) is not None, PATIENCE)
        say("operators")

    def node(self) -> None:
        """Start the node and bring it its images."""
        images = Store(self.making, self.space)
        images.fill()
        self._component("containerd", components.containerd)
        self.space.until("containerd", images.answers)
        images.load()
        for name, make in components.ON_NODE.items():
            self._component(name, make)
        ready = f"/api/v1/nodes/{NODE}"
        self.space.until("kubelet", lambda: self.api.holds(ready, "Ready"))
        say("node")

    def _answers(self) -> bool:
        return self.api.get("/readyz") is not None

    def _component(self, name: str, make: Callable[[Making], Component]) -> None:
        if name in self.space.running():
            return
        component = make(self.making)
        for file, content in component.files.items():
            path = Path(self.making.file(file))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.space.start(name, component.argv)
