"""What programs of one tenant try on the files of another one that is encrypted or has a root of its own, from inside real sandboxes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.domain.tenants.tenant import DEDICATED, ENCRYPTED, Isolation
from mlp_hub.executors.base import AttemptPhase, DataMount
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.isolation import RootEntry, lacking
from support.executors.executor_lab import Lab

needs_gocryptfs = pytest.mark.skipif(lacking() is not None, reason=f"no encrypted tenants here: {lacking()}")
LOOK = """
import os
for top in {tops!r}:
    try:
        print("GOT", top, os.listdir(top))
    except OSError as error:
        print("refused", top, type(error).__name__)
print("mounts", [line.split()[1] for line in open("/proc/self/mounts") if "gocryptfs" in line or "fuse" in line.split()[2]])
"""


@pytest.fixture(params=[pytest.param(ENCRYPTED, marks=needs_gocryptfs), DEDICATED])
def red(request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tenant red, kept so, with a dataset of ann's; the directory of it, in clear."""
    root = str(tmp_path_factory.mktemp("volumes") / "red") if request.param == DEDICATED else ""
    kept = Isolation(request.param, root)
    lab.roots.prepare("red", kept)
    lab.roots.enter("red", RootEntry(kept))
    with lab.roots.using("red", write=True) as top:
        pets = top / "datasets" / "ann" / "pets"
        pets.mkdir(parents=True)
        (pets / "secret").write_text("in clear")
        pets.chmod(0o755)
    yield pets
    if lab.roots.mounts is not None:
        for tenant in lab.roots.mounts.mounted_tenants():
            lab.roots.rest(tenant)


def test_a_job_of_the_tenant_reads_its_dataset_and_leaves_its_own_files_there(lab: Lab, red: Path) -> None:
    code = "print(open('/data/pets/secret').read()); open('/workspace/ckpt/made', 'w').write('mine')"
    spec = lab.spec(
        code, tenant="red", data=(DataMount(StoredPlace("dataset", "ann", "pets", "red"), "/data/pets"),)
    )
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    with lab.roots.using("red"):
        assert lab.output(spec) == ["in clear"]
        assert (red.parents[2] / "jobs" / "ann" / spec.job / "ckpt" / "made").read_text() == "mine"
    assert not (lab.base / "jobs" / "ann").exists(), "nothing of it is in the tree of all"


def test_a_job_of_another_tenant_sees_neither_the_files_nor_the_mount(lab: Lab, red: Path) -> None:
    with lab.roots.using("red") as top:
        tops = [
            str(red),
            str(top),
            str(lab.base / "isolation"),
            str(lab.base / "encrypted"),
            "/proc/1/root" + str(red),
        ]
        spec = lab.spec(LOOK.format(tops=tops), user="bob", tenant="blue")
        assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
        said = lab.output(spec)
    assert [line for line in said if line.startswith("GOT")] == []
    assert said[-1] == "mounts []"


def test_a_job_of_the_same_person_in_another_tenant_does_not_either(lab: Lab, red: Path) -> None:
    """By name it means the dataset in its own tenant's tree, which is another directory."""
    mount = DataMount(StoredPlace("dataset", "ann", "pets", "blue"), "/data/pets")
    spec = lab.spec("import os; print(os.listdir('/data/pets'))", tenant="blue", data=(mount,))
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["[]"]
    assert (red / "secret").exists() or not red.exists()


@needs_gocryptfs
def test_a_process_that_may_not_read_a_file_cannot_read_it_through_the_mount(lab: Lab) -> None:
    if os.geteuid() != 0:
        return  # one uid has all
    kept = Isolation(ENCRYPTED)
    lab.roots.prepare("red", kept)
    lab.roots.enter("red", RootEntry(kept))
    try:
        with lab.roots.using("red", write=True) as top:
            (top / "closed").write_text("x")
            (top / "closed").chmod(0o600)
            pid = os.fork()
            if pid == 0:
                os.setuid(65534)
                try:
                    (top / "closed").read_text()
                except PermissionError:
                    os._exit(7)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    finally:
        lab.roots.rest("red")
