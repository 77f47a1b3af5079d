"""A state directory and its databases know each other: none stands in for another, and nobody is given another's number."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mlp_hub import bindings
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import belonging, copies, database, identity, plan, state_dir, uids
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.store import Database, migrate


def hub_database(path: Path) -> None:
    """Make the least that says JupyterHub was here."""
    head = database._chain(database._versions("jupyterhub", "alembic"))[1]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (head,))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases of both kinds as they are before anybody knows whose they are."""
    place = tmp_path_factory.mktemp("databases")
    migrate.upgrade(f"sqlite:///{place / 'mlp.sqlite'}")
    hub_database(place / "jupyterhub.sqlite")
    return place


def load(home: Path, **environ: str) -> Settings:
    return Settings.load({"MLP_HOME": str(home), **environ})


def bound(home: Path, made: Path) -> Settings:
    """Return a directory that is bound to both of its databases, as after an `up`."""
    settings = load(home)
    state_dir.prepare(settings)
    copies.settle(settings)
    for name in ("mlp.sqlite", "jupyterhub.sqlite"):
        shutil.copy(made / name, settings.db_dir / name)
    belonging.check(settings)
    bind(settings)
    return settings


def bind(settings: Settings) -> None:
    for name in ("platform", "hub"):
        belonging.bind(settings, name)
    belonging.keep_numbers(settings)
    belonging.bind_executor(settings)


@pytest.fixture
def settings(tmp_path: Path, made: Path) -> Settings:
    return bound(tmp_path / "home", made)


def refused(settings: Settings, *take: str) -> str:
    with pytest.raises(CommandFailed) as caught:
        belonging.check(settings, take)
    return caught.value.text()


def test_a_new_directory_takes_databases_that_are_not_there_yet(tmp_path: Path) -> None:
    settings = load(tmp_path / "new")
    state_dir.prepare(settings)
    copies.settle(settings)
    belonging.check(settings)


def test_a_directory_finds_its_databases_again(settings: Settings) -> None:
    before = (settings.home / bindings.FILE).read_bytes()
    belonging.check(settings)
    bind(settings)
    assert (settings.home / bindings.FILE).read_bytes() == before


@pytest.mark.parametrize("name", ["MLP_DATABASE_URL", "MLP_HUB_DATABASE_URL"])
def test_an_empty_database_does_not_replace_the_previous_one(
    settings: Settings, tmp_path: Path, name: str
) -> None:
    told = refused(load(settings.home, **{name: f"sqlite:///{tmp_path / 'empty.sqlite'}"}))
    assert f"Unset {name}." in told
    assert "--new-database" in told
    assert not (tmp_path / "empty.sqlite").exists()


@pytest.mark.parametrize("file", ["mlp.sqlite", "jupyterhub.sqlite"])
def test_a_lost_database_is_not_created_again(settings: Settings, file: str) -> None:
    (settings.db_dir / file).unlink()
    told = refused(settings)
    assert file in told
    assert "Restore the database from your last backup." in told
    belonging.check(settings, [belonging.NEW_DATABASE])


def test_the_url_of_before_is_named_without_its_password(settings: Settings) -> None:
    given = "postgresql://mlp:hunter2@db.example.org/mlp"
    old = bindings.Bound("0123456789abcdef", bindings.shown(given))
    bindings.bind(settings, "platform", old)
    told = refused(settings)
    assert "MLP_DATABASE_URL=postgresql://mlp@db.example.org/mlp" in told
    assert "hunter2" not in told + (settings.home / bindings.FILE).read_text()


def test_the_database_of_another_hub_is_refused_by_either_side(
    settings: Settings, tmp_path: Path, made: Path
) -> None:
    other = bound(tmp_path / "other", made)
    url = f"sqlite:///{other.service_db_file}"
    assert f"would be {url}, but " in refused(load(settings.home, MLP_DATABASE_URL=url))
    fresh = load(tmp_path / "fresh", MLP_DATABASE_URL=url)
    state_dir.prepare(fresh)
    copies.settle(fresh)
    told = refused(fresh)
    assert f"belongs to the state directory {other.home.resolve()}" in told
    assert f"MLP_HOME={other.home.resolve()}" in told
    belonging.check(fresh, [belonging.NEW_DATABASE])


def test_a_directory_of_an_earlier_version_is_adopted_without_a_word(settings: Settings) -> None:
    (settings.home / bindings.FILE).unlink()
    for path, table in (
        (settings.service_db_file, "setting"),
        (settings.db_dir / "jupyterhub.sqlite", database.BINDING),
    ):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"DELETE FROM {table} WHERE key = 'binding'")  # noqa: S608
    (settings.homes_dir / "ann").mkdir()
    belonging.check(settings)
    bind(settings)
    assert set(bindings.read(settings).databases) == {"platform", "hub"}


def test_a_directory_of_an_earlier_version_that_was_used_takes_no_empty_database(
    settings: Settings, tmp_path: Path
) -> None:
    url = "postgresql://mlp:hunter2@db.example.org/mlp"
    components = [{"name": "service", "argv": [], "env": {"MLP_DATABASE_URL": url, "MLP_EXECUTOR": "local"}}]
    plan.plan_file(settings).write_text(json.dumps({"id": "1", "components": components}))
    (settings.home / bindings.FILE).unlink()
    (settings.homes_dir / "ann").mkdir()
    settings.service_db_file.unlink()
    told = refused(settings)
    assert "MLP_DATABASE_URL=postgresql://mlp@db.example.org/mlp" in told
    assert plan.as_started(settings, {}).database_url == url


def test_an_older_copy_that_was_put_back_is_the_same_database(settings: Settings, made: Path) -> None:
    shutil.copy(made / "mlp.sqlite", settings.service_db_file)
    belonging.check(settings)


def test_a_copy_of_the_directory_has_separate_databases(settings: Settings, tmp_path: Path) -> None:
    shutil.copytree(settings.home, tmp_path / "copy", symlinks=True)
    copy = load(tmp_path / "copy")
    copies.settle(copy)
    belonging.check(copy)
    bind(copy)
    ids = [bindings.read(one).databases["platform"].id for one in (settings, copy)]
    assert len(set(ids)) == 2
    belonging.check(settings)
    url = f"sqlite:///{copy.service_db_file}"
    assert f"would be {url}, but " in refused(load(settings.home, MLP_DATABASE_URL=url))


def test_a_restored_directory_knows_its_databases(settings: Settings, tmp_path: Path) -> None:
    shutil.copytree(settings.db_dir, tmp_path / "restored" / "db")
    restored = load(tmp_path / "restored")
    belonging.adopt(restored)
    state_dir.prepare(restored)
    copies.settle(restored)
    belonging.check(restored)
    bind(restored)


@pytest.mark.parametrize("text", ["", "{half", "[1]", "null", '{"databases": []}', "\0\0\0"])
def test_unreadable_bindings_are_rewritten_from_the_databases(settings: Settings, text: str) -> None:
    before = (settings.home / bindings.FILE).read_text()
    (settings.home / bindings.FILE).write_text(text)
    belonging.check(settings)
    bind(settings)
    assert (settings.home / bindings.FILE).read_text() == before


def test_a_shell_that_lacks_the_executor_does_not_run_jobs_twice(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "kube config"
    bindings.write(settings, bindings.Bindings(executor="kubernetes", kubeconfig=str(config)))
    told = refused(settings)
    assert "MLP_EXECUTOR=kubernetes KUBECONFIG='" in told
    assert "--new-executor" in told
    with Database(settings.service_db_url).begin():
        pass
    belonging.check(settings, [belonging.NEW_EXECUTOR])
    with closing(sqlite3.connect(settings.service_db_file)) as connection:
        columns = [row[1:4] for row in connection.execute("PRAGMA table_info(job)")]
        needed = {name: "running" if name == "phase" else 0 for name, _, required in columns if required}
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(
            f"INSERT INTO job ({', '.join(needed)}) VALUES ({', '.join('?' * len(needed))})",  # noqa: S608
            tuple(needed.values()),
        )
        connection.commit()
    assert "1 jobs of" in refused(settings, belonging.NEW_EXECUTOR)


def test_another_cluster_is_refused_where_its_pods_would_run_twice(settings: Settings) -> None:
    bindings.write(
        settings, bindings.Bindings(executor="kubernetes", cluster="u-1", cluster_host="https://one")
    )
    belonging.check_cluster(settings, ("u-1", "https://moved"))
    belonging.check_cluster(settings, ("", "https://says-nothing"))
    with pytest.raises(CommandFailed, match="https://one"):
        belonging.check_cluster(settings, ("u-2", "https://two"))


def test_a_service_under_a_strangers_database_does_not_start(settings: Settings) -> None:
    with Database(settings.service_db_url).reading() as tx:
        row = tx.settings.get(bindings.KEY)
    bindings.check_service(settings, row)
    bindings.check_service(settings, None)
    with pytest.raises(SettingsError, match="nothing was ended"):
        bindings.check_service(settings, {**row, "id": "another"})


def give(settings: Settings, *names: str) -> list[int]:
    db = Database(settings.service_db_url)
    with db.begin() as tx:
        found = [tx.users.ensure(name, 0.0).number for name in names]
    db.close()
    return found


def test_a_number_is_not_given_twice_when_the_database_was_lost(settings: Settings, made: Path) -> None:
    assert give(settings, "ann", "bob", "cat") == [1, 2, 3]
    belonging.keep_numbers(settings)
    shutil.copy(made / "mlp.sqlite", settings.service_db_file)
    belonging.keep_numbers(settings)
    assert give(settings, "dan") == [4]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_the_owners_of_homes_and_jobs_count_where_nothing_was_written_down(settings: Settings) -> None:
    base = settings.uid_base
    for path, owner in ((settings.homes_dir / "ann", base + 5), (settings.jobs_dir / "bob" / "j", base + 7)):
        path.mkdir(parents=True)
        os.chown(path, owner, owner)
    assert uids.highest_number(settings) == 7
    belonging.keep_numbers(settings)
    assert give(settings, "eve") == [8]
    assert bindings.read(settings).numbers == 7


def test_a_new_database_finds_no_directories_of_jobs_of_before(settings: Settings) -> None:
    (settings.jobs_dir / "ann" / "h-0").mkdir(parents=True)
    assert belonging.leave_jobs_of_before(settings) is None
    settings.service_db_file.unlink()
    told = belonging.leave_jobs_of_before(settings)
    (kept,) = settings.data_dir.glob("jobs-before-*")
    assert str(kept) in str(told)
    assert (kept / "ann" / "h-0").is_dir()
    assert list(settings.jobs_dir.iterdir()) == []


def test_a_torn_identity_is_replaced_and_the_databases_follow(settings: Settings) -> None:
    (settings.home / identity.FILE).write_bytes(bytes(89))
    copies.settle(settings)
    belonging.check(settings)
    bind(settings)
    with Database(settings.service_db_url).reading() as tx:
        assert tx.settings.get(bindings.KEY)["home"] == identity.own(settings)
