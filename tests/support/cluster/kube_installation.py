"""A hub's installation in a cluster, for tests of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.shared_volume.directories import Directories


def installation(name: str = "mlp", root: Path = Path("/srv/mlp"), **fields: Any) -> Installation:
    """Return an installation whose files lie in a directory of the node."""
    given: dict[str, Any] = {
        "root": root,
        "directories": Directories(homes=root / "homes", jobs=root / "jobs"),
        "volume": {"hostPath": {"path": "/tmp", "type": "Directory"}},
        "image": "mlp.local/notebook:dev",
        "service": ("10.99.7.5", 8081),
        "hub": ("10.99.7.5", 8000),
        "name": name,
    }
    return Installation(**(given | fields))
