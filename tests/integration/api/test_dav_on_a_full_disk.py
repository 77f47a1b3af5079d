"""A disk that is full in the middle of an upload: a clear answer, the old file, and nothing left over or charged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlp_hub.executors.shared_volume.trees.sizes import ENTRY
from support.executors.small_disk import KINDS, small_disk
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import serving

MIB = 2**20


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_old_file_and_charges_nothing(rig: ApiRig, tmp_path: Path, kind: str) -> None:
    name = f"full-{kind}"
    made = rig.ask("POST", "/users/ann/datasets", {"name": name, "size": 0, "tenant": "red"}, token=rig.ann)
    assert made.status == 201
    file = f"/data/ann/{name}/f"
    old = b"old" * ENTRY  # smaller ones have the service look, and its files are on another disk
    with small_disk(tmp_path / "disk", 8, kind) as disk, serving(rig, tmp_path, disk.root) as dav:
        assert dav.ask("PUT", file, old).status == 201
        disk.fill()
        refused = dav.ask("PUT", file, os.urandom(2 * MIB))
        assert refused.status == 507
        assert "disk is full" in refused.json["msg"]
        assert dav.ask("GET", file).body == old
        assert list((disk.root / ".uploads").iterdir()) == []
        shown = rig.ask("GET", f"/users/ann/datasets/{name}", token=rig.ann).json
        assert (shown["used"], shown["size"]) == (len(old), len(old))
        disk.free()
        assert dav.ask("PUT", file, b"new one").status == 204
        assert dav.ask("GET", file).body == b"new one"
