"""Upgrades that are killed, interrupted or fail, of databases that have nothing of a hub around them."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jupyterhub import orm

from mlp_hub.cli.backups import dumps, upgrade
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import database, state_dir
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from support.hubs.live_hub import BIN

OLDER = "ff1860e38070"
HALF = """
import os, signal, sqlite3
from mlp_hub.cli.backups import upgrade
from mlp_hub.settings import Settings
def half(url):
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("ALTER TABLE spawners ADD COLUMN display_name")
    connection.commit()
    os.kill(os.getpid(), signal.SIGKILL)
upgrade._migrate = half
upgrade.bring(Settings.load(os.environ))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Make both databases, of earlier versions."""
    settings = Settings.load({"MLP_HOME": str(tmp_path / "home")})
    state_dir.prepare(settings)
    migrate.upgrade(settings.service_db_url)
    orm.new_session_factory(settings.hub_db_url).kw["bind"].dispose()
    migrate.downgrade(settings.service_db_url, "0011")
    with contextlib.closing(sqlite3.connect(hub_file(settings))) as connection, connection:
        connection.execute("ALTER TABLE spawners DROP COLUMN display_name")
        connection.execute("UPDATE alembic_version SET version_num = ?", (OLDER,))
    return settings


def hub_file(settings: Settings) -> Path:
    return settings.db_dir / "jupyterhub.sqlite"


def as_before(settings: Settings) -> bool:
    with contextlib.closing(sqlite3.connect(hub_file(settings))) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(spawners)")]
    revisions = (database.platform(settings).revision, database.hub(settings).revision)
    return revisions == ("0011", OLDER) and "display_name" not in columns


def copies(settings: Settings) -> Path:
    (saved,) = settings.db_dir.glob("before-*")
    assert sorted(path.name for path in saved.iterdir()) == ["hub", "platform"]
    return saved


def half_way(error: BaseException):
    def migrate(url: str) -> None:
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute("ALTER TABLE spawners ADD COLUMN display_name")
        raise error

    return migrate


def test_one_that_is_killed_half_way_leaves_what_the_next_one_can_bring_up(settings: Settings) -> None:
    env = os.environ | {"MLP_HOME": str(settings.home)}
    done = subprocess.run([sys.executable, "-c", HALF], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    assert as_before(settings)
    told = subprocess.run([BIN / "mlp-hub", "upgrade"], env=env, check=True, capture_output=True, text=True)
    assert "of this version now" in told.stdout
    assert database.changes(settings) == []


def test_one_that_is_interrupted_leaves_both_as_they_were(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(upgrade, "_migrate", half_way(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        upgrade.bring(settings)
    assert as_before(settings)
    assert str(copies(settings)) in capsys.readouterr().out


def test_where_the_platforms_fails_jupyterhubs_is_put_back_and_nothing_else_is_touched(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    load = dumps.load

    def noted(dumped: Path, url: str) -> None:
        loaded.append(url)
        load(dumped, url)

    def fails(_: str) -> None:
        assert database.hub(settings).revision != OLDER
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dumps, "load", noted)
    monkeypatch.setattr(migrate, "upgrade", fails)
    with pytest.raises(CommandFailed, match=r"as they were: OSError.*No space left") as failure:
        upgrade.bring(settings)
    assert as_before(settings)
    assert str(copies(settings)) in failure.value.text()
    assert set(loaded) == {settings.hub_db_url}


def test_where_it_cannot_be_put_back_either_both_errors_are_told_and_where_the_copies_lie(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = dumps.load

    def once(dumped: Path, url: str) -> None:
        if dumped.parent.name.startswith("before-"):
            raise CommandFailed("there is no room")
        load(dumped, url)

    def fails(_: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(dumps, "load", once)
    monkeypatch.setattr(migrate, "upgrade", fails)
    with pytest.raises(CommandFailed) as failure:
        upgrade.bring(settings)
    for words in ("could not be restored", "there is no room", "Input/output error", str(copies(settings))):
        assert words in failure.value.text()


def test_where_no_copies_can_be_made_it_is_said_that_the_hub_is_stopped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str, to: Path) -> None:
        raise OSError(28, "No space left on device", str(to))

    monkeypatch.setattr(dumps, "dump", fails)
    with pytest.raises(CommandFailed, match="No space left") as failure:
        upgrade.bring(settings)
    assert "The hub is stopped" in failure.value.text()
    assert as_before(settings)


@pytest.mark.parametrize("lives", [True, False])
def test_no_tables_are_changed_beneath_another_service_that_lives(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, lives: bool
) -> None:
    def hold(until: float) -> None:
        with contextlib.closing(sqlite3.connect(settings.service_db_file)) as connection, connection:
            row = ("scheduler", "elsewhere/1/ab", until, 1)
            connection.execute(
                "REPLACE INTO lease (name, holder, expires_at, epoch) VALUES (?, ?, ?, ?)", row
            )

    now = time.time()
    hold(now + 10)
    monkeypatch.setattr(time, "sleep", lambda _: hold(now + 20) if lives else None)
    if not lives:
        assert "of this version now" in upgrade.bring(settings)
        return
    with pytest.raises(CommandFailed, match="Another service holds the lease of this database: elsewhere"):
        upgrade.bring(settings)
    assert as_before(settings)
    assert not list(settings.db_dir.glob("before-*"))


def test_a_supervisor_waits_for_another_up(settings: Settings) -> None:
    env = os.environ | {"MLP_HOME": str(settings.home), "PYTHONUNBUFFERED": "1"}
    command = [BIN / "mlp-hub", "supervise"]
    with (
        state_dir.exclusive(settings, print),
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as child,
    ):
        assert child.stdout is not None
        said = child.stdout.readline()
        child.kill()
    assert "Another up or down is at work" in said
    assert as_before(settings)


def test_a_database_whose_writer_was_killed_is_looked_at_all_the_same(settings: Settings) -> None:
    file = hub_file(settings)
    dying = (
        "import os, signal, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA cache_size=1')\n"
        "c.execute('CREATE TABLE filler (x)'); c.executemany('INSERT INTO filler VALUES (?)', [('a' * 4000,)] * 500)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", dying, str(file)], check=False)
    assert file.with_name(f"{file.name}-journal").exists()
    assert database.hub(settings).revision == OLDER
    assert as_before(settings)
