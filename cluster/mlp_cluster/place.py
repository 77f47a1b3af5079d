"""Where a cluster's files and addresses are. A clone has one cluster; clusters of other clones have other numbers."""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlp_cluster.running import ClusterError, output

ROOT = Path(__file__).resolve().parents[2]
NODE = "node1"
DOMAIN = "cluster.local"
NUMBERS = range(16)
DRAFT = ".draft"
"""How something is called that is not yet built to its end."""


def base() -> Path:
    """Return the folder of all that is kept: what was built, and what runs; one file system, so that links do."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("CLUSTER_DIR") or f"{cache}/mlp-hub/cluster").expanduser().absolute()


def clone() -> str:
    """Return what this clone is called among those of the machine."""
    return f"mlp-{hashlib.sha256(bytes(ROOT)).hexdigest()[:6]}"


def clone_name() -> str:
    """Return the name of this clone's cluster."""
    name = os.environ.get("CLUSTER_NAME") or clone()
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,14}", name):  # it also names a network device
        raise ClusterError(
            f"CLUSTER_NAME={name}: 15 small letters, digits and dashes at most, a letter first"
        )
    return name


def brought() -> str | None:
    """Return the kubeconfig of a cluster that somebody else runs: KUBECONFIG may name this clone's own, as `up` says to."""
    given = os.environ.get("KUBECONFIG")
    own = Place(clone_name(), 0).kubeconfig
    return given if given and Path(given).absolute() != own else None


@dataclass(frozen=True)
class Place:
    """The files and addresses of one cluster. The host reaches all of the addresses; nothing else does."""

    name: str
    number: int

    @property
    def folder(self) -> Path:
        return base() / "running" / self.name

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def node(self) -> str:
        """The node and all that runs beside it: API server, DNS, operators' webhooks."""
        return f"10.99.{self.number}.1"

    @property
    def outside(self) -> str:
        """The host, as pods see it."""
        return f"10.99.{self.number}.5"

    @property
    def inside(self) -> str:
        """The cluster's end of the line to the host."""
        return f"10.99.{self.number}.6"

    @property
    def pods(self) -> str:
        return f"10.98.{self.number}.0/24"

    @property
    def services(self) -> str:
        return f"10.{64 + self.number}.0.0/16"

    @property
    def first_service(self) -> str:
        return f"10.{64 + self.number}.0.1"

    @property
    def networks(self) -> list[str]:
        """List what the host sends here."""
        return [f"{self.node}/32", self.pods, self.services]


def used(built: Path, kind: str) -> None:
    """Note that something built is used; of its kind keep it and the one before, unless a running cluster needs others."""
    os.utime(built)
    if any((base() / "running").glob("*")):
        return
    found = sorted(
        (path for path in built.parent.glob(f"{kind}*") if path.suffix != DRAFT),
        key=lambda path: path.stat().st_mtime,
    )
    for path in found[:-2]:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Wait until nobody else starts or stops this cluster."""
    base().mkdir(parents=True, exist_ok=True)
    with (base() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find(name: str) -> Place | None:
    """Return a cluster's place if it has one."""
    try:
        return Place(name, int((base() / "running" / name / "number").read_text()))
    except (OSError, ValueError):
        return None


def claim(name: str) -> Place:
    """Return a cluster's place; a new one gets a number whose addresses nobody uses on this machine."""
    with alone("numbers"):
        if found := find(name):
            return found
        others = {place.number for other in (base() / "running").glob("*") if (place := find(other.name))}
        routes = [
            ipaddress.ip_network(route["dst"])
            for route in json.loads(output(["ip", "-4", "-json", "route"]))
            if route["dst"] != "default"
        ]
        for number in NUMBERS:
            place = Place(name, number)
            mine = [ipaddress.ip_network(net) for net in (*place.networks, f"{place.outside}/32")]
            if number in others or any(net.overlaps(route) for net in mine for route in routes):
                continue
            place.folder.mkdir(parents=True, exist_ok=True)
            (place.folder / "number").write_text(str(number))
            return place
    raise ClusterError(
        "no addresses are left: this machine routes 10.99.0.0/16, 10.98.0.0/16 or 10.64.0.0/12 elsewhere (see `ip route`)"
    )
