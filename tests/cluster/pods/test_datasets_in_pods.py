"""Datasets in pods: another member's is read and never written, and links within lead nowhere outside the pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.executors.base import AttemptKey, AttemptPhase, DataMount
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.sandbox import open_shelf
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab, until

OWNER = 300_777
READS = """
import os
print("read", open("/data/pets/cats").read(), open("/mnt/theirs/cats").read())
for what in ("open('/data/pets/new', 'w')", "os.unlink('/mnt/theirs/cats')", "open('/data/pets/secret')", "os.listdir('/data/pets/up')"):
    try:
        eval(what)
        print("did", what)
    except OSError as error:
        print("refused", error.errno)
"""


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


async def test_a_job_reads_another_members_dataset_and_nothing_beside_it(lab: KubeLab) -> None:
    root = lab.directories.root
    with open_shelf(root, "datasets", "bob", OWNER) as shelf, shelf.inside("pets", make=0o755) as pets:
        pets.give(OWNER, OWNER)
        with pets.create("cats", 0o644, OWNER) as file:
            file.write(b"miaow")
        pets.link("secret", str(root / "datasets/bob/other"), OWNER)
        pets.link("up", "../../../homes", OWNER)
    (root / "datasets/bob/other").write_text("theirs alone")
    place = StoredPlace("dataset", "bob", "pets")
    data = (DataMount(place, "/data/pets"), DataMount(place, "/mnt/theirs"))

    async with lab.executing() as executor:
        spec = lab.spec(READS, data=data)
        await executor.start(spec)
        assert (await until(executor, spec.attempt)).phase is AttemptPhase.SUCCEEDED
        lines = [
            line.text for line in (await executor.read_log(AttemptKey(spec.attempt, spec.of_run), 0)).lines
        ]
        assert lines == ["read miaow miaow", "refused 30", "refused 30", "refused 2", "refused 2"]
