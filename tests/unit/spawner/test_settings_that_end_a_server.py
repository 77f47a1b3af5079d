"""Settings of Jupyter that are programs: one that ends its process, or never ends, is found before the server runs it."""

from __future__ import annotations

import gc
import os
import socket
import sys
from pathlib import Path

import pytest

from mlp_spawner import launcher

PATIENT_S = 60.0


def program(folder: Path, text: str) -> str:
    file = folder / "jupyter_server_config.py"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    "text",
    [
        "import os; os._exit(1)",
        "import os; os._exit(0)",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_one_that_ends_its_process_is_named(tmp_path: Path, text: str) -> None:
    found = program(tmp_path, text)
    assert launcher._what_ends_us([found], PATIENT_S) == f"{found} ended the process that read it"


def test_one_that_never_ends_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "jupyter_server_config.py")
    found = str(tmp_path / "jupyter_server_config.py")
    assert launcher._what_ends_us([found], 0.0) == f"{found} did not come to its end within 0 s"


@pytest.mark.parametrize("text", ["c.ServerApp.root_dir = '/'", "raise SystemExit(3)", "c.x = = 3", "1 / 0"])
def test_settings_that_the_server_reports_itself_are_left_to_it(tmp_path: Path, text: str) -> None:
    assert launcher._what_ends_us([program(tmp_path, text)], PATIENT_S) == ""


def test_only_programs_that_the_server_would_run_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "none"))
    assert launcher._programs_of_settings() == []
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    (tmp_path / "jupyter_server_config.json").write_text("{}")
    for other in ("notes.py", "jupyterhub_config.py"):
        (tmp_path / other).write_text("")
    assert launcher._programs_of_settings() == []
    found = program(tmp_path, "")
    assert launcher._programs_of_settings() == [found]


GOOD = '{"name": "good", "version": "1"}'


@pytest.mark.parametrize(
    ("file", "text"),
    [
        *(("package.json", text) for text in ("{", "{}", "[]")),
        ("package.json", '{"name": "bad", "version": "1", "repository": null}'),
        ("install.json", "{"),
    ],
)
def test_an_extension_of_jupyterlab_that_cannot_be_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    assert launcher._which_extensions_fail(PATIENT_S) == ""
    good, bad = (tmp_path / "labextensions" / name for name in ("good", "bad"))
    good.mkdir(parents=True)
    (good / "package.json").write_text(GOOD)
    assert launcher._which_extensions_fail(PATIENT_S) == ""
    bad.mkdir()
    (bad / "package.json").write_text(GOOD.replace("good", "bad"))
    (bad / file).write_text(text)
    assert launcher._which_extensions_fail(PATIENT_S) == f"an extension in {bad.parent} cannot be read"


def test_programs_of_settings_are_not_handed_the_servers_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    class Enough(Exception):  # noqa: N818 - no error
        """No server starts here."""

    def fails() -> str:
        seen.extend((os.get_inheritable(mine.fileno()), "MLP_LISTEN_FD" in os.environ))
        raise Enough

    monkeypatch.setitem(sys.modules, "rfc3987_syntax", None)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(launcher, "_what_fails", fails)
    monkeypatch.delenv(launcher.WITHOUT, raising=False)
    with socket.socket() as mine:
        mine.set_inheritable(True)
        monkeypatch.setenv("MLP_LISTEN_FD", str(mine.fileno()))
        with pytest.raises(Enough):
            launcher.main()
    assert seen == [False, False]
