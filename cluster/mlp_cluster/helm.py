"""The program helm, built from its Go module; once for all clones, and apart from the programs of the cluster: tests of the chart need no more.

`python -m mlp_cluster helm` builds it and prints its path.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from mlp_cluster.machine import go
from mlp_cluster.place import DRAFT, ROOT, alone, base, used
from mlp_cluster.programs import KUBERNETES
from mlp_cluster.running import output, say

SOURCES = ROOT / "cluster" / "helm"
PACKAGE = "helm.sh/helm/v3"


def path() -> Path:
    """Return where the program is or will be."""
    sha = hashlib.sha256(Path(__file__).read_bytes())
    for name in ("go.mod", "go.sum"):
        sha.update((SOURCES / name).read_bytes())
    return base() / "helm" / sha.hexdigest()[:16] / "helm"


def build() -> Path:
    """Build it unless it is there; return its path."""
    return built_once(path(), "helm", _compile)


def built_once(made: Path, name: str, compile_to: Callable[[Path], None]) -> Path:
    """Return a program that is built apart from those of the cluster; build it unless it is there."""
    with alone(name):
        if not made.exists():
            say(f"building {name} from source; the first time that takes some minutes")
            draft = made.parent.with_suffix(DRAFT)
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            compile_to(draft / made.name)
            draft.rename(made.parent)
    os.utime(made.parent)
    used(made.parent, "")
    return made


def _compile(into: Path) -> None:
    major, minor, *_ = KUBERNETES.lstrip("v").split(".")
    module, version = (SOURCES / "go.mod").read_text().split("require ")[1].split()[:2]
    flags = [
        *("-s", "-w", f"-X {module}/internal/version.version={version}"),
        # the version of Kubernetes that a chart is rendered for where no cluster is asked
        *(f"-X {module}/pkg/{of}Version{part}={value}" for of in ("chartutil.k8s", "lint/rules.k8s")
          for part, value in (("Major", major), ("Minor", minor))),
    ]  # fmt: skip
    command: list[str | Path] = [
        go(),
        "build",
        "-trimpath",
        "-buildvcs=false",
        f"-ldflags={' '.join(flags)}",
        "-o",
        into,
    ]
    output([*command, f"{PACKAGE}/cmd/helm"], env={"CGO_ENABLED": "0"}, cwd=SOURCES)
