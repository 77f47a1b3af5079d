"""A release is checked before it is made, has one version everywhere, and lists its parts."""

from __future__ import annotations

import shutil
import subprocess
from importlib.metadata import version as installed
from pathlib import Path

import pytest

from release import checks, sbom
from release.versions import FILES, ROOT, version

NOTES = "# Changelog\n\n## Unreleased\n\n### Added\n\n- new\n\n## 0.1.0 - 2031-01-02\n\n- the first\n\n## 0.0.9\n\n"


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree with the files that have the version, and a changelog."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(NOTES.replace("0.1.0", version()))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def test_the_wheel_the_chart_and_the_bundles_have_one_version() -> None:
    assert installed("mlp-hub") == version()
    for name, make in FILES.items():
        assert (ROOT / name).read_text() == make(), f"{name} has another version: run `make docs`"


def test_a_clean_tree_with_its_section_can_be_released(tree: Path) -> None:
    assert list(checks.problems(version(), tree)) == []


@pytest.mark.parametrize("wanted", ["", "1", "v1.2.3", "1.2.3rc1", "1.2.3; rm"])
def test_a_word_that_is_not_a_version_is_refused(tree: Path, wanted: str) -> None:
    (problem,) = checks.problems(wanted, tree)
    assert "VERSION=1.2.3" in problem


def test_all_problems_are_told_at_once_with_their_way_out(tree: Path) -> None:
    (tree / "helm/mlp-hub/Chart.yaml").write_text("version: 7.0.0\n")
    found = "\n".join(checks.problems("9.9.9", tree))
    assert f"pyproject.toml has version {version()}; set it to 9.9.9" in found
    assert "helm/mlp-hub/Chart.yaml has another version than pyproject.toml; run `make docs`" in found
    assert "CHANGELOG.md has no section 9.9.9" in found
    assert "1 files are not committed" in found


def test_a_version_is_released_once(tree: Path) -> None:
    git(tree, "tag", f"v{version()}")
    (problem,) = checks.problems(version(), tree)
    assert "exists" in problem


def test_the_notes_of_a_version_are_its_section() -> None:
    assert checks.notes("0.1.0", NOTES) == "- the first"
    assert checks.notes("0.0.9", NOTES) == checks.notes("3.0.0", NOTES) == ""


def test_packages_within_the_bundles_are_listed_with_licence_and_checksum() -> None:
    parts = {component.name: component for component in sbom.npm_parts()}
    assert {"preact", "uplot", "configurable-http-proxy", "http-proxy-3", "winston"} <= set(parts)
    assert not [name for name in parts if "esbuild" in name]
    for part in parts.values():
        assert str(part.purl).startswith("pkg:npm/")
        assert part.licenses
        assert part.hashes
