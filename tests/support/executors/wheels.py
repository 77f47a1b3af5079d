"""Wheels as a build backend writes them: uv's own, which needs no network."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

UV = Path(sys.executable).with_name("uv")
PROJECT = """
[build-system]
requires = ["uv_build>=0.1"]
build-backend = "uv_build"
[project]
name = "{name}"
version = "1.0"
"""


def build_wheel(to: Path, name: str, text: str) -> Path:
    """Build `name-1.0-py3-none-any.whl`, whose one module has this text, into a directory."""
    _build(to, name, text, "--wheel")
    wheel = to / f"{name}-1.0-py3-none-any.whl"
    wheel.chmod(0o644)
    return wheel


def build_sdist(to: Path, name: str, text: str) -> Path:
    """Pack the same into `name-1.0.tar.gz`, from which a wheel would have to be built first."""
    _build(to, name, text, "--sdist")
    return to / f"{name}-1.0.tar.gz"


def _build(to: Path, name: str, text: str, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "pyproject.toml").write_text(PROJECT.format(name=name))
        (project / "src" / name).mkdir(parents=True)
        (project / "src" / name / "__init__.py").write_text(text)
        command = [str(UV), "build", "-q", kind, "--offline", "--no-config", "-o", str(to), folder]
        subprocess.run(command, check=True)
    (to / ".gitignore").unlink(missing_ok=True)
