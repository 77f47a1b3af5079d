"""Where a run is submitted from: the environment by names of what is installed, the commit by git, and nothing that hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlp.submitting import provenance


def git(directory: Path, *words: str) -> None:
    who = ["-c", "user.email=a@example.org", "-c", "user.name=a"]
    subprocess.run(["git", *who, "-C", str(directory), *words], check=True, capture_output=True)


def test_the_environment_lists_installed_packages_and_is_read_again_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "My_pkg-1.2.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nothing")])
    assert provenance.environment().splitlines()[1:] == ["my-pkg==1.2"]
    (tmp_path / "other-3.0.egg-info").mkdir()
    assert provenance.environment().splitlines()[1:] == ["my-pkg==1.2", "other==3.0"]


def test_the_commit_is_that_of_the_directory_and_changes_are_told(tmp_path: Path) -> None:
    assert provenance.commit(tmp_path) == {}
    git(tmp_path, "init")
    assert provenance.commit(tmp_path) == {}, "there is none yet"
    (tmp_path / "train.py").write_text("x")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-m", "one")
    (tmp_path / "below").mkdir()
    found = provenance.commit(tmp_path / "below")
    assert (len(found["commit"]), found["dirty"]) == (40, False)
    (tmp_path / "train.py").write_text("y")
    assert provenance.commit(tmp_path)["dirty"] is True


def test_a_git_that_hangs_or_is_not_there_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit(tmp_path) == {}
    script = tmp_path / "git"
    script.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(provenance, "GIT_S", 0.05)
    assert provenance.commit(tmp_path) == {}


def test_attacks_a_directory_of_somebody_elses_runs_nothing_where_one_submits_from_it(tmp_path: Path) -> None:
    here, ran = tmp_path / "unpacked", tmp_path / "ran"
    here.mkdir()
    git(here, "init")
    (here / "data.bin").write_text("x")
    git(here, "add", "data.bin")
    git(here, "commit", "-m", "one")
    (here / ".gitattributes").write_text("* filter=evil\n")
    git(here, "config", "filter.evil.clean", f"touch {ran}; cat")
    (here / "data.bin").write_text("y")  # now git has to look at what is in it
    found = provenance.commit(here)
    assert not ran.exists()
    assert len(found["commit"]) == 40
    assert "dirty" not in found, "nobody can tell"


def test_attacks_what_a_repository_lacks_is_fetched_from_nowhere(tmp_path: Path) -> None:
    here, ran = tmp_path / "unpacked", tmp_path / "ran"
    here.mkdir()
    git(here, "init")
    (here / "train.py").write_text("x")
    git(here, "add", "train.py")
    git(here, "commit", "-m", "one")
    tree = subprocess.run(
        ["git", "-C", str(here), "rev-parse", "HEAD^{tree}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    for key, value in {
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {ran}",
        "protocol.ext.allow": "always",
    }.items():
        git(here, "config", key, value)
    (here / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert provenance.commit(here) == {}
    assert not ran.exists()
