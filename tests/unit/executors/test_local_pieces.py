"""Limits, environments, devices and control groups, without any process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN, NOTEBOOK_TEXT
from mlp_hub.executors import programs
from mlp_hub.executors.base import CannotStart, Code, DataMount, EntryPoint, LaunchSpec, Mount
from mlp_hub.executors.local import node as nodes
from mlp_hub.executors.local import prepare
from mlp_hub.executors.local.environments import BASE, base_of
from mlp_hub.executors.local.gpus import assign
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.sandbox import Bind, Limits, Link, SandboxSpec, ensure_stored, groups, place_links
from mlp_hub.sandbox.control import _check, _group_name
from mlp_hub.sandbox.environment import _outermost
from mlp_hub.sandbox.open_mode import translate
from mlp_hub.sandbox.shim import cgroups, files
from mlp_hub.sandbox.shim.diagnosis.outcome import split_status
from mlp_hub.sandbox.spec import RankPlan


def launch(**more: Any) -> LaunchSpec:
    fields: dict[str, Any] = {
        "attempt": "a.0", "job": "a", "user": "ann", "uid": None, "tenant": "default", "runtime": BUILT_IN["plain"], "workers": 2,
        "ps": 0, "per_worker": Resources(cpu=1500, ram=512), "placement": (), "program": Code("1"),
        "run": 1, "args": (), "env": {},
    }  # fmt: skip
    return LaunchSpec(**{**fields, **more})


def test_without_a_sandbox_links_inside_are_the_hosts_paths_that_they_lead_to() -> None:
    links = (Link("/etc/ipython", "/opt/env/etc/ipython"),)
    env = {"CONFIG": "/etc/ipython/x.py:/etc/other", "HOME": "/home/ann"}
    found = translate(
        SandboxSpec("s", ("/etc/ipython",), env, "/homes/ann", "/home/ann", "/log", links=links)
    )
    assert found.argv == ("/opt/env/etc/ipython",)
    assert found.env == {"CONFIG": "/opt/env/etc/ipython/x.py:/etc/other", "HOME": "/homes/ann"}


def test_without_a_sandbox_every_ranks_own_command_has_the_hosts_paths() -> None:
    ranks = RankPlan("gang", ("worker",) * 2, ("/home/ann/a",), programs=(("/home/ann/a",), ("/home/ann/b",)))
    spec = SandboxSpec("s", ("x",), {}, "/homes/ann", "/home/ann", "/log", ranks=ranks)
    found = translate(spec).ranks
    assert found is not None
    assert (found.program, found.programs) == (
        ("/homes/ann/a",),
        (("/homes/ann/a",), ("/homes/ann/b",)),
    )


def values(version: str, limits: Limits) -> dict[str, str]:
    plain = {"cpu": limits.cpu, "ram_mib": limits.ram_mib, "pids": limits.pids, "cpu_max": limits.cpu_max}
    return {name: value for part, _, name, value in cgroups.settings(version, plain) if part != cgroups.SHIM}


def test_a_small_share_may_burst_to_one_core() -> None:
    assert values("v2", Limits(cpu=200, ram_mib=64, pids=10)) == {
        "cpu.weight": "20",
        "cpu.max": "100000 100000",
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "pids.max": "10",
    }
    assert values("v1", Limits(cpu=1500, ram_mib=64, pids=10)) == {
        "cpu.shares": "1536",
        "cpu.cfs_quota_us": "200000",
        "memory.limit_in_bytes": "67108864",
        "memory.kmem.tcp.limit_in_bytes": "33554432",
        "pids.max": "10",
    }


def test_the_shim_has_separate_memory_for_itself_and_for_logs_in_memory() -> None:
    limits = {"cpu": 1000, "ram_mib": 64, "pids": 10}
    own = [s for s in cgroups.settings("v2", limits, ranks=3) if s[0] == cgroups.SHIM]
    assert own == [(cgroups.SHIM, "memory", "memory.max", str((32 + 3 * 20) << 20))]


def test_a_group_has_a_part_for_the_job_and_one_for_its_shim(tmp_path: Path) -> None:
    bases = {name: str(tmp_path) for name in ("cpu", "memory", "pids")}
    made = cgroups.Groups("v2", bases, "job-1")
    for place in (tmp_path / "job-1", tmp_path / "job-1/ranks", tmp_path / "job-1/shim"):
        place.mkdir()
        for name in ("cgroup.procs", "cgroup.subtree_control", "cpu.max", "cpu.weight", "pids.max"):
            (place / name).touch()
        for name in ("memory.max", "memory.swap.max"):
            (place / name).touch()
    assert made.create({"cpu": 1000, "ram_mib": 64, "pids": 10}, 1) == []

    def wrote(name: str) -> str:
        return (tmp_path / "job-1" / name).read_text()

    assert wrote("cgroup.subtree_control").startswith("+pids")  # the last of three; the kernel adds each
    assert wrote("cpu.max") == "100000 100000"  # for both parts together
    assert wrote("ranks/memory.max") == str(64 << 20)
    assert wrote("shim/memory.max") == str(52 << 20)
    assert (wrote("ranks/pids.max"), wrote("shim/pids.max")) == ("10", "")
    made.enter()
    made.enter(cgroups.SHIM)
    assert (wrote("cgroup.procs"), wrote("ranks/cgroup.procs"), wrote("shim/cgroup.procs")) == ("", "0", "0")


def test_a_short_write_does_not_count_as_a_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(files.os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    files.write_json(str(tmp_path), "exit.json", {"cause": "ok"})
    assert files.read_json(str(tmp_path), "exit.json") == {"cause": "ok"}


def test_a_file_that_cannot_be_written_whole_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_json(str(tmp_path), "stop.json", {"deadline": 1})
    room = [7]

    def full(fd: int, data: bytes) -> int:
        if not room:
            raise OSError(28, "No space left on device")
        return os.pwrite(fd, bytes(data)[: room.pop()], 0)

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_json(str(tmp_path), "stop.json", {"deadline": 2})
    assert files.read_json(str(tmp_path), "stop.json") == {"deadline": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["stop.json"]


def test_a_ceiling_can_be_given_or_lifted() -> None:
    assert values("v1", Limits(cpu=1000, cpu_max=500))["cpu.cfs_quota_us"] == "50000"
    assert "cpu.cfs_quota_us" not in values("v1", Limits(cpu=1000, cpu_max=0))


def test_without_groups_nothing_is_set() -> None:
    assert values("none", Limits()) == {}


def test_the_ranks_share_one_limit() -> None:
    limits = prepare.limits(launch(workers=2, ps=1))
    assert (limits.cpu, limits.ram_mib) == (4500, 1536)


def test_the_contracts_variables_win_over_ours() -> None:
    env = programs.environment(launch(env={"OMP_NUM_THREADS": "7", "MLP_JOB": "a"}), "/venv/bin/python", {})
    assert env["OMP_NUM_THREADS"] == "7"
    assert env["HOME"] == "/home/ann"
    assert env["PATH"].startswith("/venv/bin:/home/ann/.local/bin:")
    assert programs.environment(launch(), "/p", {})["OMP_NUM_THREADS"] == "2"


def test_a_cell_finds_the_modules_of_where_it_starts_and_a_script_and_a_notebook_have_their_own() -> None:
    def path(**more: Any) -> str | None:
        return programs.environment(launch(**more), "/p", {}).get("PYTHONPATH")

    assert path() == "/home/ann"
    assert path(workdir="project/src") == "/home/ann/project/src"
    assert path(env={"PYTHONPATH": "/data"}) == "/data"
    assert path(program=EntryPoint("train.py")) is None
    assert path(program=Code(NOTEBOOK_TEXT)) is None
    assert path(listens=True) is None  # an app's text is the platform's


def test_libraries_print_no_remarks_about_themselves_unless_they_are_asked() -> None:
    env = programs.environment(launch(env={"UCX_LOG_LEVEL": "info"}), "/p", {})
    assert (env["HWLOC_HIDE_ERRORS"], env["TF_CPP_MIN_LOG_LEVEL"], env["UCX_LOG_LEVEL"]) == ("2", "2", "info")


@pytest.mark.parametrize(
    ("user", "mount"),
    [("ann", "/home/ann"), ("a b/../c", "/home/a_b_.._c"), ("..", "/home/user"), ("é@x", "/home/_@x")],
)
def test_a_home_is_one_directory_below_home(user: str, mount: str) -> None:
    assert home_mount(user) == mount


def test_the_entry_must_be_in_the_home_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "train.py").touch()

    def program(entry: str) -> tuple[str, ...]:
        found = programs.program(launch(program=EntryPoint(entry), args=("-x",)), str(tmp_path), "/py", "/c")
        return (*found.by, found.entry, *found.args)

    assert program("train.py") == ("/py", "-u", "/home/ann/train.py", "-x")
    assert program("/home/ann/train.py") == program("~/train.py") == program("train.py")
    for bad in ("/etc/passwd", "../x.py", "sub/../../x.py", "nothing.py", "sub", "train.py/x"):
        with pytest.raises(CannotStart, match=r"home directory|is a directory"):
            program(bad)


def test_a_program_starts_at_home_or_in_the_directory_below_that_was_asked_for(tmp_path: Path) -> None:
    directories = Directories(tmp_path / "homes", tmp_path / "jobs")
    home = Path(directories.home("ann"))
    (home / "project/src").mkdir(parents=True)
    (home / "linked").symlink_to("/home/ann/project")
    (home / "out").symlink_to(tmp_path)
    (home / "file").touch()
    around = prepare.HostContext(sys.executable, directories)

    def made(workdir: str | None) -> SandboxSpec:
        return prepare.sandbox_spec(launch(workdir=workdir), around, [], [])

    assert (made(None).cwd, made(None).env.get("MLP_WORKDIR")) == ("/home/ann", None)
    for workdir in ("project/src", "linked", "linked/src"):
        found = made(workdir)
        assert found.cwd == found.env["MLP_WORKDIR"] == f"/home/ann/{workdir}"
        assert translate(found).cwd == translate(found).env["MLP_WORKDIR"] == f"{home}/{workdir}"
    for bad in ("out", "out/homes", "/etc", "../bob", "project/../../bob"):
        with pytest.raises(
            CannotStart, match=r"is not in the home directory; submit the job again with another --workdir"
        ):
            made(bad)
    for bad in ("nowhere", "file", "file/x"):
        with pytest.raises(CannotStart, match=f"start in {bad}, and .* create it again, or submit"):
            made(bad)


@pytest.mark.parametrize("more", [{"image": "registry/python:3"}, {"mounts": (Mount("data", "/data"),)}])
def test_options_that_only_a_cluster_supports_are_refused(more: dict[str, Any], tmp_path: Path) -> None:
    around = prepare.HostContext("/py", Directories(tmp_path, tmp_path))
    with pytest.raises(CannotStart, match="no image, no volumes"):
        prepare.sandbox_spec(launch(**more), around, [], [])


DIGITS = StoredPlace("dataset", "bob", "digits")


def test_datasets_are_seen_read_only_and_a_copy_of_the_platform_is_not_hidden_by_one(tmp_path: Path) -> None:
    directories = Directories(tmp_path / "homes", tmp_path / "mlp" / "jobs")
    around = prepare.HostContext(sys.executable, directories, (Bind("/x", "/data/hub"),))
    made = prepare.sandbox_spec(launch(data=(DataMount(DIGITS, "/data/digits"),)), around, [], [])
    found = [bind for bind in made.binds if bind.dst == "/data/digits"]
    assert found == [Bind(str(tmp_path / "mlp/datasets/bob/digits"), "/data/digits", writable=False)]
    for taken in ("/data/hub", "/data/hub/below", "/data"):
        with pytest.raises(CannotStart, match="the platform has its own files"):
            prepare.sandbox_spec(launch(data=(DataMount(DIGITS, taken),)), around, [], [])


def test_a_datasets_own_directory_is_open_and_no_link_is_taken_for_one(tmp_path: Path) -> None:
    root = tmp_path / "mlp"
    ensure_stored(root, "datasets", "bob", "digits")
    assert (root / "datasets/bob").stat().st_mode & 0o777 == 0o700
    assert (root / "datasets/bob/digits").stat().st_mode & 0o777 == 0o755
    (root / "datasets/bob/link").symlink_to("/etc")
    with pytest.raises(OSError, match="link"):
        ensure_stored(root, "datasets", "bob", "link")


def test_links_to_stored_data_replace_nothing_in_a_home(tmp_path: Path) -> None:
    (tmp_path / "datasets").write_text("mine")
    for _ in range(2):
        place_links(tmp_path, "ann", None)
    assert (tmp_path / "datasets").read_text() == "mine"
    assert (tmp_path / "models").readlink() == Path("/mlp/models/ann")


def test_devices_are_whole_or_shared() -> None:
    assert assign(1000, 2, [0, 1, 2], {}) == [{0: 1000}, {1: 1000}]
    assert assign(1000, 1, [0, 1], {0: 500}) == [{1: 1000}]
    assert assign(300, 2, [0, 1], {1: 500}) == [{1: 300}, {0: 300}]
    assert assign(1500, 1, [0, 1], {}) == [{0: 1000, 1: 500}]
    with pytest.raises(CannotStart, match="2 whole GPUs"):
        assign(2000, 1, [0], {})


@given(
    st.integers(1, 2500),
    st.integers(1, 5),
    st.integers(0, 6),
    st.dictionaries(st.integers(0, 5), st.integers(0, 1000)),
)
def test_no_device_is_ever_given_out_twice(need: int, ranks: int, count: int, used: dict[int, int]) -> None:
    try:
        shares = assign(need, ranks, range(count), used)
    except CannotStart:
        return
    total = dict(used)
    for share in shares:
        assert sum(share.values()) == need
        for device, amount in share.items():
            total[device] = total.get(device, 0) + amount
            assert total[device] <= 1000


def test_the_node_gives_out_more_cpu_than_it_has_and_less_memory() -> None:
    node = nodes.local_node("n", cpu_overcommit=2.0, reserve_mib=100)
    assert node.allocatable.cpu == 2 * node.capacity.cpu
    assert node.allocatable.ram == node.capacity.ram - 100
    assert node.allocatable.gpu == node.capacity.gpu


def test_environments_lose_what_is_below_others_or_the_systems() -> None:
    assert _outermost(["/opt/a/lib", "/opt/a", "/usr/lib/python3", "/opt/b", "/opt/ab"]) == [
        "/opt/a",
        "/opt/b",
        "/opt/ab",
    ]


def test_group_names_are_safe_and_differ_by_run_directory() -> None:
    one, two = _group_name("../x y", "/r/1"), _group_name("../x y", "/r/2")
    assert one != two
    assert "/" not in one
    assert not one.startswith(".")


@pytest.mark.parametrize(
    ("status", "split"),
    [(0, (0, None)), (3, (3, None)), (137, (None, 9)), (-9, (None, 9)), (255, (255, None))],
)
def test_exit_statuses_are_read_as_a_shell_gives_them(
    status: int, split: tuple[int | None, int | None]
) -> None:
    assert split_status(status) == split


def fake_proc(tmp_path: Path, mounts: str, own: str) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mounts)
    (proc / "cgroup").write_text(own)
    return proc


def test_version_one_groups_are_made_below_our_own(tmp_path: Path) -> None:
    mounts = ""
    for number, name in enumerate(("cpu,cpuacct", "memory", "pids")):
        (tmp_path / name / "mine").mkdir(parents=True)
        mounts += f"{number} 1 0:{number} / {tmp_path / name} rw - cgroup cgroup rw,{name}\n"
    proc = fake_proc(tmp_path, mounts, "3:cpu,cpuacct:/mine\n2:memory:/mine\n1:pids:/mine\n0::/\n")
    version, bases, missing = groups.find(proc)
    assert version == "v1"
    assert bases == {
        "cpu": f"{tmp_path}/cpu,cpuacct/mine/mlp-hub",
        "cpuacct": f"{tmp_path}/cpu,cpuacct/mine/mlp-hub",
        "memory": f"{tmp_path}/memory/mine/mlp-hub",
        "pids": f"{tmp_path}/pids/mine/mlp-hub",
    }
    assert missing == []


def test_version_two_groups_are_made_in_a_delegated_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = tmp_path / "user.slice/hub.service"
    base = unit / "mlp-hub"
    base.mkdir(parents=True)
    for group in (tmp_path, unit, base):
        (group / "cgroup.controllers").write_text("cpu memory pids io")
        (group / "cgroup.subtree_control").write_text("cpu memory pids" if group == unit else "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    proc = fake_proc(
        tmp_path, f"1 1 0:1 / {tmp_path} rw - cgroup2 cgroup2 rw\n", "0::/user.slice/hub.service\n"
    )
    version, bases, missing = groups.find(proc)
    assert version == "v2"
    assert bases == dict.fromkeys(("cpu", "memory", "pids"), str(base))
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert missing == []


def test_where_nothing_can_be_limited_it_is_said_what_that_means(tmp_path: Path) -> None:
    version, bases, missing = groups.find(fake_proc(tmp_path, "", "0::/\n"))
    assert (version, bases) == ("none", {})
    assert [what for what, _, _ in missing] == ["cgroup cpu", "cgroup memory", "cgroup pids"]
    assert all("Delegate=yes" in remedy for _, _, remedy in missing)


def test_bad_specs_are_refused_before_anything_is_written() -> None:
    from mlp_hub.sandbox import Capabilities, Missing, SandboxSpec, SandboxUnavailable

    def spec(**more: Any) -> SandboxSpec:
        fields: dict[str, Any] = {
            "id": "x", "argv": ("true",), "env": {}, "home_dir": "/h", "home_mount": "/home/x", "log_dir": "/l", "uid": 5,
        }  # fmt: skip
        return SandboxSpec(**{**fields, **more})

    caps = Capabilities("root-userns", "/usr/bin/bwrap")
    _check(spec(), caps)
    for bad in ({"uid": None}, {"uid": 0}, {"user_name": "a:b"}, {"argv": ("a\0b",)}, {"env": {"A=B": "1"}}):
        with pytest.raises(ValueError, match=r"uid|accounts|NUL|name of an environment"):
            _check(spec(**bad), caps)
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        _check(
            spec(), Capabilities(None, missing=(Missing("bubblewrap", "none", "apt-get install bubblewrap"),))
        )
    with pytest.raises(SandboxUnavailable, match="slirp4netns"):
        _check(spec(network="outbound"), caps)


def test_groups_that_nobody_knows_of_are_removed_unless_they_are_young_or_in_use(tmp_path: Path) -> None:
    for name in ("old", "young", "used", "ending"):
        (tmp_path / name).mkdir()
    for part in ("ranks", "shim"):
        (tmp_path / "old" / part).mkdir()
    (tmp_path / "used/cgroup.procs").write_text("1")  # stands for what rmdir refuses
    for name in ("old", "used", "ending"):
        os.utime(tmp_path / name, (1, 1))
    assert groups.remove_forgotten([str(tmp_path), str(tmp_path), str(tmp_path / "missing")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ending", "used", "young"]


def test_libraries_take_as_many_threads_as_were_asked_for() -> None:
    env = programs.environment(launch(env={"LOKY_MAX_CPU_COUNT": "9"}), "/venv/bin/python", {})
    names = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "PYTHON_CPU_COUNT")
    assert {env[name] for name in names} == {"2"}  # 1.5 cores
    assert env["LOKY_MAX_CPU_COUNT"] == "9"


def test_an_own_choice_of_devices_is_not_replaced(tmp_path: Path) -> None:
    around = prepare.HostContext(sys.executable, Directories(tmp_path, tmp_path))

    def visible(**more: Any) -> set[str | None]:
        spec = prepare.sandbox_spec(launch(**more), around, [0, 1], [[0], [1]])
        assert spec.ranks is not None
        envs = [{**spec.env, **env} for env in spec.ranks.envs or ({},)]
        return {env.get("CUDA_VISIBLE_DEVICES") for env in envs}

    assert visible() == {"0", "1"}
    assert visible(env={"CUDA_VISIBLE_DEVICES": ""}) == {""}


@pytest.mark.parametrize("brings", ["libmpi.so.40", "libmpi.so.12", None])
def test_mpi4py_takes_the_environments_own_mpi_unless_the_ranks_are_ours(
    tmp_path: Path, brings: str | None
) -> None:
    python = tmp_path / "platform" / "bin" / "python"
    for path in (python, python.parent / "mpiexec.hydra", tmp_path / "platform" / "lib" / "libmpi.so.12"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    around = prepare.HostContext(str(python), Directories(tmp_path / "homes", tmp_path / "jobs"))
    made = StoredPlace("environment", "default", "tools", "default")
    place = around.directories.stored(made)
    (place / "lib").mkdir(parents=True)
    (place / BASE).write_text(base_of(str(python)))
    if brings:
        (place / "lib" / brings).touch()

    def taken(runtime: str, **env: str) -> str | None:
        spec = launch(runtime=BUILT_IN[runtime], environment=made, env=env)
        return prepare.sandbox_spec(spec, around, [], []).env.get("MPI4PY_LIBMPI")

    ours = str(tmp_path / "platform" / "lib" / "libmpi.so.12")
    assert taken("plain") == (None if brings else ours)
    assert taken("mpi") == ours
    assert taken("mpi", MPI4PY_LIBMPI="/own") == "/own"
