"""Settings of Jupyter that are programs: one that ends its process, or never ends, is found before the server runs it."""

from __future__ import annotations

import gc
import os
import site
import socket
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_config_path, jupyter_path

from mlp_spawner import launcher

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from jupyterlab_server.config import get_federated_extensions, get_page_config
    from jupyterlab_server.settings_utils import _get_overrides

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
    assert launcher._settings("config.py") == []
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    (tmp_path / "jupyter_server_config.json").write_text("{}")
    for other in ("notes.py", "jupyterhub_config.py"):
        (tmp_path / other).write_text("")
    assert launcher._settings("config.py") == []
    found = program(tmp_path, "")
    assert launcher._settings("config.py") == [found]


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
    assert launcher._what_lab_cannot_read(PATIENT_S) == ""
    good, bad = (tmp_path / "labextensions" / name for name in ("good", "bad"))
    good.mkdir(parents=True)
    (good / "package.json").write_text(GOOD)
    assert launcher._what_lab_cannot_read(PATIENT_S) == ""
    bad.mkdir()
    (bad / "package.json").write_text(GOOD.replace("good", "bad"))
    (bad / file).write_text(text)
    assert launcher._what_lab_cannot_read(PATIENT_S) == f"an extension in {bad.parent} cannot be read"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("package.json", "{"),
        ("package.json", '{"name": "bad"}'),
        ("package.json", '{"name": "bad", "version": "1", "repository": null}'),
        ("package.json", '{"name": "bad", "version": "1", "repository": "there"}'),
        ("install.json", "{"),
        ("install.json", "[]"),
    ],
)
def test_the_launcher_fails_on_the_same_extensions_as_jupyterlab(
    tmp_path: Path, file: str, text: str
) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "package.json").write_text(GOOD)
    (bad / file).write_text(text)
    fails = []
    for reads in (
        lambda: get_federated_extensions([str(tmp_path)]),
        partial(launcher._read_extensions, str(tmp_path)),
    ):
        try:
            reads()
            fails.append(False)
        except Exception:  # noqa: BLE001 - whatever it is
            fails.append(True)
    assert fails[0] == fails[1], (
        "get_federated_extensions of jupyterlab_server reads something else now: see _read_extensions"
    )


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """All places of a user's own in which Jupyter looks for settings, as in an image whose Python has a user base."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", f"/opt/operators{os.pathsep}{tmp_path / 'home' / 'mine'}")
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "getuserbase", lambda: str(tmp_path / "home" / ".local"))
    home = tmp_path / "home"
    return {"usual": home / ".jupyter", "user base": home / ".local/etc/jupyter", "more": home / "mine"}


@pytest.mark.parametrize("place", ["usual", "user base", "more"])
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("page_config.json", b'{"theme": "\xc3'),
        ("page_config.json", b"[]"),
        ("page_config.d/one.json", b"[]"),
        ("default_setting_overrides.json", b'{"@jupyterlab/apputils-extension:themes": 1}'),
    ],
)
def test_a_setting_for_all_of_jupyterlab_that_cannot_be_read_is_found_wherever_it_is(
    places: dict[str, Path], place: str, file: str, content: bytes
) -> None:
    path = places[place] / "labconfig" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"@jupyterlab/apputils-extension:themes": {"theme": "dark"}}')
    assert launcher._what_fails(PATIENT_S) == ""
    path.write_bytes(content)
    assert launcher._what_fails(PATIENT_S) == f"a setting in {places[place] / 'labconfig'} cannot be read"
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is that Jupyter raises
        _get_overrides(str(places[place] / "none")) if "overrides" in file else get_page_config([])


@pytest.mark.parametrize("content", [b"{", b"\0\0", b""])
def test_one_that_jupyter_passes_over_itself_is_left_to_it(places: dict[str, Path], content: bytes) -> None:
    path = places["user base"] / "labconfig" / "page_config.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    os.mkfifo(path.parent / "default_setting_overrides.json")
    assert launcher._what_fails(PATIENT_S) == ""
    get_page_config([])
    _get_overrides(str(path.parent))


def test_a_named_pipe_for_settings_is_named_and_a_program_in_each_place_is_tried(
    places: dict[str, Path],
) -> None:
    for place in places.values():
        place.mkdir(parents=True)
    found = [program(place, "") for place in places.values()]
    assert launcher._settings("config.py") == found
    pipe = places["user base"] / "jupyter_server_config.json"
    os.mkfifo(pipe)
    assert launcher._what_fails(PATIENT_S) == f"{pipe} is not a file"


def test_without_its_users_settings_it_finds_those_of_nobody_but_the_operator(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert {str(place) for place in places.values()} <= set(jupyter_config_path())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, "")  # so that it is put back
    launcher._leave_settings(chosen=False)
    left = jupyter_config_path()
    assert "/opt/operators" in left
    assert not [path for path in [*left, *jupyter_path()] if path.startswith(str(tmp_path / "home"))]


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
