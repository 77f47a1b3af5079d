"""Definitions of kinds that other projects bring, out of their Go modules; only downloaded, nothing is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from mlp_cluster.machine import go
from mlp_cluster.place import ROOT
from mlp_cluster.running import output

SOURCES = ROOT / "cluster" / "definitions"
GATEWAY = "sigs.k8s.io/gateway-api"


def gateway() -> list[dict[str, Any]]:
    """Return the definitions of the Gateway API's standard channel."""
    downloaded = json.loads(output([go(), "mod", "download", "-json", GATEWAY], cwd=SOURCES))
    folder = Path(downloaded["Dir"], "config", "crd", "standard")
    read = [
        one
        for path in sorted(folder.glob("*.yaml"))
        for one in yaml.load_all(path.read_text(), yaml.CSafeLoader)
    ]
    return [one for one in read if one and one["kind"] == "CustomResourceDefinition"]
