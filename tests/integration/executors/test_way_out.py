"""slirp4netns, which takes apart what tenants send: as whom it runs, what it sees, whose limits it is under."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub.executors.base import LaunchSpec
from mlp_hub.sandbox import Capabilities, capabilities, control, wayout
from mlp_hub.sandbox.capabilities import probe
from mlp_hub.sandbox.shim import files
from support.executors.executor_lab import ROOT, Lab, alive, eventually

pytestmark = pytest.mark.skipif(not capabilities().outbound, reason="slirp4netns cannot be used here")
needs_own_user = pytest.mark.skipif(
    capabilities().wayout is None or capabilities().wayout.runs_as != "tenant",
    reason="slirp4netns cannot run as the user's own here",
)
WAITS = """
import socket, time
print(sorted(n for _, n in socket.if_nameindex()), flush=True)
time.sleep(600)
"""


def slirp_of(shim: int) -> int:
    """Return the process number of the shim's slirp4netns."""
    (pid,) = [
        p for p in files.children(shim) if Path(f"/proc/{p}/comm").read_text().startswith("slirp4netns")
    ]
    return pid


def while_it_runs(lab: Lab, spec: LaunchSpec, look: Callable[[int, int], None]) -> None:
    """Start it, call `look` with its slirp4netns and the process that is 1 inside."""

    async def go() -> None:
        executor = lab.executor()
        await executor.start(spec)
        await eventually(lambda: lab.output(spec))
        assert lab.output(spec) == ["['lo', 'tap0']"]
        state = control.inspect(lab.run_dir(spec))
        assert state.shim_pid is not None
        assert state.child_pid is not None
        slirp = slirp_of(state.shim_pid)
        look(slirp, state.child_pid)
        await asyncio.to_thread(control.kill, lab.run_dir(spec))
        assert alive([slirp]) == []
        await executor.close()

    asyncio.run(go())


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@needs_own_user
def test_it_is_the_sandboxes_own_user_without_any_right(lab: Lab) -> None:
    spec = lab.spec(WAITS, network="outbound")

    def look(slirp: int, _child: int) -> None:
        found = status(slirp)
        assert set(found["Uid"].split()) == set(found["Gid"].split()) == {str(lab.uid("ann"))}
        assert found["Groups"] == ""
        assert [int(found[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 4
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")

    while_it_runs(lab, spec, look)


@needs_own_user
def test_it_sees_programs_and_etc_and_nothing_else_of_the_machine(lab: Lab) -> None:
    spec = lab.spec(WAITS, network="outbound")

    def look(slirp: int, _child: int) -> None:
        seen = set(os.listdir(f"/proc/{slirp}/root"))
        allowed = {"usr", "etc", "dev", "net", "user", "bin", "lib", "lib32", "lib64", "libx32", "sbin"}
        resolver = os.path.realpath("/etc/resolv.conf").split("/")[1]
        assert seen - allowed <= {resolver} - {"etc"}
        assert os.listdir(f"/proc/{slirp}/root/dev") == ["net"]
        mounts = [line.split() for line in Path(f"/proc/{slirp}/mounts").read_text().splitlines()]
        assert (
            not [
                mount for mount in mounts if mount[1].startswith(("/proc", "/sys", "/run/", "/tmp", "/home"))
            ]
            or resolver == "run"
        )
        assert all("ro" in mount[3].split(",") for mount in mounts if mount[1] in ("/usr", "/etc"))
        # of the platform nothing, however open its modes are
        assert not Path(f"/proc/{slirp}/root{lab.base}").exists()

    while_it_runs(lab, spec, look)


@pytest.fixture
def version2() -> Iterator[Path]:
    """A group of version 2, which may be there beside those of version 1, without controllers."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    place = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if place is None or not os.access(place, os.W_OK):
        pytest.skip("no control groups of version 2 can be made here")
    base = place / f"mlp-test-{os.getpid()}"
    base.mkdir()
    yield base
    ending = base / "ending"  # where shims go when they end
    if ending.exists():
        ending.rmdir()
    base.rmdir()


def _in_its_groups(lab: Lab) -> None:
    spec = lab.spec(WAITS, network="outbound")

    def look(slirp: int, child: int) -> None:
        mine, theirs = (Path(f"/proc/{pid}/cgroup").read_text() for pid in (slirp, child))
        assert mine == theirs
        assert spec.attempt in mine

    while_it_runs(lab, spec, look)


@pytest.mark.skipif(not capabilities().bases, reason="no control groups here")
def test_it_is_in_the_groups_of_the_sandbox_whose_packets_it_handles(lab: Lab) -> None:
    _in_its_groups(lab)


def test_it_is_in_the_group_of_version_2_too(
    lab: Lab, version2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps = replace(capabilities(), cgroup="v2", bases={"pids": str(version2)})
    monkeypatch.setattr(control, "capabilities", lambda: caps)
    _in_its_groups(lab)


@pytest.mark.skipif(not ROOT, reason="the hub does not run as root")
@pytest.mark.parametrize("mode", ["root", "root-userns"])
def test_where_no_other_user_can_run_it_slirp_is_in_its_own_sandbox_and_that_is_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(wayout, "_try", lambda _program: "mknod: Operation not permitted")
    caps: Capabilities = probe(mode)
    if caps.mode != mode:
        pytest.skip("this machine cannot make such a sandbox")
    assert caps.wayout is not None
    assert caps.wayout.runs_as == "root"
    assert [m.what for m in caps.missing if m.what.startswith("slirp")] == ["slirp4netns as the user's own"]
    monkeypatch.setattr(control, "capabilities", lambda: caps)
    lab.home("ann").chmod(0o755)
    spec = lab.spec(WAITS, network="outbound")

    def look(slirp: int, _child: int) -> None:
        found = status(slirp)
        assert int(found["CapEff"], 16) & ~(1 << 10) == 0  # CAP_NET_BIND_SERVICE is all that may be left
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
        assert set(os.listdir(f"/proc/{slirp}/root")) <= {"etc", "run"}

    while_it_runs(lab, spec, look)


def test_a_network_that_cannot_be_made_fails_the_start(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the program would start, and wonder."""
    found = capabilities()
    assert found.wayout is not None
    broken = replace(found, wayout=replace(found.wayout, program="/usr/bin/false"))
    monkeypatch.setattr(control, "capabilities", lambda: broken)
    seen = lab.run(lab.spec(WAITS, network="outbound"))
    assert seen.failure is not None
    assert seen.failure.cause == "start-failed"
    assert "slirp4netns did not get the network ready" in seen.failure.message
