"""Backup, restore and upgrade of a real hub, with jobs running."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.cli.state import database
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from support.hubs.live_hub import BIN, LiveHub, live_hub
from support.stores.postgres import postgres_server

COUNTS = """
import os, pathlib, time
done, new = pathlib.Path("count"), pathlib.Path("count.new")
n = int(done.read_text()) if done.exists() else 0
while not pathlib.Path(os.environ["HOME"], "go").exists():
    n += 1
    new.write_text(str(n))
    new.replace(done)
    print("count", n, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with live_hub(tmp_path_factory.mktemp("hub") / "home") as hub:
        hub.add_user("ann")
        yield hub


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def fails(hub: LiveHub, *args: str) -> str:
    done = hub.run(*args, check=False)
    assert done.returncode in (1, 2, 3)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_backup_made_while_jobs_run_restores_to_a_hub_that_continues_them(hub: LiveHub, away: Path) -> None:
    hub.submit("ann", "ended", "print('all of it')")
    hub.wait_phase("ann", "ended", "finished")
    hub.submit("ann", "counts", COUNTS)
    hub.wait_phase("ann", "counts", "running")
    file = away / "hub.tar.gz"

    told = hub.run("backup", str(file)).stdout

    assert "read back, all as written" in told
    assert file.stat().st_mode & 0o777 == 0o600
    record = json.loads((hub.home / "backup.json").read_text())
    assert record["size"] == file.stat().st_size
    assert 0 <= time.time() - record["at"] < 3600
    assert hub.job("ann", "counts")["phase"] == "running"
    assert hub.job("ann", "counts")["restarts"] == 0
    other = LiveHub(away / "home")
    try:
        told = other.run("restore", str(file)).stdout
        assert f"Start it: MLP_HOME={other.home} mlp-hub up" in told
        assert "1 job (ann/counts" in told
        hub.down(jobs="stop")
        assert not (other.home / "backup.json").exists()
        other.up()
        assert other.job("ann", "ended")["phase"] == "finished"
        assert "all of it" in other.log("ann", "ended")
        running = other.wait_phase("ann", "counts", "running")
        assert running["restarts"] == 1
        (other.home / "homes" / "ann" / "go").touch()
        other.wait_phase("ann", "counts", "finished")
    finally:
        other.destroy()
        hub.up()


def test_an_invalid_backup_or_a_target_that_is_not_empty_is_refused_and_nothing_changes(
    hub: LiveHub, away: Path
) -> None:
    file = away / "hub.tar"
    assert "must end in .tar or .tar.gz" in fails(hub, "backup", str(away / "hub.zip"))
    assert "would be inside a directory of the backup" in fails(
        hub, "backup", str(hub.home / "homes" / "b.tar")
    )
    hub.run("backup", "--without-files", str(file))
    assert "already exists" in fails(hub, "backup", str(file))
    assert "A hub runs on" in fails(hub, "restore", str(file))
    other = LiveHub(away / "home")
    assert "has no state" in fails(other, "backup", str(away / "other.tar"))
    assert "nothing.tar does not exist" in fails(other, "restore", str(away / "nothing.tar"))
    (away / "bad.tar").write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert "is not a complete backup" in fails(other, "restore", str(away / "bad.tar"))
    assert not other.home.exists()
    other.home.mkdir()
    (other.home / "mine").touch()
    assert "is not empty" in fails(other, "restore", str(file))
    assert sorted(path.name for path in away.iterdir()) == ["bad.tar", "home", "hub.tar"]


def test_a_backup_that_is_killed_leaves_the_hub_as_it_was_and_no_file_of_that_name(
    hub: LiveHub, away: Path
) -> None:
    (hub.home / "homes" / "ann" / "large").write_bytes(os.urandom(64 << 20))
    child = subprocess.Popen([str(BIN / "mlp-hub"), "backup", str(away / "b.tar.gz")], env=hub.env)
    while not any(path.name.endswith(".part") for path in away.iterdir()):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (away / "b.tar.gz").exists()
    (hub.home / "homes" / "ann" / "large").unlink()
    hub.run("backup", str(away / "b.tar.gz"))


OLDER_HUB = "ff1860e38070"
"""Of JupyterHub's database before spawners had `display_name`."""


def hub_revision(file: Path) -> str:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def make_older(settings: Settings) -> None:
    """Take both databases back to what earlier versions had."""
    migrate.downgrade(settings.service_db_url, "0011")
    make_older_hub(settings)


def make_older_hub(settings: Settings) -> None:
    with contextlib.closing(sqlite3.connect(settings.db_dir / "jupyterhub.sqlite")) as connection, connection:
        connection.execute("ALTER TABLE spawners DROP COLUMN display_name")
        connection.execute("UPDATE alembic_version SET version_num = ?", (OLDER_HUB,))


@pytest.fixture(scope="module")
def stopped(hub: LiveHub) -> LiveHub:
    """The hub while it is down and a job of it runs; only the last of these tests starts it."""
    hub.submit("ann", "goes-on", COUNTS)
    hub.wait_phase("ann", "goes-on", "running")
    assert "nothing to do" in hub.run("upgrade").stdout
    hub.down()
    return hub


def test_a_database_of_a_newer_version_is_neither_upgraded_nor_touched(stopped: LiveHub) -> None:
    path = Settings.load(stopped.env).service_db_file
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "newer than this version's" in fails(stopped, "upgrade")
    assert "newer than this version's" in fails(stopped, "up")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (database.newest_revision(),))


def test_where_one_database_cannot_be_brought_both_are_as_they_were(stopped: LiveHub) -> None:
    settings = Settings.load(stopped.env)
    make_older(settings)
    file = settings.db_dir / "jupyterhub.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE spawners ADD COLUMN display_name")  # which the step would add

    assert "the databases are as they were" in fails(stopped, "up")

    assert migrate.current(settings.service_db_url) == "0011"
    assert hub_revision(file) == OLDER_HUB
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE spawners DROP COLUMN display_name")
    stopped.run("upgrade")
    assert database.changes(settings) == []


@pytest.mark.parametrize("command", ["upgrade", "up"])
def test_both_databases_are_saved_and_brought_from_an_earlier_version_to_this_one(
    stopped: LiveHub, command: str
) -> None:
    settings = Settings.load(stopped.env)
    newest = hub_revision(settings.db_dir / "jupyterhub.sqlite")
    before = set(settings.db_dir.glob("before-*"))
    make_older(settings)
    told = stopped.run("upgrade", "--check", check=False).stdout
    assert f"The platform's database goes from revision 0011 to {database.newest_revision()}" in told
    assert f"JupyterHub's database goes from revision {OLDER_HUB} to {newest}" in told
    assert migrate.current(settings.service_db_url) == "0011"

    stopped.run(command)

    assert database.changes(settings) == []
    assert hub_revision(settings.db_dir / "jupyterhub.sqlite") == newest
    (saved,) = set(settings.db_dir.glob("before-*")) - before
    assert sorted(path.name for path in saved.iterdir()) == ["hub", "platform"]
    assert migrate.current(f"sqlite:///{saved / 'platform'}") == "0011"
    assert hub_revision(saved / "hub") == OLDER_HUB
    if command == "up":
        assert stopped.job("ann", "goes-on")["phase"] == "running"
        assert stopped.job("ann", "goes-on")["restarts"] == 0


def test_a_rollback_puts_back_what_an_upgrade_saved_and_the_job_still_runs(stopped: LiveHub) -> None:
    """As `docs/how-to/operate.md` has it; the older program itself is not here, so this one upgrades what was put back again."""
    settings = Settings.load(stopped.env)
    stopped.down()
    saved = max(settings.db_dir.glob("before-*"), key=lambda path: path.stat().st_mtime_ns)
    for name, file in (
        ("platform", settings.service_db_file),
        ("hub", settings.db_dir / "jupyterhub.sqlite"),
    ):
        for beside in ("-wal", "-shm"):
            Path(f"{file}{beside}").unlink(missing_ok=True)
        shutil.copy(saved / name, file)
    assert migrate.current(settings.service_db_url) == "0011"
    assert hub_revision(settings.db_dir / "jupyterhub.sqlite") == OLDER_HUB

    stopped.up()

    assert database.changes(settings) == []
    assert stopped.job("ann", "goes-on")["phase"] == "running"
    assert stopped.job("ann", "goes-on")["restarts"] == 0


@pytest.mark.whole
def test_on_postgresql_too_a_backup_is_a_hub_again_and_an_older_database_is_saved(
    away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server() as server:
        monkeypatch.setenv("PATH", f"{server._bin}:{os.environ['PATH']}")
        for name in ("one", "one_hub", "two", "two_hub"):
            server.run("CREATE DATABASE {}", name)
        urls = {"MLP_DATABASE_URL": server.url("one"), "MLP_HUB_DATABASE_URL": server.url("one_hub")}
        with live_hub(away / "home", **urls) as hub:
            hub.add_user("ann")
            hub.submit("ann", "ended", "print('all of it')")
            hub.wait_phase("ann", "ended", "finished")
            hub.run("backup", str(away / "b.tar"))
            hub.down()
            migrate.downgrade(urls["MLP_DATABASE_URL"], "0011")
            hub.up()
            (saved,) = (hub.home / "db").glob("before-*")
            assert sorted(path.name for path in saved.iterdir()) == ["hub", "platform"]
        others = {"MLP_DATABASE_URL": server.url("two"), "MLP_HUB_DATABASE_URL": server.url("two_hub")}
        assert "the settings have sqlite" in fails(LiveHub(away / "new"), "restore", str(away / "b.tar"))
        other = LiveHub(away / "new", **others)
        try:
            other.run("restore", str(away / "b.tar"))
            other.up()
            assert "all of it" in other.log("ann", "ended")
            other.add_user("bob")
        finally:
            other.destroy()
