"""Of what takes minutes it is said again and again that it goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mlp_cluster import running


def test_a_long_build_reports_repeatedly_that_it_is_still_running(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "TELL_EACH_S", 0.01)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        (tmp_path / "seen").touch()

    monkeypatch.setattr(running, "say", say)
    program = tmp_path / "program"
    program.write_text("import os, sys\nwhile not os.path.exists('seen'): pass\nprint(sys.stdin.read())")
    assert (
        running.output([sys.executable, program], cwd=tmp_path, given="what was given") == "what was given\n"
    )
    assert said[0] == f"  {Path(sys.executable).name} {program} goes on, for 0 s so far"


def test_a_build_that_fails_says_its_last_words() -> None:
    program = "import sys; print('no space left', file=sys.stderr); sys.exit(3)"
    with pytest.raises(running.ClusterError, match="ended with 3:\nno space left"):
        running.output([sys.executable, "-c", program])
