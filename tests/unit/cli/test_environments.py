"""An environment that is made beside the one that runs: shared files, other programs, and nothing of the first is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlp_hub.cli import environments


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """An environment as it was before there were several: a directory."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").mkdir()
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "bin" / "mlp-hub").write_text(f"#!{venv}/bin/python\nold")
    (venv / "bin" / "mlp-hub").chmod(0o755)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "lib" / "by_hand.py").write_text("torch")
    return venv


def made_beside(link: Path, number: str, content: str) -> Path:
    new = environments.beside(link, number)
    environments.copy(link.resolve(), new)
    program = new / "bin" / "mlp-hub"
    program.unlink()  # as who installs does
    program.write_text(f"#!{new}/bin/python\n{content}")
    program.chmod(0o755)
    return new


def test_a_new_environment_changes_nothing_until_it_is_swapped_in(link: Path) -> None:
    new = made_beside(link, "0000000a", "new")
    assert (link / "bin" / "mlp-hub").read_text().endswith("old")
    environments.name_by_link(link, new)
    environments.swap(link, new)
    assert link.resolve() == new
    assert (link / "bin" / "mlp-hub").read_text() == f"#!{link}/bin/python\nnew"
    assert (link / "bin" / "mlp-hub").stat().st_mode & 0o111
    assert (link / "lib" / "by_hand.py").read_text() == "torch"
    kept = link.with_name(".venv-00000000")
    assert (kept / "bin" / "mlp-hub").read_text().endswith("old")


def test_one_that_a_process_was_started_from_stays_until_that_has_ended(link: Path) -> None:
    first = made_beside(link, "0000000a", "first")
    environments.swap(link, first)
    program = first / "lib" / "watch.py"
    program.write_text("import sys; print('on', flush=True); sys.stdin.read()")
    with subprocess.Popen(
        [sys.executable, "-IS", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == b"on\n"
        assert environments.runs(link)
        second = made_beside(link, "0000000b", "second")
        environments.swap(link, second)
        environments.prune(link)
        assert {path.name for path in link.parent.glob(".venv-*")} == {first.name, second.name}
        assert not environments.runs(link)
        watcher.kill()
    environments.prune(link)
    assert [path.name for path in link.parent.glob(".venv-*")] == [second.name]


def test_an_environment_in_use_is_kept_while_processes_load_its_libraries(link: Path) -> None:
    """As the hub's own processes are started: an `up` that fails, or comes later, leaves them what they run from."""
    first = made_beside(link, "0000000a", "first")
    environments.swap(link, first)
    (link / "lib" / "native.so").write_bytes(bytes(4096))
    (link / "lib" / "hub.py").write_text(
        "import mmap, sys; file = open(sys.argv[1], 'rb'); kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print('on', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-IS", str(link / "lib" / "hub.py"), str(link / "lib" / "native.so")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hub:
        assert hub.stdout is not None
        assert hub.stdout.readline() == b"on\n"
        for number in ("0000000b", "0000000c"):
            environments.swap(link, made_beside(link, number, number))
            environments.prune(link)
        assert (first / "lib" / "native.so").exists()
        assert not link.with_name(".venv-0000000b").exists()
        hub.kill()
    environments.prune(link)
    assert not first.exists()


def test_the_first_one_which_all_know_by_the_link_stays_for_those_that_began_before(link: Path) -> None:
    def watcher() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-IS", str(link / "lib" / "watch.py")]
        began = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert began.stdout is not None
        assert began.stdout.readline() == b"on\n"
        return began

    (link / "lib" / "watch.py").write_text("import sys; print('on', flush=True); sys.stdin.read()")
    kept = link.with_name(".venv-00000000")
    with watcher() as old:
        time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # a start is known by ticks
        environments.swap(link, made_beside(link, "0000000a", "first"))
        with watcher() as new:
            environments.prune(link)
            assert (kept / "lib" / "by_hand.py").exists()
            old.kill()
            old.wait()
            environments.prune(link)
            assert not kept.exists()
            new.kill()


def test_folders_with_similar_names_are_left_alone(link: Path) -> None:
    dev = link.with_name(".venv-dev")
    dev.mkdir()
    environments.swap(link, made_beside(link, "0000000a", "first"))
    environments.prune(link)
    assert dev.is_dir()


def test_leftovers_of_a_failed_try_are_removed(link: Path) -> None:
    made_beside(link, "0000000a", "half")
    again = environments.beside(link, "0000000a")
    assert again.name == ".venv-0000000a"
    assert not again.exists()
