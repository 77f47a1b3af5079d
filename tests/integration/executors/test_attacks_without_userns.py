"""Where root has no user namespaces: what gives up root inside runs nothing of the tenant's before it has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlp_hub.executors.base import AttemptPhase
from mlp_hub.sandbox import control
from mlp_hub.sandbox.capabilities import probe
from support.executors.executor_lab import ROOT, Lab

pytestmark = pytest.mark.skipif(not ROOT, reason="only root has this mode")


@pytest.fixture
def root_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sandboxes as where user namespaces are forbidden."""
    caps = probe(force="root")
    if caps.mode != "root":
        pytest.skip("this machine cannot make such a sandbox")
    monkeypatch.setattr(control, "capabilities", lambda: caps)


@pytest.mark.usefixtures("root_mode")
def test_the_system_inside_cannot_be_changed(lab: Lab) -> None:
    lab.home("ann").chmod(0o755)
    code = """
for path in ("/etc/passwd", "/new", "/run/new"):
    try:
        open(path, "a")
    except OSError:
        print("refused")
"""
    spec = lab.spec(code)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["refused"] * 3


@pytest.mark.usefixtures("root_mode")
@pytest.mark.parametrize("path", [None, "/home/ann/bin:/usr/bin:/bin"])
def test_a_command_that_the_tenant_planted_is_not_run_as_root(lab: Lab, path: str | None) -> None:
    home = lab.home("ann")
    home.chmod(0o755)  # its owner may: root has no right here to pass a closed one
    for place in (home / ".local" / "bin", home / "bin"):
        place.mkdir(parents=True)
        for name in ("setpriv", "env"):
            planted: Path = place / name
            planted.write_text("#!/bin/sh\nid -u; exec sleep 0\n")
            planted.chmod(0o755)
    spec = lab.spec("import os; print('uid', os.getuid())", env={"PATH": path} if path else {})
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == [f"uid {lab.uid('ann')}"]


@pytest.mark.usefixtures("root_mode")
def test_the_loaders_variables_reach_the_program_and_nothing_that_is_root(lab: Lab) -> None:
    home = lab.home("ann")
    home.chmod(0o755)
    marks = home / "marks"
    marks.mkdir()
    os.chmod(marks, 0o777)
    # with these the loader writes a file for each process that it loads a program for
    spec = lab.spec(
        "import os; print(os.environ['LD_DEBUG'], os.environ['GLIBC_TUNABLES'])",
        env={
            "LD_DEBUG": "statistics",
            "LD_DEBUG_OUTPUT": "/home/ann/marks/ld",
            "GLIBC_TUNABLES": "glibc.malloc.check=0",
        },
    )
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["statistics glibc.malloc.check=0"]
    owners = {mark.stat().st_uid for mark in marks.iterdir()}
    assert owners == {lab.uid("ann")}
