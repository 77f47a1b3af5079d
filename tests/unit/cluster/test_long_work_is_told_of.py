"""Of what takes minutes it is said again and again that it goes on, and what it did last."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mlp_cluster import running


def test_a_long_build_says_what_it_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(running, "TELL_EACH_S", 0.01)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if "k8s.io/kubernetes/pkg/kubelet" in text:
            (tmp_path / "seen").touch()

    monkeypatch.setattr(running, "say", say)
    program = (
        "import os, sys\n"
        "print('k8s.io/kubernetes/pkg/kubelet', file=sys.stderr, flush=True)\n"
        "while not os.path.exists('seen'): pass\n"
        "print('done')"
    )
    assert running.followed([sys.executable, "-c", program], "compiling", cwd=tmp_path) == "done\n"
    assert said[-1].startswith("compiling, for 0 s")


def test_a_long_build_that_fails_says_its_last_words() -> None:
    program = "import sys; print('no space left', file=sys.stderr); sys.exit(3)"
    with pytest.raises(running.ClusterError, match="ended with 3:\nno space left"):
        running.followed([sys.executable, "-c", program], "compiling")
