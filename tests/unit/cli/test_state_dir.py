"""The state directory: made once, closed to others, its secrets never changed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import state_dir
from mlp_hub.settings import Settings


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    state_dir.prepare(settings)
    first = {path.name: path.read_text() for path in settings.secrets_dir.iterdir()}
    state_dir.prepare(settings)
    assert {path.name: path.read_text() for path in settings.secrets_dir.iterdir()} == first
    assert {mode(path) for path in settings.secrets_dir.iterdir()} == {0o600}
    assert len(set(first.values())) == len(first) == 10


def test_others_can_pass_but_not_look_around(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    state_dir.prepare(settings)
    assert (mode(settings.home), mode(settings.homes_dir), mode(settings.tenant_dir)) == (0o711, 0o711, 0o711)
    assert {mode(p) for p in (settings.secrets_dir, settings.db_dir, settings.private_dir)} == {0o700}


def test_an_open_directory_is_closed_again(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    state_dir.prepare(settings)
    settings.secrets_dir.chmod(0o755)
    settings.secret_file("proxy_token").chmod(0o644)
    state_dir.prepare(settings)
    assert (mode(settings.secrets_dir), mode(settings.secret_file("proxy_token"))) == (0o700, 0o600)


def test_a_place_that_cannot_be_used_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandFailed) as caught:
        state_dir.prepare(Settings.load({"MLP_HOME": str(tmp_path / "file" / "h")}))
    assert str(tmp_path / "file") in caught.value.msg
    assert "MLP_HOME=PATH" in caught.value.remedy


def test_a_run_directory_that_somebody_else_put_into_tmp_is_refused(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / ("d" * 150))})
    settings.run_dir.symlink_to(tmp_path)
    try:
        with pytest.raises(CommandFailed, match="cannot be used"):
            state_dir.prepare(settings)
    finally:
        settings.run_dir.unlink()


def test_the_root_of_a_volume_may_belong_to_somebody_who_lets_the_hub_write_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    files.chmod(0o777)
    settings = Settings.load(
        {"MLP_HOME": str(tmp_path / "home"), "MLP_EXECUTOR": "kubernetes", "MLP_KUBERNETES_FILES": str(files)}
    )
    chmod = Path.chmod

    def of_another(path: Path, mode: int) -> None:
        if path == files:
            raise PermissionError(1, "Operation not permitted", str(path))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", of_another)
    with pytest.raises(CommandFailed, match="Operation not permitted"):
        state_dir.prepare_folders(settings)
    monkeypatch.setattr(Path, "is_mount", lambda path: path == files)
    state_dir.prepare_folders(settings)
    assert settings.homes_dir.is_dir()
