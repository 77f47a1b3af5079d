"""Conditions of a release: a clean tree, one version everywhere, and a section of the changelog."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release.versions import FILES, ROOT, version

FORM = re.compile(r"\d+\.\d+\.\d+")
"""Form that PyPI, npm and Helm read in one way."""
_SECTION = re.compile(r"^## (\S+)[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def problems(wanted: str, root: Path = ROOT) -> Iterator[str]:
    """Yield what stands against the release of a version, each with the way out."""
    if not FORM.fullmatch(wanted):
        yield f"{wanted!r} is not a version; write VERSION=1.2.3"
        return
    if wanted != version():
        yield f"pyproject.toml has version {version()}; set it to {wanted}, run `make docs` and commit"
    for path, make in FILES.items():
        if (root / path).read_text() != make():
            yield f"{path} has another version than pyproject.toml; run `make docs` and commit"
    if not notes(wanted, (root / "CHANGELOG.md").read_text()):
        yield f"CHANGELOG.md has no section {wanted} with text; write `## {wanted} - DATE` above the lines of Unreleased that it releases"
    if changed := _git(root, "status", "--porcelain"):
        yield f"{len(changed.splitlines())} files are not committed: {changed.splitlines()[0].strip()}; commit them first"
    if _git(root, "tag", "--list", f"v{wanted}"):
        yield f"the tag v{wanted} exists; a version is released once, so choose the next one"


def notes(wanted: str, changelog: str) -> str:
    """Return the text of a version's section of the changelog; empty if there is none."""
    sections: dict[str, str] = {name.strip("[]"): text.strip() for name, text in _SECTION.findall(changelog)}
    return sections.get(wanted, "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return str(done.stdout).rstrip()
