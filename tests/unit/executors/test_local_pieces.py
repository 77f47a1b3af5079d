"""Limits, environments, devices and control groups, without any process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Resources
from mlp_hub.executors import local_prepare, nodes
from mlp_hub.executors.base import CannotStart, LaunchSpec
from mlp_hub.executors.local_gpus import assign
from mlp_hub.executors.sandbox import Limits, Link, SandboxSpec, groups
from mlp_hub.executors.sandbox.control import _check, _group_name
from mlp_hub.executors.sandbox.environment import _outermost
from mlp_hub.executors.sandbox.open_mode import translate
from mlp_hub.executors.shim import cgroups
from mlp_hub.executors.shim.outcome import split_status


def launch(**more: Any) -> LaunchSpec:
    fields: dict[str, Any] = {
        "attempt": "a.0", "job": "a", "user": "ann", "uid": None, "tenant": "default", "runtime": "plain", "workers": 2,
        "ps": 0, "per_worker": Resources(cpu=1500, ram=512), "placement": (), "home": "/h", "workspace": "/w", "entry": None,
        "code": "1", "args": (), "env": {},
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


def values(version: str, limits: Limits) -> dict[str, str]:
    plain = {"cpu": limits.cpu, "ram_mib": limits.ram_mib, "pids": limits.pids, "cpu_max": limits.cpu_max}
    return {name: value for _, name, value in cgroups.settings(version, plain)}


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
        "pids.max": "10",
    }


def test_a_ceiling_can_be_given_or_lifted() -> None:
    assert values("v1", Limits(cpu=1000, cpu_max=500))["cpu.cfs_quota_us"] == "50000"
    assert "cpu.cfs_quota_us" not in values("v1", Limits(cpu=1000, cpu_max=0))


def test_without_groups_nothing_is_set() -> None:
    assert values("none", Limits()) == {}


def test_the_ranks_share_one_limit() -> None:
    limits = local_prepare.limits(launch(workers=2, ps=1))
    assert (limits.cpu, limits.ram_mib) == (4500, 1536)


def test_the_contracts_variables_win_over_ours() -> None:
    env = local_prepare.environment(
        launch(env={"OMP_NUM_THREADS": "7", "MLP_JOB": "a"}), "/venv/bin/python", {}
    )
    assert env["OMP_NUM_THREADS"] == "7"
    assert env["HOME"] == "/home/ann"
    assert env["PATH"].startswith("/venv/bin:/home/ann/.local/bin:")
    assert local_prepare.environment(launch(), "/p", {})["OMP_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    ("user", "mount"),
    [("ann", "/home/ann"), ("a b/../c", "/home/a_b_.._c"), ("..", "/home/user"), ("é@x", "/home/_@x")],
)
def test_a_home_is_one_directory_below_home(user: str, mount: str) -> None:
    assert local_prepare.home_mount(user) == mount


def test_the_entry_must_be_in_the_home_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "train.py").touch()

    def program(entry: str) -> tuple[str, ...]:
        return local_prepare.program(launch(code=None, entry=entry, home=str(tmp_path), args=("-x",)), "/py")

    assert program("train.py") == ("/py", "-u", "/home/ann/train.py", "-x")
    assert program("/home/ann/train.py") == program("~/train.py") == program("train.py")
    for bad in ("/etc/passwd", "../x.py", "sub/../../x.py", "nothing.py", "sub", "train.py/x"):
        with pytest.raises(CannotStart, match=r"home directory|is a directory"):
            program(bad) if bad != "train.py/x" else local_prepare._find(str(tmp_path), ("nothing", "x"), bad)


def test_nothing_to_run_is_refused() -> None:
    with pytest.raises(CannotStart, match="nothing to run"):
        local_prepare.program(launch(code=None, entry=None), "/py")


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
    assert node.capacity.cpu == 2 * node.physical.cpu
    assert node.capacity.ram == node.physical.ram - 100
    assert node.capacity.gpu == node.physical.gpu


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
    from mlp_hub.executors.sandbox import Capabilities, Missing, SandboxSpec, SandboxUnavailable

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
    for name in ("old", "young", "used"):
        (tmp_path / name).mkdir()
    (tmp_path / "used/cgroup.procs").write_text("1")  # stands for what rmdir refuses
    for name in ("old", "used"):
        os.utime(tmp_path / name, (1, 1))
    assert groups.remove_forgotten([str(tmp_path), str(tmp_path), str(tmp_path / "missing")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["used", "young"]
