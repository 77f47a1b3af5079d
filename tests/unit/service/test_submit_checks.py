"""What is refused at submission, and what is filled in."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.jobs.sweeps import SweepCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.sweep import Budget, Sweep, SweepPhase, SweepTrial
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.service.jobs.intake import ADDED_LATER, fingerprint, still_there
from mlp_hub.service.jobs.resolving import check_runtime
from mlp_hub.service.sweeps.asked import sweep_spec
from mlp_hub.service.sweeps.worker import trial_spec
from support.files.notebook_files import notebook
from support.rigs.requested import requested


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    home = tmp_path / "homes/ann"
    (home / "project").mkdir(parents=True)
    (home / "train.py").write_text("print(1)")
    (home / "project/a b.py").write_text("print(1)")
    (tmp_path / "secret.py").write_text("print(1)")
    (home / "link.py").symlink_to(tmp_path / "secret.py")
    return Directories(homes=tmp_path / "homes", jobs=tmp_path / "jobs")


def check(directories: Directories, **fields: Any) -> JobSpec:
    fields = {"name": "j", **({} if "entry" in fields else {"code": "x"}), **fields}
    workspace = SharedVolumeWorkspace(directories, Fence())
    return asyncio.run(requested(JobCreate(**fields), workspace))


def test_omitted_fields_are_filled_in(directories: Directories) -> None:
    assert check(directories) == JobSpec("j", "ann", "red", "plain", Resources(1000, 0, 1024), code="x")


@pytest.mark.parametrize(
    ("fields", "runtime", "workers"),
    [
        ({}, "plain", (1, 1)),
        ({"workers": 2}, "mpi", (2, 2)),
        ({"workers": "1:4"}, "mpi", (1, 4)),
        ({"ps": 1}, "tf", (1, 1)),
        ({"workers": 2, "runtime": "torch"}, "torch", (2, 2)),
    ],
)
def test_the_runtime_follows_from_the_shape(
    directories: Directories, fields: dict[str, Any], runtime: str, workers: tuple[int, int]
) -> None:
    spec = check(directories, **fields)
    assert (spec.runtime, (spec.workers_min, spec.workers_max)) == (runtime, workers)


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        ("train.py", "train.py"),
        ("./train.py", "train.py"),
        ("~/train.py", "train.py"),
        ("/home/ann/train.py", "train.py"),
        ("project/a b.py", "project/a b.py"),
        ("project/../train.py", "train.py"),
    ],
)
def test_a_script_is_found_in_the_home_directory(directories: Directories, entry: str, want: str) -> None:
    assert check(directories, entry=entry).entry == want


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"entry": "missing.py"}, "your home directory has no file missing.py; check the path"),
        ({"entry": "project"}, "is a directory"),
        ({"entry": "../../secret.py"}, "leaves your home directory"),
        ({"entry": "../annie/train.py"}, "leaves your home directory"),
        ({"entry": "link.py"}, "leaves your home directory"),
        ({"entry": "/etc/passwd"}, "outside of your home directory"),
        ({"entry": "/home/bob/train.py"}, "outside of your home directory"),
        ({"entry": "train.py\0"}, "NUL"),
        ({"entry": "train.py", "code": "x"}, "exactly one of them"),
        ({"code": None}, "nothing to run"),
        ({"code": " \n"}, "code is empty"),
        ({"runtime": "spark"}, "runtime spark does not exist; choose one of mpi, tf, torch, plain"),
        ({"ps": 1, "runtime": "mpi"}, "need runtime tf, not mpi"),
        ({"priority": "urgent"}, "choose one of low, normal, high"),
        ({"workers": "4:2"}, "such as 2:4"),
        ({"workers": 9999, "ps": 900, "runtime": "tf"}, "more than 10000 ranks"),
        ({"workers": "1:10001"}, "more than 10000 ranks"),
        ({"gpu_kind": "a100"}, "set gpu too"),
        ({"topology": "same-planet"}, "use same-node, same-rack, same-zone, spread, required:LABEL"),
        ({"env": {"MLP_RANK": "0"}}, "names that begin with MLP_ are reserved"),
        ({"env": {"1X": "0"}}, "is not a variable name"),
        ({"env": {"X": "a\0b"}}, "NUL"),
        ({"args": ["a\0b"]}, "NUL"),
    ],
)
def test_an_invalid_submission_is_refused_with_a_way_out(
    directories: Directories, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused) as caught:
        check(directories, **fields)
    assert caught.value.reason is Reason.INVALID
    assert words in caught.value.msg


def test_a_tenant_that_one_is_not_in_does_not_exist(directories: Directories) -> None:
    with pytest.raises(Refused) as caught:
        check(directories, tenant="blue")
    assert (caught.value.reason, caught.value.msg) == (
        Reason.NOT_FOUND,
        "you are not in a team blue; yours: red",
    )


def test_a_run_that_has_not_ended_is_named_with_what_to_do(directories: Directories) -> None:
    job = Job("u1", check(directories, name="digits"), Phase.RUNNING, Target.RUN, 1.0, run=2)
    refused = still_there(job)
    assert refused.reason is Reason.CONFLICT
    assert refused.msg.startswith(
        "digits run 2 has not ended, it is running; to run it again, cancel it first"
    )


def test_a_new_field_of_a_request_is_named_as_one_that_keys_remembered_earlier_did_not_know() -> None:
    known = {
        "name", "entry", "code", "args", "env", "runtime", "workers", "ps", "cpu", "gpu", "gpu_kind", "ram", "tenant", "priority",
        "time_limit", "retries", "checkpoint_every", "topology", "tensorboard", "data",
    }  # fmt: skip
    added = {f.name for f in msgspec.structs.fields(JobCreate)} - known
    assert added == set(ADDED_LATER), (
        "add the new field to ADDED_LATER of service/jobs/intake.py, not to this test"
    )


def test_a_key_that_was_remembered_before_there_were_runs_still_means_its_request() -> None:
    asked = JobCreate(name="j", code="x", cpu=1.5, env={"A": "1"})
    before = msgspec.json.encode(asked)
    optional = (b"provenance", b"env_name", b"workdir")
    for later in (
        b',"replace":false',
        b',"params":{}',
        b',"amounts":{}',
        *(b',"%s":null' % name for name in optional),
    ):
        assert later in before
        before = before.replace(later, b"")
    assert fingerprint(asked) == hashlib.sha256(before).hexdigest()
    assert fingerprint(JobCreate(name="j", code="x", cpu=1.5, env={"A": "1"}, replace=True)) != fingerprint(
        asked
    )


@pytest.mark.parametrize("user", ["..", ".", "", "a/b", "a\0b"])
def test_a_user_name_that_is_not_a_directory_name_is_refused(directories: Directories, user: str) -> None:
    with pytest.raises(Refused):
        directories.home(user)


@pytest.mark.differs("A runtime without its package", only="local")
def test_a_runtime_whose_package_is_missing_is_refused_with_those_that_are_there() -> None:
    async def lacks(package: str) -> bool:
        return package in {"torch", "tensorflow"}

    with pytest.raises(
        Refused, match=r"torch is not installed on this hub.* --env-name\), use one of mpi, plain, or ask"
    ):
        asyncio.run(check_runtime(BUILT_IN["torch"], lacks, {}))
    asyncio.run(check_runtime(BUILT_IN["mpi"], lacks, {}))
    asyncio.run(check_runtime(BUILT_IN["torch"], lacks, {"PYTHONPATH": "/home/ann/packages"}))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"workers": 2, "runtime": "plain"}, "one kernel"),
        ({"ps": 1}, "one kernel"),
        ({"runtime": "mpi"}, "has its own launcher"),
        ({"runtime": "torch"}, "has its own launcher"),
        ({"args": ["--lr", "1"]}, "takes no arguments"),
    ],
)
def test_a_notebook_is_one_process_with_parameters(
    directories: Directories, fields: dict[str, Any], why: str
) -> None:
    (directories.homes / "ann" / "work.ipynb").write_text(notebook("1"))
    with pytest.raises(Refused, match=why):
        check(directories, entry="work.ipynb", **fields)
    assert check(directories, entry="work.ipynb", params={"lr": 1}).entry == "work.ipynb"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("TF_CONFIG", {"runtime": "tf", "workers": 3, "ps": 1}),
        ("PMI_RANK", {"workers": 2}),
        ("WORLD_SIZE", {"workers": 2, "runtime": "torch"}),
        ("RANK", {"workers": 2, "runtime": "torch"}),
    ],
)
def test_a_variable_that_the_runtime_sets_for_each_rank_is_not_silently_replaced(
    directories: Directories, name: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=f"env {name} is set by runtime .* for each rank; leave it out"):
        check(directories, env={name: "{}"}, **fields)
    assert check(directories, env={name: "{}"}, workers=2, runtime="plain").env == {name: "{}"}


def test_so_is_one_of_a_tenants_own_runtime(directories: Directories) -> None:
    own = Runtime("mine", "Mine", "", env={"PLACE": "{rank}", "ALL": "{world_size}"}, tenant="red")
    workspace = SharedVolumeWorkspace(directories, Fence())

    def asked(name: str) -> JobSpec:
        job = JobCreate(name="j", code="x", runtime="mine", env={name: "1"})
        return asyncio.run(requested(job, workspace, {"mine": own}))

    with pytest.raises(Refused, match="env PLACE is set by runtime mine for each rank"):
        asked("PLACE")
    assert asked("ALL").env == {"ALL": "1"}  # of all ranks alike: the job's own wins


def test_a_script_that_cannot_run_is_refused_with_the_remedy(directories: Directories) -> None:
    home = directories.home("ann")
    Path(home, "win.sh").write_bytes(b"#!/bin/bash\r\n")
    Path(home, "tool").write_text("#!/bin/sh\n")
    with pytest.raises(Refused, match=r"Windows line ends in line 1: run `sed -i 's/\\r\$//' win.sh`"):
        check(directories, entry="win.sh")
    with pytest.raises(Refused, match=r"chmod \+x tool"):
        check(directories, entry="tool")
    with pytest.raises(Refused, match=r"your home directory has no file Train.py; did you mean train.py\?"):
        check(directories, entry="Train.py")


@pytest.mark.parametrize("asked", ["project/src", "~/project/src", "./project//src/", "linked"])
def test_a_program_starts_in_a_directory_below_the_home(directories: Directories, asked: str) -> None:
    home = directories.homes / "ann"
    (home / "project/src").mkdir()
    (home / "linked").symlink_to("project/src")
    found = check(directories, workdir=asked).workdir
    assert found == ("linked" if asked == "linked" else "project/src")


def test_every_trial_of_a_sweep_and_member_of_an_array_starts_in_the_same_directory(
    directories: Directories,
) -> None:
    asked = SweepCreate(name="s", code="x", array="0-3", workdir="./project")
    workspace = SharedVolumeWorkspace(directories, Fence())
    job = asyncio.run(requested(asked, workspace))
    sweep = Sweep("uid", sweep_spec(asked, job), 1, SweepPhase.RUNNING, Budget(4), 1.0)
    assert [trial_spec(sweep, SweepTrial(n, {"index": n})).workdir for n in range(4)] == ["project"] * 4


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("/etc", "give one without .., such as project/src"),
        ("/home/ann/project", "give one without .., such as project/src"),
        ("~//etc", "give one without .."),
        ("..", "give one without .."),
        ("project/../../bob", "give one without .."),
        ("project/..", "give one without .."),
        (".", "in which programs start anyway; leave it out"),
        ("~/", "in which programs start anyway; leave it out"),
        ("a\0b", "NUL"),
        ("train.py", "is not a directory"),
        ("train.py/x", "your home directory has no directory train.py/x"),
        ("nowhere", "your home directory has no directory nowhere; create it"),
        ("out", "leaves your home directory by a link"),
        ("out/project", "leaves your home directory by a link"),
    ],
)
def test_a_program_starts_nowhere_else(directories: Directories, asked: str, words: str) -> None:
    (directories.homes / "ann/out").symlink_to(directories.homes.parent)
    (directories.homes.parent / "project").mkdir()
    with pytest.raises(Refused) as caught:
        check(directories, workdir=asked)
    assert caught.value.reason is Reason.INVALID
    assert words in caught.value.msg


def test_shared_memory_is_a_part_of_the_memory(directories: Directories) -> None:
    assert check(directories, ram=512, amounts={"shm": 512}).per_worker == Resources(
        1000, 0, 512, amounts=(("shm", 512),)
    )
    assert check(directories, amounts={"shm": 0}).per_worker == Resources(1000, 0, 1024)
    with pytest.raises(
        Refused,
        match="2048 MiB shm per rank is more than its 1024 MiB ram, of which it is a part; ask for 1024 or less, or for more ram",
    ):
        check(directories, amounts={"shm": 2048})
    with pytest.raises(Refused, match="amounts has 'spokes', which is not a resource"):
        check(directories, amounts={"spokes": 1})
