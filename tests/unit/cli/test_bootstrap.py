"""What the bootstrap takes for done, and what it asks for; nothing is installed here."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from mlp_hub.cli import bootstrap as boot


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a small source tree in the place of the real one."""
    monkeypatch.setattr(boot, "ROOT", tmp_path)
    monkeypatch.setattr(boot, "BUILD", tmp_path / "build")
    monkeypatch.setattr(boot, "CONSTRAINTS", tmp_path / "constraints.txt")
    for folder in ("hub/pkg", "extensions", "spawner", "widgets/src", "widgets/node_modules/x"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "hub/pkg/a.py").write_text("1")
    (tmp_path / "widgets/src/w.ts").write_text("2")
    (tmp_path / "widgets/node_modules/x/i.js").write_text("3")
    (tmp_path / "constraints.txt").write_text("a==1\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.optional-dependencies]\n'
        'test = ["pytest>=8"]\ndev = ["mlp-hub[test]", "ruff>=0.9"]\n'
    )
    return tmp_path


def digest() -> str:
    return boot._digest(boot._sources())


def test_a_changed_source_is_noticed_and_what_was_built_is_not(tree: Path) -> None:
    before = digest()
    (tree / "widgets/node_modules/x/i.js").write_text("other")
    (tree / "hub/pkg/__pycache__").mkdir()
    (tree / "hub/pkg/__pycache__/a.pyc").write_text("other")
    assert digest() == before
    (tree / "hub/pkg/a.py").write_text("other")
    assert digest() != before


def test_a_moved_or_added_file_is_noticed(tree: Path) -> None:
    seen = {digest()}
    (tree / "hub/pkg/a.py").rename(tree / "hub/pkg/b.py")
    seen.add(digest())
    (tree / "hub/pkg/empty.py").touch()
    seen.add(digest())
    assert len(seen) == 3


def test_an_extra_brings_those_that_it_names(tree: Path) -> None:
    made = boot.Bootstrap(tree / ".venv")
    assert made.requirements("dev") == ["pytest>=8", "ruff>=0.9"]


def test_versions_are_held_to_the_tested_ones(tree: Path) -> None:
    made = boot.Bootstrap(tree / ".venv")
    assert made.constraints() == ["-c", str(tree / "constraints.txt")]


def test_a_failing_tool_shows_its_last_words_and_where_the_rest_is(tree: Path) -> None:
    command = [sys.executable, "-c", "print('first'); print('the reason'); raise SystemExit(3)"]
    with pytest.raises(boot.BootstrapError, match="the reason") as caught:
        boot.call("tool", command, {})
    assert str(tree / "build/log/tool.log") in str(caught.value)
    assert "ended with 3" in str(caught.value)


@pytest.mark.parametrize("starts", [True, False])
def test_an_environment_takes_its_place_only_if_the_hub_starts_in_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch, starts: bool
) -> None:
    for part in ("system_tools", "make_venv", "build_tools", "dependencies", "wheel"):
        monkeypatch.setattr(boot.Bootstrap, part, lambda _: None)
    monkeypatch.setattr(boot, "_sources", list)
    monkeypatch.setattr(boot, "_digest", lambda *_: "b" * 64)
    monkeypatch.setattr(boot, "FRONTS", {})
    monkeypatch.setattr(boot.environments, "runs", lambda _: True)
    monkeypatch.setattr(boot, "_STARTS", "pass" if starts else "raise ImportError('a broken wheel')")
    link, before = tree / ".venv", tree / ".venv-0000000a"
    (before / "bin").mkdir(parents=True)
    (before / "bin" / "python").symlink_to(sys.executable)
    (before / "pyvenv.cfg").touch()
    link.symlink_to(before.name)
    if starts:
        boot.Bootstrap(link).install()
    else:
        with pytest.raises(boot.BootstrapError, match="a broken wheel"):
            boot.Bootstrap(link).install()
    assert (link.resolve() != before) == starts


def test_a_program_that_is_there_is_not_installed() -> None:
    assert boot.apt({"sh": "dash"}) is None


def test_a_user_without_root_rights_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot.os, "getuid", lambda: 1000)
    assert boot.apt({"no-such-program": "a-package"}) == "missing; as root: apt-get install a-package"


def test_an_old_python_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boot, "OLDEST", (99, 0))
    assert boot.main(["install"]) == 3
    assert "needs 99.0 or newer" in capsys.readouterr().err


def test_it_runs_before_anything_is_installed() -> None:
    tree = ast.parse(Path(boot.__file__).read_text())
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= {*sys.stdlib_module_names, "environments"}
