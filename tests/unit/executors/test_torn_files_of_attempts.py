"""What a power cut leaves of an attempt's files: that attempt is lost, every other one is seen, and the file is kept for who asks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlp_hub import durable, sandbox
from mlp_hub.domain.jobs.job import Cause, Failure
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.sandbox import SandboxPhase
from mlp_hub.sandbox.shim import files

TEARS = {
    "empty": lambda content: b"",
    "torn": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "foreign": lambda content: b"[1]",
    "bytes": lambda content: b"\xff\xfe\x80" * 9,
}
END = {
    "cause": "ok", "finished_at": 2.0, "started_at": 1.0, "code": 0, "signal": None, "rank": None, "message": "",
    "tail": "", "oom": False, "stopped": False, "cpu_s": 0.0, "ranks": [], "notes": [],
}  # fmt: skip
DECIDES = ("claim", "spec.json", "exit.json")
BESIDE = ("attempt.json", "state.json", "stop.json", "limit.json")


def tear(path: Path, how: str) -> None:
    path.write_bytes(TEARS[how](path.read_bytes()))


def begun(run_dir: Path, boot: str = "an earlier one") -> Path:
    """Make a run directory whose shim is gone with its machine."""
    run_dir.mkdir(parents=True)
    at = str(run_dir)
    files.write_json(at, "attempt.json", {"placement": ["n"], "roles": ["worker"], "gpus": {}})
    files.write_json(at, "spec.json", {"boot": boot, "host": {}, "spec": {"listen": None}})
    files.write_json(at, "claim", {"pid": 1, "start": 1, "boot": boot})
    files.write_json(at, "state.json", {"child": 1, "child_start": 1, "started_at": 1.0, "ranks": []})
    files.write_json(at, "stop.json", {"deadline": 1.0, "why": None})
    files.write_json(at, "limit.json", {"time_limit": 5.0})
    return run_dir


def ended(run_dir: Path) -> Path:
    begun(run_dir)
    files.write_json(str(run_dir), "exit.json", END)
    return run_dir


def seen(home: Path, *attempts: str) -> dict[str, Observation]:
    """Return what a service that starts now finds."""

    async def look() -> dict[str, Observation]:
        executor = LocalExecutor(home / "jobs-run", Directories(home / "homes", home / "mlp" / "jobs"))
        try:
            await executor.open()
            return dict(await executor.observe(attempts))
        finally:
            await executor.close()

    return asyncio.run(look())


@pytest.mark.parametrize("how", TEARS)
def test_an_attempt_whose_claim_cannot_be_read_is_lost_and_its_neighbour_is_not(
    tmp_path: Path, how: str
) -> None:
    tear(begun(tmp_path / "jobs-run" / "a.1") / "claim", how)
    ended(tmp_path / "jobs-run" / "b.1")
    found = seen(tmp_path, "a.1", "b.1")
    assert (found["a.1"].phase, found["b.1"].phase) == (AttemptPhase.LOST, AttemptPhase.SUCCEEDED)
    failure = found["a.1"].failure
    assert failure is not None
    assert failure.cause is Cause.NODE_LOST
    assert "the file claim" in failure.message
    assert durable.of_aside(tmp_path) == ["jobs-run/a.1/claim"]


@pytest.mark.parametrize("how", TEARS)
@pytest.mark.parametrize("name", [*DECIDES, *BESIDE])
def test_each_file_of_a_run_directory_may_be_torn_and_the_directory_is_still_removed(
    tmp_path: Path, name: str, how: str
) -> None:
    run_dir = ended(tmp_path / "r") if name == "exit.json" else begun(tmp_path / "r")
    if name == "spec.json":
        (run_dir / "claim").unlink()  # else it says nothing that is needed
    tear(run_dir / name, how)
    state = sandbox.inspect(str(run_dir))
    assert state.phase is SandboxPhase.LOST
    assert state.unreadable == (str(run_dir / name) if name in DECIDES else "")
    sandbox.stop(str(run_dir), 0.0)
    sandbox.limit(str(run_dir), 1.0)
    sandbox.remove(str(run_dir))
    assert not run_dir.exists()


@pytest.mark.parametrize("how", TEARS)
@pytest.mark.parametrize("name", ["claim", "spec.json", "state.json"])
def test_lines_that_an_attempt_lost_are_known_whatever_became_of_its_other_files(
    tmp_path: Path, name: str, how: str
) -> None:
    run_dir = begun(tmp_path / "jobs-run" / "a.1")
    (run_dir / "lost").write_bytes(b"%020d" % 46)
    tear(run_dir / name, how)
    assert seen(tmp_path, "a.1")["a.1"].lost_lines == 46
    tear(run_dir / "lost", how)
    assert seen(tmp_path, "a.1")["a.1"].lost_lines == 0


def test_lines_that_an_attempt_lost_are_known_where_a_power_cut_took_its_claim(tmp_path: Path) -> None:
    run_dir = begun(tmp_path / "jobs-run" / "a.1")
    (run_dir / "lost").write_bytes(b"%020d" % 46)
    (run_dir / "claim").unlink()
    found = seen(tmp_path, "a.1")["a.1"]
    assert (found.phase, found.lost_lines) == (AttemptPhase.LOST, 46)


def test_an_attempt_that_was_asked_to_end_for_a_reason_and_vanished_has_ended_for_it(tmp_path: Path) -> None:
    run_dir = begun(tmp_path / "jobs-run" / "a.1")
    why = ("time-limit", "it ran too long", None)
    files.write_json(str(run_dir), "stop.json", {"deadline": 1.0, "why": why})
    found = seen(tmp_path, "a.1")["a.1"]
    assert (found.phase, found.failure) == (
        AttemptPhase.FAILED,
        Failure(Cause.TIME_LIMIT, message="it ran too long"),
    )


def test_how_an_attempt_ended_is_known_whatever_became_of_its_claim(tmp_path: Path) -> None:
    run_dir = ended(tmp_path / "r")
    tear(run_dir / "claim", "zeros")
    assert sandbox.inspect(str(run_dir)).phase is SandboxPhase.EXITED
    (run_dir / "claim").unlink()
    assert sandbox.inspect(str(run_dir)).phase is SandboxPhase.EXITED


def test_processes_in_a_sandbox_without_a_readable_claim_end_with_its_directory(tmp_path: Path) -> None:
    child = subprocess.Popen(["/bin/sleep", "60"])
    run_dir = begun(tmp_path / "r", files.boot_id())
    content = json.loads((run_dir / "state.json").read_text())
    live: dict[str, Any] = {**content, "child": child.pid, "child_start": files.start_time(child.pid)}
    files.write_json(str(run_dir), "state.json", live)
    tear(run_dir / "claim", "empty")
    sandbox.kill(str(run_dir))
    assert child.wait() == -9


@pytest.mark.parametrize("how", TEARS)
def test_an_epoch_that_cannot_be_read_lets_the_next_service_lead(tmp_path: Path, how: str) -> None:
    Fence(tmp_path).raise_to(7, 1.0)
    tear(tmp_path / "epoch", how)
    fence = Fence(tmp_path)
    fence.raise_to(8, 1.0)
    assert fence.seen == 8
    with fence.acting(8):
        pass


def test_a_durable_file_is_brought_to_disk_with_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), real(fd))
    )
    durable.write(tmp_path / "kept", "word")
    assert len(synced) == 2
    assert synced[0].startswith(f"{tmp_path}/.kept.")
    assert synced[1] == str(tmp_path)
    assert (tmp_path / "kept").read_text() == "word"
