"""The agent of a tenant's own cluster (`layers/`), built from its Go module; once for all clones with the same sources.

`python -m mlp_cluster layer` builds it and prints its path.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from mlp_cluster.helm import built_once
from mlp_cluster.machine import go
from mlp_cluster.place import ROOT, base
from mlp_cluster.running import output

SOURCES = ROOT / "layers"
_FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")


def path() -> Path:
    """Return where the program is or will be."""
    sha = hashlib.sha256(Path(__file__).read_bytes())
    for file in (*sorted(SOURCES.glob("*.go")), SOURCES / "go.mod", SOURCES / "go.sum"):
        if not file.name.endswith("_test.go"):
            sha.update(f"{file.name}\0".encode() + file.read_bytes())
    return base() / "layer" / sha.hexdigest()[:16] / "layer"


def build() -> Path:
    """Build it unless it is there; return its path."""
    return built_once(path(), "layer", _compile)


def _compile(into: Path) -> None:
    output([go(), "build", *_FLAGS, "-o", into, "."], env={"CGO_ENABLED": "0"}, cwd=SOURCES)


def check() -> str:
    """Run the agent's own tests, `go vet` and `gofmt`; return what they print. Raises `ClusterError` on a fault."""
    env = {"CGO_ENABLED": "0"}
    unformatted = output(["gofmt", "-l", "."], cwd=SOURCES)
    vetted = output([go(), "vet", "./..."], env=env, cwd=SOURCES)
    return unformatted + vetted + output([go(), "test", "./..."], env=env, cwd=SOURCES)
