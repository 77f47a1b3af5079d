"""The Helm chart, rendered by the real helm, which is built once for all clones."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_cluster import helm
from mlp_cluster.running import ClusterError

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm" / "mlp-hub"
VALUES = ROOT / "helm" / "values"
FILES = tuple(sorted(path.stem for path in VALUES.glob("*.yaml")))
"""Names of the example files of values."""
Object = dict[str, Any]


class Chart:
    """The chart of this tree, as the release `hub` in the namespace `mlp`."""

    def __init__(self) -> None:
        try:
            self.program = helm.build()
        except ClusterError as error:
            pytest.skip(f"helm is not to be had: {error}")

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run helm."""
        command = [self.program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    def text(self, file: str = "gateway", *more: str, **sets: str) -> str:
        """Render the chart with a file of values and further ones, given as `--set` has them."""
        done = self._template(file, *more, **sets)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self, file: str = "gateway", *more: str, **sets: str) -> list[Object]:
        """Render the chart and return its objects."""
        return [one for one in yaml.safe_load_all(self.text(file, *more, **sets)) if one]

    def refusal(self, file: str = "gateway", *more: str, **sets: str) -> str:
        """Return what helm says where it refuses values."""
        done = self._template(file, *more, **sets)
        assert done.returncode != 0, "helm took these values"
        return done.stderr

    def _template(self, file: str, *more: str, **sets: str) -> subprocess.CompletedProcess[str]:
        values = ["--values", VALUES / f"{file}.yaml"] if file else []
        given = [part for one in more for part in ("--set-json", one)]
        given += [part for name, value in sets.items() for part in ("--set", f"{name}={value}")]
        return self.run("template", "hub", CHART, "--namespace", "mlp", *values, *given)


def named(objects: list[Object], kind: str) -> Mapping[str, Object]:
    """Return the objects of a kind, by name."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def pods(objects: list[Object]) -> Mapping[str, Object]:
    """Return the pod of each Deployment, by the Deployment's name."""
    return {name: one["spec"]["template"] for name, one in named(objects, "Deployment").items()}


def containers(pod: Object) -> list[Object]:
    """Return all containers of a pod, those of its start too."""
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
