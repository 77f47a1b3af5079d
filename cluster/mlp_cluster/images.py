"""The images that pods run, none of which comes from a registry: `images/build` makes them, and they are laid out for a node.

Each clone's are tagged with its name, so that those of others stay, and all clusters of a clone have them; there all are `NAME:dev`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlp_cluster.place import ROOT, clone
from mlp_cluster.running import ClusterError, output, say

JOBS, TENSORFLOW, NOTEBOOK = "mpi", "tf", "notebook"
PLATFORM = ("hub", "service", "postgresql")
"""What a hub installed by the chart consists of."""
OURS = (JOBS, TENSORFLOW, NOTEBOOK, *PLATFORM)
PAUSE = "pause"
_PAUSE_FROM = 'FROM scratch\nCOPY pause /\nCMD ["/pause"]\n'


def in_cluster(name: str) -> str:
    """Return what pods call an image."""
    return f"mlp.local/{name}:dev"


def _here(name: str) -> str:
    return f"mlp.local/{name}:{clone()}"


@dataclass(frozen=True)
class Image:
    """An image that was built: its number, which changes with what is in it, and its layers, the lowest first."""

    name: str
    number: str
    layers: tuple[str, ...]

    @property
    def chains(self) -> list[str]:
        """What the layers make together, each with all below it."""
        return _chains(self.layers)


def build(*names: str) -> None:
    """Build images of this tree, with its wheel; layers that are there are not made again."""
    env = {"TAG": clone(), "BUILDER": "buildah"}
    said = output([ROOT / "images" / "build", *names], env=env)
    for line in said.splitlines():
        say(line)


def build_pause(programs: Path) -> None:
    """Build the image of what holds a pod together."""
    if _inspect(PAUSE) is None:
        file = ["--file", "-", str(programs)]
        output(["buildah", "build", "--quiet", "--tag", _here(PAUSE), *file], given=_PAUSE_FROM)


def built(names: Iterable[str] = (PAUSE, *OURS)) -> list[Image]:
    """Return those of these images that this clone has built."""
    return [image for name in names if (image := _inspect(name)) is not None]


def _inspect(name: str) -> Image | None:
    try:
        found = json.loads(output(["buildah", "inspect", "--type", "image", _here(name)]))
    except ClusterError:
        return None
    return Image(name, found["FromImageID"], tuple(found["OCIv1"]["rootfs"]["diff_ids"]))


def lay_out(folder: Path, images: Collection[Image], unpacked: Collection[str] = ()) -> None:
    """Write images as an OCI layout, without the layers that are unpacked where they go, named by what they make together."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    pairs = [pair for image in images for pair in zip(image.layers, image.chains, strict=True)]
    wanted = {layer for layer, chain in pairs if chain not in unpacked}
    stand_ins = [
        blobs / layer.removeprefix("sha256:")
        for layer in {layer for layer, _ in pairs}
        if layer not in wanted
    ]
    for path in stand_ins:  # what is there already is not written
        path.write_text("-")
    for image in images:
        output(["buildah", "push", "--quiet", image.number, f"oci:{folder}:{in_cluster(image.name)}"])
    for path in stand_ins:
        path.unlink()
    _name(folder)


def packed_layers(folder: Path) -> set[str]:
    """Return the digests of the packed layers of a layout."""
    index = json.loads((folder / "index.json").read_text())
    manifests = [json.loads(_blob(folder, entry["digest"]).read_text()) for entry in index["manifests"]]
    return {layer["digest"] for manifest in manifests for layer in manifest["layers"]}


def _name(folder: Path) -> None:
    """Write down the images' names as containerd wants them."""
    path = folder / "index.json"
    index = json.loads(path.read_text())
    for entry in index["manifests"]:
        names = entry["annotations"]
        names["io.containerd.image.name"] = names["org.opencontainers.image.ref.name"]
    path.write_text(json.dumps(index))


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / digest.replace(":", "/")


def _chains(digests: Sequence[str]) -> list[str]:
    """Name what layers make together, each with all below it, as containerd names what it unpacked."""
    made = list(digests[:1])
    for digest in digests[1:]:
        made.append(f"sha256:{hashlib.sha256(f'{made[-1]} {digest}'.encode()).hexdigest()}")
    return made


def pack(layout: Path, to: Path) -> None:
    """Write an OCI layout as an archive, as containerd takes it."""
    output(["tar", "-C", layout, "-cf", to, "index.json", "oci-layout", "blobs"])
