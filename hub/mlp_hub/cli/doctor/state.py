"""Doctor's checks of the state directory: databases, secrets, and files that could not be read."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from mlp_hub import durable
from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import belonging, database, identity, state_dir
from mlp_hub.settings import Settings
from mlp_language.render import say

MOST_NAMES = 5


def databases(settings: Settings) -> list[Check]:
    """Tell whether both databases can be read, are whole and are those of this state directory."""
    try:
        todo = database.changes(settings)
        if identity.own(settings) is not None:  # a copy is settled by its first `up`
            belonging.check(settings)
    except CommandFailed as failure:
        # which of them it is; where each is well by itself, it is what they belong to
        found = [each for name in ("platform", "hub") for each in _of(settings, name, [])]
        bad = [check for check in found if check.status == FAIL]
        return bad or [Check("database", FAIL, failure.msg, failure.remedy)]
    return [each for name in ("platform", "hub") for each in _of(settings, name, todo)]


def _of(settings: Settings, name: str, todo: list[str]) -> list[Check]:
    look = database.platform if name == "platform" else database.hub
    try:
        tables = look(settings)
    except CommandFailed as failure:
        return [Check("database", FAIL, failure.msg, failure.remedy)]
    what = database.name_of(name)
    if tables.revision is None:
        return [Check("database", OK, say("{what}: none yet; `mlp-hub up` makes it", what=what))]
    url = database.urls(settings)[name]
    kind = url.partition(":")[0]
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        if (whole := _damage(path)) is not None:
            remedy = say("Restore your last backup.")
            return [
                Check(
                    "database", FAIL, say("{path} is damaged: {whole}", path=str(path), whole=whole), remedy
                )
            ]
        kind = say("SQLite, {st_size} MiB, whole", st_size=f"{path.stat().st_size / 2**20:.1f}")
    mine = [step for step in todo if step.startswith(what)]
    if mine:
        text = say("{what}: {kind}; {todo}", what=what, kind=kind, todo="; ".join(mine))
        return [Check("database", WARN, text, say("`mlp-hub up` does it."))]
    return [
        Check(
            "database",
            OK,
            say("{what}: {kind}, revision {revision}", what=what, kind=kind, revision=tables.revision),
        )
    ]


def _damage(path: Path) -> str | None:
    """Return what is wrong with an SQLite file; None where it is whole."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
            whole = str(connection.execute("PRAGMA quick_check").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return None if whole == "ok" else whole


def files(settings: Settings) -> list[Check]:
    """Tell which files could not be read, which cannot be read now, and which secrets others could read."""
    if not settings.home.exists():
        return []
    found = []
    if aside := durable.of_aside(settings.home):
        text = say(
            "{names} could not be read, and {count} copies were set aside in {place}: jobs that they belonged to "
            "count as lost, and were tried again or failed",
            names=_names(aside),
            count=len(aside),
            place=str(settings.home / durable.ASIDE),
        )
        found.append(
            Check(
                "files",
                WARN,
                text,
                say("Remove {place} after you have read this.", place=str(settings.home / durable.ASIDE)),
            )
        )
    if torn := _torn(settings):
        text = say("{names} cannot be read", names=_names(torn))
        found.append(Check("files", WARN, text, say("`mlp-hub up` sets them aside and continues.")))
    for path, what in state_dir.unusable(settings):
        text = say("the secret {path} holds {what}", path=str(path), what=what)
        found.append(Check("files", FAIL, text, say("`mlp-hub up` makes it again and prints the effects.")))
    if others := _others(settings):
        text = say("{names} belong to another system user, who can read them", names=_names(others))
        found.append(Check("files", FAIL, text, say("`mlp-hub up` makes them the hub's own again.")))
    return found or [Check("files", OK, say("all files of the state directory can be read"))]


def _torn(settings: Settings) -> list[str]:
    """List files that cannot be read: of sandboxes, and what says which directory this is."""
    from mlp_hub import sandbox  # noqa: PLC0415 - only for this check

    run_dirs = [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]
    torn = [state.unreadable for run_dir in run_dirs if (state := sandbox.inspect(str(run_dir))).unreadable]
    for path in (settings.home / identity.FILE, settings.home / "bindings.json"):
        try:
            durable.read_object(path)
        except durable.UnreadableFile:
            torn.append(str(path))
        except OSError:
            continue
    return [os.path.relpath(path, settings.home) for path in torn]


def _others(settings: Settings) -> list[str]:
    """List what only the hub may read and another system user has."""
    places = [settings.secrets_dir, settings.db_dir, settings.private_dir]
    found = [path for path in places if path.is_dir()]
    found += [path for path in settings.secrets_dir.glob("*") if path.is_file()]
    mine = settings.home.stat().st_uid
    return [os.path.relpath(path, settings.home) for path in found if path.stat().st_uid != mine]


def _names(paths: list[str]) -> str:
    more = say(" and {n} more", n=len(paths) - MOST_NAMES) if len(paths) > MOST_NAMES else ""
    return ", ".join(paths[:MOST_NAMES]) + more
