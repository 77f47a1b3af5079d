"""`python -m mlp_cluster up|down|can|build|with|images|nodes|kubeconfig|helm|layer|kill`: what the targets of the Makefile and CI call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mlp_cluster import fake_nodes, helm, images, layer, machine, programs, store
from mlp_cluster.able import able
from mlp_cluster.components import Making
from mlp_cluster.passing import passing
from mlp_cluster.place import alone, brought, clone_name, find
from mlp_cluster.running import ClusterError, say
from mlp_cluster.space import Space
from mlp_cluster.store import Store
from mlp_cluster.up import down, up

_PRINTED: dict[str, Callable[[], object]] = {"can": able, "helm": helm.build, "layer": layer.build}


def main(argv: Sequence[str]) -> int:
    """Do one of the commands."""
    parser = argparse.ArgumentParser(prog="mlp_cluster", description="A real Kubernetes on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="build and start the cluster; nothing is done twice")
    build = commands.add_parser("build", help="build all that a cluster and its images are made of")
    beside = commands.add_parser("with", help="run a command beside a cluster of its own, which ends with it")
    for one in (start, build, beside):
        one.add_argument(
            "--api-only", action="store_true", help="no node: API server, controllers, operators, kwok"
        )
    beside.add_argument("program", nargs="+")
    commands.add_parser("can", help="say what this machine can run: `pods`, `api` or `none`, and why no more")
    commands.add_parser("down", help="end the cluster, with all that it left")
    commands.add_parser("images", help="build the images with the hub's wheel, and bring them to the cluster")
    nodes = commands.add_parser("nodes", help="add nodes that kwok plays")
    nodes.add_argument("count", type=int)
    nodes.add_argument("--gpus", type=int, default=8)
    commands.add_parser("kubeconfig", help="print where the kubeconfig is; kubectl lies beside it")
    commands.add_parser("helm", help="build helm unless it is there, and print where it is")
    commands.add_parser(
        "layer", help="build the agent of tenants' own clusters unless it is there, and print where it is"
    )
    kill = commands.add_parser("kill", help="kill one of the cluster's programs; `up` starts it again")
    kill.add_argument("name")
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "with":
            return passing(arguments.program, pods=not arguments.api_only)
        _do(arguments)
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _do(arguments: argparse.Namespace) -> None:
    name, given = clone_name(), brought()
    command = arguments.command
    if command in _PRINTED:
        print(_PRINTED[command]())
    elif command == "build":
        _build(pods=not arguments.api_only)
    elif command == "kubeconfig":
        print(_kubeconfig(name, given))
    elif given and command in {"up", "down", "images", "kill"}:
        say(f"KUBECONFIG is set: the cluster of {given} is used, and left as it is")
    elif command == "up":
        place = up(name, pods=not arguments.api_only)
        say(f"the cluster runs: export KUBECONFIG={place.kubeconfig}")
    elif command == "down":
        say("the cluster is gone" if down(name) else "there is no cluster")
    elif command == "images":
        _images(name)
    elif command == "nodes":
        fake_nodes.add(Path(_kubeconfig(name, given)), arguments.count, arguments.gpus)
    elif there := find(name):
        Space(there).kill(arguments.name)


def _build(*, pods: bool) -> None:
    machine.check(pods=pods)
    with alone("builds"):
        built = programs.build()
        helm.build()
        layer.build()
        if pods:
            images.build(*images.OURS)
            store.template(built)
    say("all is built")


def _kubeconfig(name: str, given: str | None) -> str:
    if given:
        return given
    place = find(name)
    if place is None or not place.kubeconfig.exists():
        raise ClusterError("the cluster does not run: make cluster")
    return str(place.kubeconfig)


def _images(name: str) -> None:
    with alone("builds"):
        images.build(*images.OURS)
    place = find(name)
    if place is None or "containerd" not in Space(place).running():
        say("built; the next `make cluster` brings them")
        return
    with alone(name):
        new = Store(Making(place, programs.folder()), Space(place)).load()
    say(f"brought to the cluster: {', '.join(new)}" if new else "the cluster has them already")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
