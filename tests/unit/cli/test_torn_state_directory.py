"""Whatever a power cut left of one file of the state directory, each command goes on."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mlp_hub import durable, sandbox
from mlp_hub.cli.doctor import state as checks_state
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.lifecycle import status
from mlp_hub.cli.lifecycle.down import _lives, _run_dirs
from mlp_hub.cli.state import belonging, copies, database, identity, plan, state_dir, uids
from mlp_hub.cli.supervisor import processes
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.isolation import KeyUnknownError, RootEntry, TenantRoots, roots_of
from mlp_hub.sandbox.shim import files
from mlp_hub.settings import Settings
from mlp_hub.store import migrate

TEARS = {
    "empty": lambda content: b"",
    "torn": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "foreign": lambda content: b"[1]",
}
OF_ONE_TENANT = (
    "isolation/places/red.json",
    "isolation/keys/red.json",
    "secrets/isolation_key",
    "isolation/id",
)


def run_directory(path: Path) -> None:
    path.mkdir(parents=True)
    at = str(path)
    files.write_json(at, "attempt.json", {"placement": ["n"], "roles": ["worker"], "gpus": {}})
    files.write_json(at, "spec.json", {"boot": "earlier", "host": {}, "spec": {"listen": None}})
    files.write_json(at, "claim", {"pid": 1, "start": 1, "boot": "earlier"})
    files.write_json(at, "state.json", {"child": 1, "child_start": 1, "started_at": 1.0, "ranks": []})
    files.write_json(at, "stop.json", {"deadline": 1.0})
    files.write_json(at, "limit.json", {"time_limit": 5.0})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with a file of each kind, as it is while nothing of it runs."""
    home = tmp_path_factory.mktemp("state") / "home"
    settings = Settings.load({"MLP_HOME": str(home)})
    state_dir.prepare(settings)
    uids.claim(settings)
    copies.settle(settings)
    migrate.upgrade(settings.service_db_url)
    head = database._chain(database._versions("jupyterhub", "alembic"))[1]
    with closing(sqlite3.connect(settings.db_dir / "jupyterhub.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (head,))
    for name in ("platform", "hub"):
        belonging.bind(settings, name)
    belonging.bind_executor(settings)
    belonging.keep_numbers(settings)
    (settings.homes_dir / "ann").mkdir()
    if os.getuid() == 0:
        os.chown(settings.homes_dir / "ann", settings.uid_base + 1, -1)
    plan.write(settings, plan.make(settings, {}))
    for name in ("supervisor", "hub", "service"):
        note = {"pid": 1, "start": 1, "boot": "earlier", "digest": ""}
        (settings.private_dir / f"{name}.pid").write_text(json.dumps(note))
    deaths = [{"component": "hub", "at": 1.0, "why": "ended"}]
    seen = {"plan": "1", "components": {"hub": {"restarts": 1, "last_exit": None}}, "deaths": deaths}
    (settings.private_dir / "state.json").write_text(json.dumps(seen))
    run_directory(settings.jobs_run_dir / "job.1")
    run_directory(settings.servers_run_dir / "ann" / "server")
    roots = roots_of(settings)
    roots.enter("red", RootEntry(held=True))
    assert roots.mounts is not None
    roots.mounts.keys.ensure("red")
    roots._mark("red")
    return home


def make_it_the_original(settings: Settings) -> None:
    """Have a copy for the test count as the directory that was written."""
    place, path = settings.home.stat(), settings.home / identity.FILE
    about = {"device": place.st_dev, "inode": place.st_ino, "path": str(settings.home.resolve())}
    path.write_text(json.dumps({**json.loads(path.read_text()), **about}))


def kinds(home: Path) -> list[str]:
    """List the files that are read; those of the databases are SQLite's."""
    found = [path for path in home.rglob("*") if path.is_file() and path.suffix not in (".lock", ".reserve")]
    return sorted(
        str(path.relative_to(home))
        for path in found
        if not path.name.startswith("mlp.sqlite") and path.suffix != ".sqlite"
    )


def parts_of_all_commands(settings: Settings) -> None:
    """Do what `up`, `status`, `down` and `doctor` do with the files of a state directory."""
    processes.state(settings)
    for name in processes.names(settings):
        processes.find(settings, name)
    status.collect(settings)
    for run_dir in _run_dirs(settings):
        assert not _lives(run_dir)
        sandbox.stop(str(run_dir), 0.0)
    checks_state.files(settings)
    checks_state.databases(settings)
    plan.as_started(settings, {})
    processes.stop_all(settings)
    state_dir.prepare(settings)
    uids.claim(settings)
    copies.settle(settings)
    belonging.check(settings)
    belonging.bind(settings, "platform")
    belonging.keep_numbers(settings)
    belonging.bind_executor(settings)
    plan.write(settings, plan.make(settings, {}))
    assert plan.read(settings) is not None
    for name in ("cookie_secret", "operator_token", "crypt_key"):
        assert len(settings.secret(name)) >= 32
    roots_of(settings).kept()


@pytest.mark.parametrize("how", TEARS)
def test_each_file_may_be_torn_by_itself(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(uids, "REGISTRY", tmp_path / "uids.json")
    names = kinds(whole)
    assert len(names) > 25
    for name in names:
        home = tmp_path / name.replace("/", "+")
        shutil.copytree(whole, home, symlinks=True)
        settings = Settings.load({"MLP_HOME": str(home)})
        make_it_the_original(settings)
        base = settings.uid_base
        (home / name).write_bytes(TEARS[how]((home / name).read_bytes()))
        parts_of_all_commands(settings)
        assert settings.uid_base == base, name
        shutil.rmtree(home)


def refusals(roots: TenantRoots, tenant: str) -> list[str]:
    """Return what is said to whoever needs one of the tenant's files."""
    assert roots.mounts is not None
    told = []
    for ask in (roots.entry, roots.mounts.keys.keys, roots._mark):
        try:
            ask(tenant)
        except (OSError, KeyUnknownError) as error:
            told.append(str(error))
        except OutOfReach as error:
            told.append(str(error.message))
    return told


@pytest.mark.parametrize("how", TEARS)
def test_a_torn_file_about_one_tenant_stops_only_that_tenant(whole: Path, tmp_path: Path, how: str) -> None:
    for name in OF_ONE_TENANT:
        home = tmp_path / name.replace("/", "+")
        shutil.copytree(whole, home, symlinks=True)
        settings = Settings.load({"MLP_HOME": str(home)})
        (home / name).write_bytes(TEARS[how]((home / name).read_bytes()))
        assert roots_of(settings).entry("blue") == RootEntry()
        told = refusals(roots_of(settings), "red")
        if how != "torn" or name not in (
            "isolation/id",
            "secrets/isolation_key",
        ):  # half a number is a number
            assert any(name.rpartition("/")[2] in each for each in told), (name, told)


def test_invalid_secrets_are_replaced_and_named(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    assert state_dir.prepare(settings) == []
    before = settings.secret("proxy_token")
    for name in ("proxy_token", "crypt_key", "secrets_key"):
        settings.secret_file(name).write_bytes(b"")
    assert {check.status for check in checks_state.files(settings)} == {"fail"}
    told = state_dir.prepare(settings)
    assert [
        str(settings.secret_file(name)) in each
        for name, each in zip(("crypt_key", "secrets_key", "proxy_token"), told, strict=True)
    ] == [True] * 3
    assert "held nothing and was made again" in told[0]
    assert settings.secret("proxy_token") not in ("", before)
    assert durable.of_aside(settings.home) == [
        "secrets/crypt_key",
        "secrets/proxy_token",
        "secrets/secrets_key",
    ]
    assert state_dir.prepare(settings) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_secrets_of_another_system_user_are_the_hubs_own_again(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    state_dir.prepare(settings)
    for path in (settings.secrets_dir, settings.secret_file("crypt_key")):
        os.chown(path, 12345, -1)
    (found,) = checks_state.files(settings)
    assert (found.status, "secrets, secrets/crypt_key" in found.found) == ("fail", True)
    told = state_dir.prepare(settings)
    assert len(told) == 2
    assert "belonged to the system user 12345" in told[0]
    assert settings.secret_file("crypt_key").stat().st_uid == 0
    assert state_dir.prepare(settings) == []


@pytest.mark.parametrize("file", ["mlp.sqlite", "jupyterhub.sqlite"])
def test_the_doctor_looks_at_both_databases(whole: Path, tmp_path: Path, file: str) -> None:
    shutil.copytree(whole, tmp_path / "h", symlinks=True)
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    copies.settle(settings)
    assert {check.status for check in checks_state.databases(settings)} == {"ok"}
    path = settings.db_dir / file
    path.write_bytes(b"x" * 4096 + path.read_bytes()[4096:])
    found = [check for check in checks_state.databases(settings) if check.status == "fail"]
    assert found
    assert found[0].remedy


def test_a_refused_downgrade_says_where_the_copies_lie(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "h", symlinks=True)
    settings = Settings.load({"MLP_HOME": str(tmp_path / "h")})
    with closing(sqlite3.connect(settings.service_db_file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE setting SET value = '9999' WHERE key = 'tables.works_from'")
    with pytest.raises(CommandFailed) as caught:
        database.changes(settings)
    assert f"{settings.db_dir}/before-*" in caught.value.remedy
