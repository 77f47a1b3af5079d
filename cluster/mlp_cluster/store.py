"""How images get into a cluster's node.

Big layers are unpacked once for all clones and starts, into a template of containerd's folder: a cluster's own folder
links to what is in there. The layers of the wheel are small and change with the sources: what is new is brought at each start.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from mlp_cluster import images
from mlp_cluster.components import Making
from mlp_cluster.images import Image
from mlp_cluster.place import DRAFT, base, used
from mlp_cluster.running import ClusterError, output, say
from mlp_cluster.space import Space

NAMESPACE = "k8s.io"
_NOTES = "images.json"
"""Beside what containerd keeps: the number of each image that it has of ours."""


class Store:
    """The images of one cluster's node."""

    def __init__(self, making: Making, space: Space) -> None:
        self.making = making
        self.space = space
        self.socket = making.file("containerd.sock")
        self.folder = making.file("containerd")

    def answers(self) -> bool:
        """Say whether containerd does."""
        try:
            self.ctr("version")
        except ClusterError:
            return False
        return True

    def ctr(self, *words: str) -> str:
        """Ask containerd."""
        return self.space.run(["ctr", "--address", self.socket, "--namespace", NAMESPACE, *words])

    def fill(self) -> None:
        """Lay out containerd's folder before it starts: what is big is linked to the template."""
        if self.folder.exists():
            return
        made = template(self.making.programs)
        draft = self.folder.with_suffix(DRAFT)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(made, draft, ignore=_big, copy_function=_link_or_copy)
        for path in made.glob("io.containerd.snapshotter.v1.overlayfs/snapshots/*"):
            (draft / path.relative_to(made)).symlink_to(path)
        draft.rename(self.folder)

    def load(self) -> list[str]:
        """Bring what this clone has built and the node has not; return the names of these images."""
        numbers = json.loads((self.folder / _NOTES).read_text())
        new = [image for image in images.built() if numbers.get(image.name) != image.number]
        if not new:
            return []
        layout, packed = self.folder.with_name("layout"), self.folder.with_name("images.tar")
        shutil.rmtree(layout, ignore_errors=True)
        images.lay_out(layout, new, set(self.ctr("snapshots", "ls").split()))
        images.pack(layout, packed)
        self.ctr("images", "import", str(packed))
        packed.unlink()
        shutil.rmtree(layout)
        _note(self.folder, numbers, new)
        return [images.in_cluster(image.name) for image in new]


def template(programs: Path) -> Path:
    """Return a containerd's folder that has the images of this clone but for their last layers; make it if it is not there."""
    images.build_pause(programs)
    if missing := [name for name in images.OURS if not images.built([name])]:
        say(f"building images: {', '.join(missing)}")
        images.build(*missing)
    built = images.built()
    key = hashlib.sha256(repr(sorted({image.layers[:-1] for image in built})).encode()).hexdigest()[:16]
    made = base() / "images" / key
    if made.exists():
        used(made, "")
        return made
    say("unpacking images")
    draft = made.with_suffix(DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    images.lay_out(draft / "layout", built)
    images.pack(draft / "layout", draft / "images.tar")
    layers = images.packed_layers(draft / "layout")
    _import(draft, layers)
    _note(draft / "root", {}, built)
    packed = draft / "root" / "io.containerd.content.v1.content" / "blobs" / "sha256"
    for (
        layer
    ) in layers:  # what is unpacked is not needed packed: containerd forgot it, and would delete it later
        (packed / layer.removeprefix("sha256:")).unlink(missing_ok=True)
    (draft / "root").rename(made)
    shutil.rmtree(draft)
    used(made, "")
    return made


def _note(folder: Path, numbers: Mapping[str, str], new: Collection[Image]) -> None:
    """Write down what containerd's folder has now: these images, besides what it had."""
    (folder / _NOTES).write_text(json.dumps({**numbers, **{image.name: image.number for image in new}}))


def _import(draft: Path, layers: Collection[str]) -> None:
    """Import an archive with a containerd that runs for that alone, and have it forget the packed layers."""
    (draft / "config.toml").write_text(
        f'version = 2\nroot = "{draft}/root"\nstate = "{draft}/state"\noom_score = 0\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{draft}/socket"\n'
        f'[plugins."io.containerd.internal.v1.opt"]\n  path = "{draft}/opt"\n'
    )
    lines = f"""\
set -eu
cd {shlex.quote(str(draft))}
mount -t tmpfs tmpfs /run
containerd --config config.toml >log 2>&1 &
c="ctr --address socket --namespace {NAMESPACE}"
for i in $(seq 100); do $c version >/dev/null 2>&1 && break; sleep 0.1; done
$c images import images.tar
rm images.tar
$c content rm {" ".join(layers)}
kill $!
wait
"""
    output(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", lines])


def _big(folder: str, names: list[str]) -> set[str]:
    return set(names) if folder.endswith("/snapshots") else set()


def _link_or_copy(source: str, to: str) -> str:
    # blobs are never written again, databases are
    if "/blobs/" in source:
        os.link(source, to)
        return to
    return shutil.copy2(source, to)
