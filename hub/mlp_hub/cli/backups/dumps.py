"""Copies of one database while it is in use: SQLite's by its own online backup, PostgreSQL's by pg_dump."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.engine import URL

from mlp_hub.cli.errors import CommandFailed, MachineFailure
from mlp_hub.store import engine as engines
from mlp_language.render import say

PAGES_A_TURN = 4096  # of 4 KiB: others may write in between


def kind(url: str) -> str:
    """Return `sqlite` or `postgresql`."""
    return engines.parse(url).get_backend_name()


def check_tools(url: str) -> None:
    """Raise MachineFailure where this machine lacks what copies such a database, and puts it back."""
    if kind(url) != "sqlite":
        _check_program("pg_dump")
        _check_program("pg_restore")


def dump(url: str, to: Path) -> None:
    """Write a copy of a database as it is at one moment; raise Failure where that cannot be."""
    parsed = engines.parse(url)
    if engines.is_sqlite(parsed):
        with _opened(Path(str(parsed.database)), exists=True) as source, _opened(to) as copy:
            source.backup(copy, pages=PAGES_A_TURN)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, whoever opens it
        check(to)
    else:
        _run("pg_dump", parsed, "--format=custom", "--no-owner", "--no-privileges", f"--file={to}")
    to.chmod(0o600)


def load(dumped: Path, url: str) -> None:
    """Make a database what a copy of it holds; it is as before where that fails."""
    parsed = engines.parse(url)
    if engines.is_sqlite(parsed):
        check(dumped)
        target = Path(str(parsed.database))
        target.parent.mkdir(parents=True, exist_ok=True)
        with _opened(dumped, exists=True) as source, _opened(target) as copy:
            source.backup(copy)
        target.chmod(0o600)
    else:
        flags = (
            "--clean",
            "--if-exists",
            "--no-owner",
            "--no-privileges",
            "--single-transaction",
            "--exit-on-error",
        )
        _run("pg_restore", parsed, *flags, str(dumped))


def check(path: Path) -> None:
    """Look through an SQLite file; raise Failure where it is damaged."""
    try:
        with _opened(path, exists=True) as connection:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            problems += [
                f"a row of {row[0]} refers to none" for row in connection.execute("PRAGMA foreign_key_check")
            ]
    except sqlite3.DatabaseError as error:
        problems = [str(error)]
    if problems:
        raise CommandFailed(
            say("{path} is damaged: {problems}.", path=str(path), problems=problems[0]),
            say("`mlp-hub doctor` checks the database."),
        )


@contextlib.contextmanager
def _opened(path: Path, *, exists: bool = False) -> Iterator[sqlite3.Connection]:
    if exists and not path.exists():
        raise CommandFailed(
            say("The database {path} does not exist.", path=str(path)), say("`mlp-hub up` makes it.")
        )
    try:
        # a source is opened for writing too: what a killed process left half written is rolled back by who opens it next
        connection = sqlite3.connect(f"file:{path}?mode={'rw' if exists else 'rwc'}", uri=True, timeout=15)
    except sqlite3.Error as error:
        raise CommandFailed(
            say("The database {path} cannot be opened: {error}.", path=str(path), error=str(error))
        ) from error
    try:
        yield connection
    except sqlite3.OperationalError as error:
        raise CommandFailed(
            say("The database {path} cannot be copied: {error}.", path=str(path), error=str(error))
        ) from error
    finally:
        connection.close()


def _run(program: str, url: URL, *arguments: str) -> None:
    _check_program(program)
    env = dict(os.environ)
    if url.password:
        env["PGPASSWORD"] = str(url.password)  # not on a command line, which others can read
    plain = url.set(drivername="postgresql", password=None)
    command = [
        program,
        f"--dbname={plain.render_as_string(hide_password=False)}",
        "--no-password",
        *arguments,
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no word"]
        raise CommandFailed(
            say("{program} failed: {said}.", program=program, said=said[0]),
            say("It must be of the server's version or newer, and the server must answer."),
            details="\n".join(said[1:]),
        )


def _check_program(program: str) -> None:
    if shutil.which(program) is None:
        raise MachineFailure(
            say("{program} is missing; it copies PostgreSQL's databases.", program=program),
            say("As root: apt-get install postgresql-client"),
        )
