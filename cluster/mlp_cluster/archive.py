"""Archives of images, as containerd takes them, of OCI layouts; and what it calls layers that it has unpacked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from mlp_cluster.running import output


def chains(digests: Sequence[str]) -> list[str]:
    """Name what layers make together, each with all below it, as containerd names what it unpacked."""
    made = list(digests[:1])
    for digest in digests[1:]:
        made.append(f"sha256:{hashlib.sha256(f'{made[-1]} {digest}'.encode()).hexdigest()}")
    return made


def pack(layout: Path, to: Path) -> None:
    """Write an OCI layout as an archive."""
    output(["tar", "-C", layout, "-cf", to, "index.json", "oci-layout", "blobs"])
