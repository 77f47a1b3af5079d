"""What the bootstrap takes for done, and what it asks for; nothing is installed here."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

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


class Index(BaseHTTPRequestHandler):
    """An index of packages that has none, and notes which were asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror() -> Iterator[str]:
    Index.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have no configuration of pip and uv; return the home directory for some."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_", "SSL_CERT", "REQUESTS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(boot.package_index, "SYSTEM_CONFIG", tmp_path / "none")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    return tmp_path


def install(tree: Path) -> str:
    """Install a package that no index of this test has; return what uv said."""
    made = boot.Bootstrap(tree / ".venv")
    made.uv, made.python = str(Path(sys.executable).with_name("uv")), Path(sys.executable)
    (tree / "constraints.txt").write_text("")
    with pytest.raises(boot.BootstrapError) as caught:
        made.pip_install("mirror", "--dry-run", "mlp-no-such-package")
    return str(caught.value)


@pytest.mark.parametrize("place", ["variable", "file", "own variable"])
def test_uv_asks_the_mirror_that_pip_is_configured_with(
    tree: Path, nobody: Path, mirror: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "file":
        (nobody / ".config/pip").mkdir(parents=True)
        (nobody / ".config/pip/pip.conf").write_text(f"[global]\nindex-url = {mirror}\n")
    else:
        monkeypatch.setenv("UV_DEFAULT_INDEX" if place == "own variable" else "PIP_INDEX_URL", mirror)
    if place == "own variable":
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    install(tree)
    assert Index.asked == ["/simple/mlp-no-such-package/"]


def test_a_machine_without_an_index_asks_for_directories_of_wheels_only(
    tree: Path, nobody: Path, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", mirror)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{nobody / 'a'} {nobody / 'b'}")
    for name in "ab":
        (nobody / name).mkdir()
    made = boot.Bootstrap(tree / ".venv")
    assert made.env["UV_FIND_LINKS"] == f"{nobody / 'a'},{nobody / 'b'}"
    install(tree)
    assert Index.asked == []


def test_a_file_of_uv_counts_instead_of_pips(tree: Path, nobody: Path, mirror: str) -> None:
    for tool, text in (
        ("pip/pip.conf", "[global]\nindex-url = http://127.0.0.1:1/simple\n"),
        ("uv/uv.toml", f'[[index]]\nurl = "{mirror}"\ndefault = true\n'),
    ):
        path = nobody / ".config" / tool
        path.parent.mkdir(parents=True)
        path.write_text(text)
    install(tree)
    assert Index.asked == ["/simple/mlp-no-such-package/"]


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
    trees = [ast.parse(Path(file).read_text()) for file in (boot.__file__, boot.package_index.__file__)]
    imported = {
        name.partition(".")[0]
        for tree in trees
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= {*sys.stdlib_module_names, "environments", "package_index"}
