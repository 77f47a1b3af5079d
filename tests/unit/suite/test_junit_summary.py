"""The summary of kept results, of files that pytest itself wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import junit_summary
from junit_summary import lines, read

PASSES = "def test_a(): pass\n"
FAILS = "def test_a(): assert 0\ndef test_b(): assert 0\n"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Have pytest write three runs, two of which fail alike."""
    tmp_path = tmp_path_factory.mktemp("suite")
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for run, text in (("1", PASSES), ("2", FAILS), ("3", FAILS)):
        file = tmp_path / "test_it.py"
        file.write_text(text)
        result = tmp_path / "junit" / run / "test-unit.xml"
        options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", f"--rootdir={tmp_path}"]
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={result}", str(file)]
        subprocess.run(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, check=False)
    return tmp_path / "junit"


def test_slowest_files_failures_and_what_failed_together(kept: Path) -> None:
    said = list(lines([read(kept / run) for run in "123"]))
    assert said[0] == "Slowest files, seconds with their set-up (3 runs):"
    assert said[1].split()[1:] == ["test-unit", "test_it"]
    assert said[2:] == [
        "Failed, in how many runs:",
        "       2  test-unit test_it::test_a",
        "       2  test-unit test_it::test_b",
        "Failed together, in how many runs:",
        "       2  test-unit test_it::test_a + test-unit test_it::test_b",
    ]


def test_of_one_run_only_the_slowest_files_and_what_is_torn_is_named(kept: Path) -> None:
    torn = kept / "1" / "test-system.xml"
    torn.write_text("<testsuites><testsu")
    said = list(lines([read(kept / "1")]))
    torn.unlink()
    assert [line.split()[-1] for line in said[1:]] == ["test_it", "test-system"]
    assert said[-1] == "Not written whole: 1 test-system"


def test_where_nothing_was_kept_it_says_how_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(junit_summary, "KEPT", tmp_path)
    assert junit_summary.main([]) == 1
    assert "make test" in capsys.readouterr().err
