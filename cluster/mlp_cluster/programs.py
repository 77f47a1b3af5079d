"""The programs of the cluster, built from Go modules, and the manifests that come with them; once for all clones."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mlp_cluster.machine import go
from mlp_cluster.place import DRAFT, ROOT, base, used
from mlp_cluster.running import output, say

SOURCES = ROOT / "cluster" / "programs"
KUBERNETES = "v1.34.4"
_MINOR = KUBERNETES.split(".")[1]

BUILT = {
    "./dns": "coredns",
    "./pause": "pause",
    "github.com/kubeflow/mpi-operator/cmd/mpi-operator": "mpi-operator",
    "github.com/kubeflow/training-operator/cmd/training-operator.v1": "training-operator",
    "go.etcd.io/etcd/server/v3": "etcd",
    **{
        f"k8s.io/kubernetes/cmd/{name}": name
        for name in (
            "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
        )
    },
    **{
        f"volcano.sh/volcano/cmd/{name}": f"volcano-{name}"
        for name in ("controller-manager", "scheduler", "webhook-manager")
    },
}  # fmt: skip
"""Packages, and what their programs are called here."""

KWOK = "sigs.k8s.io/kwok/cmd/kwok"

MANIFESTS = {
    "mpi-operator": ("github.com/kubeflow/mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml"),
    "training-operator": ("github.com/kubeflow/training-operator", "manifests/overlays/standalone"),
    "volcano": ("volcano.sh/volcano", "installer/volcano-development.yaml"),
}
"""Operators, their modules, and the file or Kustomize folder that installs them."""

_RUNS_ELSEWHERE = {"Deployment", "Job"}
"""What the cluster runs as processes beside the API server."""

_NOT_OURS = "mpijobs.kubeflow.org"
"""Two operators bring a definition of this name; the MPI Operator's is the newer."""


def folder() -> Path:
    """Return where the programs of these sources are or will be."""
    said = repr([BUILT, KWOK, MANIFESTS, Path(__file__).read_text()])
    sha = hashlib.sha256(said.encode())
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file():
            sha.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return base() / "programs" / sha.hexdigest()[:16]


def build() -> Path:
    """Build all programs that these sources ask for, unless they are there; return their folder."""
    made = folder()
    if made.exists():
        used(made, "")
        return made
    say(
        f"building Kubernetes {KUBERNETES} and operators from source; the first time that takes 10 to 20 minutes"
    )
    draft = made.with_suffix(DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    _compile(SOURCES, draft, list(BUILT))
    _compile(SOURCES / "kwok", draft, [KWOK])
    for name, objects in _manifests(draft):
        (draft / f"{name}.json").write_text(json.dumps(objects))
    draft.rename(made)
    used(made, "")
    say(f"programs in {made}")
    return made


def _compile(module: Path, into: Path, packages: list[str]) -> None:
    version = "k8s.io/component-base/version"
    flags = [
        *("-s", "-w", f"-X {version}.gitVersion={KUBERNETES}", f"-X {version}.gitMajor=1"),
        *(f"-X {version}.gitMinor={_MINOR}", f"-X {version}.gitTreeState=clean"),
        f"-X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}",
    ]
    env = {"CGO_ENABLED": "0"}
    command = [
        go(),
        "build",
        "-trimpath",
        "-buildvcs=false",
        f"-ldflags={' '.join(flags)}",
        "-o",
        f"{into}/out/",
    ]
    output([*command, *packages], env=env, cwd=module)
    for package in packages:
        # a module's root is called by the part of its path before the version
        parts = [part for part in package.split("/") if part != "v3"]
        (into / "out" / parts[-1]).rename(into / BUILT.get(package, parts[-1]))
    (into / "out").rmdir()


def _manifests(programs: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name, (module, path) in MANIFESTS.items():
        source = Path(output([go(), "list", "-m", "-f", "{{.Dir}}", module], cwd=SOURCES).strip(), path)
        text = output([programs / "kubectl", "kustomize", source]) if source.is_dir() else source.read_text()
        read = yaml.load_all(text, yaml.CSafeLoader)
        yield name, [one for one in read if one and _wanted(name, one)]


def _wanted(operator: str, one: dict[str, Any]) -> bool:
    twice = operator != "mpi-operator" and one["metadata"]["name"] == _NOT_OURS
    return not twice and one["kind"] not in _RUNS_ELSEWHERE
