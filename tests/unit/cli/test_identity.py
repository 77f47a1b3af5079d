"""Which state directory a process belongs to, however the directory was copied, moved or mounted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlp_hub import sandbox
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import copies, identity, state_dir
from mlp_hub.cli.supervisor import processes, procs
from mlp_hub.sandbox.shim import files
from mlp_hub.settings import Settings


def made(home: Path, **variables: str) -> Settings:
    settings = Settings.load({"MLP_HOME": str(home), **variables})
    state_dir.prepare(settings)
    return settings


@pytest.fixture
def original(tmp_path: Path) -> Settings:
    settings = made(tmp_path / "original")
    assert copies.settle(settings) is None
    return settings


def copy(original: Settings, to: Path, **variables: str) -> Settings:
    shutil.copytree(original.home, to, symlinks=True)
    return made(to, **variables)


def note(settings: Settings, name: str, pid: int) -> None:
    """Write a pid file as the supervisor does."""
    content = {"pid": pid, "start": procs.start_of(pid), "boot": procs.boot_id()}
    (settings.private_dir / f"{name}.pid").write_text(json.dumps(content))


def running(settings: Settings, name: str, instance: str | None) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["/bin/sleep", "60"], env={identity.VARIABLE: instance} if instance else {})
    note(settings, name, child.pid)
    return child


def test_a_directory_gets_its_identity_once(original: Settings) -> None:
    first = identity.own(original)
    assert first is not None
    assert copies.settle(original) is None
    assert identity.own(original) == first


def test_a_copy_recognises_itself_and_gets_a_separate_identity(original: Settings, tmp_path: Path) -> None:
    copied = copy(original, tmp_path / "copy")
    assert identity.own(copied) is None
    assert identity.origin(copied) == str(original.home)
    told = copies.settle(copied)
    assert told is not None
    assert str(original.home) in told
    assert identity.own(copied) not in (None, identity.own(original))
    assert identity.origin(copied) is None
    assert copies.settle(copied) is None


def test_a_directory_that_was_moved_is_the_same(original: Settings, tmp_path: Path) -> None:
    before = identity.own(original)
    moved = Settings.load({"MLP_HOME": str(original.home.rename(tmp_path / "moved"))})
    assert identity.own(moved) == before


def test_another_device_number_after_a_boot_makes_no_copy(original: Settings) -> None:
    path = original.home / "identity.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "device": 1}))
    assert identity.own(original) is not None


@pytest.mark.parametrize("text", ["", "{half", "[]", "{}", "null"])
def test_an_identity_that_cannot_be_read_is_none(original: Settings, text: str) -> None:
    (original.home / "identity.json").write_text(text)
    assert (identity.own(original), identity.origin(original)) == (None, None)


@pytest.mark.parametrize("whose", ["own", "another", "nobody"])
def test_only_a_process_of_this_directory_is_believed_in_a_pid_file(original: Settings, whose: str) -> None:
    ids = {"own": identity.own(original), "another": "0123456789abcdef", "nobody": None}
    child = running(original, "service", ids[whose])
    try:
        found = processes.find(original, "service")
        assert (found is not None and found.pid) == (child.pid if whose == "own" else False)
    finally:
        child.kill()
        child.wait()


def test_processes_of_the_original_do_not_count_in_a_copy_before_or_after_it_is_settled(
    original: Settings, tmp_path: Path
) -> None:
    child = running(original, "service", identity.own(original))
    try:
        copied = copy(original, tmp_path / "copy")
        assert processes.find(copied, "service") is None
        copies.settle(copied)
        note(copied, "service", child.pid)
        assert processes.find(copied, "service") is None
        assert processes.stop_all(copied) is False
        assert processes.find(original, "service") is not None
    finally:
        child.kill()
        child.wait()


END = {
    "cause": "exited", "finished_at": 2.0, "started_at": 1.0, "code": 0, "signal": None, "rank": None, "message": "",
    "tail": "", "oom": False, "stopped": False, "cpu_s": 0.0, "ranks": [], "notes": [],
}  # fmt: skip


def run_directory(path: Path, child: int, *, ended: bool) -> Path:
    """Make a run directory as one of the original is copied: its numbers are of processes that live."""
    path.mkdir(parents=True)
    files.claim(str(path), child)
    content = {"boot": files.boot_id(), "host": {}, "spec": {"listen": None}}
    files.write_json(str(path), "spec.json", content)
    files.write_json(str(path), "state.json", {"child": child, "started_at": 1.0, "ranks": []})
    if ended:
        (path / "exit.json").write_text(json.dumps(END))
    return path


def test_processes_recorded_as_running_are_lost_in_a_copy_and_untouched_in_the_original(
    original: Settings, tmp_path: Path
) -> None:
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        run_directory(original.jobs_run_dir / "job-1", child.pid, ended=False)
        run_directory(original.jobs_run_dir / "job-2", child.pid, ended=True)
        run_directory(original.servers_run_dir / "ann" / "-", child.pid, ended=False)
        copied = copy(original, tmp_path / "copy")
        told = copies.settle(copied)
        assert told is not None
        assert "1 job(s) begin again here" in told
        assert "1 notebook server(s)" in told
        copied_job = str(copied.jobs_run_dir / "job-1")
        assert sandbox.inspect(copied_job).phase == "lost"
        assert sandbox.inspect(str(original.jobs_run_dir / "job-1")).phase == "running"
        assert files.read_json(str(copied.jobs_run_dir / "job-2"), "exit.json") == END
        for run_dir in (
            copied_job,
            str(copied.jobs_run_dir / "job-2"),
            str(copied.servers_run_dir / "ann/-"),
        ):
            sandbox.stop(run_dir, 0.0)
            sandbox.remove(run_dir)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_a_copy_with_the_same_database_waits_until_nothing_runs_in_the_original(
    original: Settings, tmp_path: Path
) -> None:
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        run_directory(original.jobs_run_dir / "job-1", child.pid, ended=False)
        copied = copy(original, tmp_path / "copy", MLP_DATABASE_URL="postgresql:///mlp")
        with pytest.raises(CommandFailed, match="both have the same database"):
            copies.settle(copied)
        assert identity.own(copied) is None
    finally:
        child.kill()
        child.wait()


def test_a_copy_forgets_sockets_and_routes_that_lead_to_the_original(
    original: Settings, tmp_path: Path
) -> None:
    for name in ("routes.json", "plan.json", "state.json", "hub.sock"):
        (original.private_dir / name).write_text("{}")
    copied = copy(original, tmp_path / "copy")
    copies.settle(copied)
    assert list(copied.private_dir.iterdir()) == []


def hold_lock(settings: Settings) -> Any:
    """Hold the supervisor's lock in another process, as one would that the directory does not know."""
    code = (
        "import fcntl, sys, os\n"
        "f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); f.write(str(os.getpid())); f.flush()\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        ["python3", "-c", code, str(settings.home / "supervisor.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def test_a_directory_on_which_something_unknown_works_is_left_as_it_is(tmp_path: Path) -> None:
    settings = made(tmp_path / "home")
    child = hold_lock(settings)
    try:
        with pytest.raises(CommandFailed, match=f"process {child.pid}, works on "):
            copies.settle(settings)
        assert identity.read(settings) is None
    finally:
        child.communicate()
    assert copies.settle(settings) is None
    assert identity.own(settings) is not None


def test_a_process_that_is_gone_belongs_to_nobody() -> None:
    assert procs.belongs(4_000_001, "x") is False
    assert procs.belongs(os.getpid(), "x") is False
    assert procs.cpu_s(4_000_001) is None
