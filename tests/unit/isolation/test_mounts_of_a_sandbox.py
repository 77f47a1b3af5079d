"""Bubblewrap reads the table of all mounts once for each mount of its own: how many these are is a cost of each job."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mlp_hub.sandbox.shim import view
from mlp_hub.sandbox.spec import Bind, SandboxSpec

MOST = tomllib.loads((Path(__file__).parents[2] / "budgets.toml").read_text())["mounts_of_a_sandbox"]["most"]
MOUNTS = {
    "--bind",
    "--dev-bind",
    "--ro-bind",
    "--ro-bind-try",
    "--dev-bind-try",
    "--dev",
    "--tmpfs",
    "--proc",
}


def options(*, gpus: tuple[int, ...] = ()) -> list[str]:
    binds = (Bind("/opt/env", "/opt/env"), Bind("/jobs/1", "/home/ann/job", writable=True))
    spec = SandboxSpec(
        "a", ("true",), {}, "/homes/ann", "/home/ann", "/log", "ann", 7, binds=binds, gpus=gpus
    ).to_json()
    host = {"mode": "root-userns", "disable_userns": True, "proc": "own"}
    etc = view.accounts(spec, 7, 7)
    stage = view.Stage(view.TERMINALS, etc, spec, own_devices=not gpus)
    return view.arguments(spec, host, (7, 7), stage, view.Memory())


def test_a_sandbox_has_few_mounts_since_etc_and_the_devices_are_one_each() -> None:
    found = options()
    assert sum(word in MOUNTS for word in found) <= MOST, found
    assert found[(at := found.index("--dev-bind")) : at + 3] == ["--dev-bind", "/dev", "/dev"]
    assert "--remount-ro" in found[at:], "nobody makes files beside the devices"


def test_a_sandbox_with_gpus_has_the_machines_devices_of_them_and_bounded_terminals() -> None:
    found = options(gpus=(0,))
    assert "/dev/nvidia0" in found
    assert "--dev" in found
    assert [f"{view.ROOM}/pts", "/dev/pts"] == found[(at := found.index(f"{view.ROOM}/pts")) : at + 2]
