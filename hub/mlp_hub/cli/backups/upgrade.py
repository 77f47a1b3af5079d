"""Upgrade of databases of an earlier version to this one, with a way back.

`mlp-hub up` and `mlp-hub upgrade` do it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from mlp_hub.cli.backups import dumps
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import database
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from mlp_language.render import say

MOST_WAITED_S = 20.0
"""Seconds that the lease of a service is waited out; it is shorter."""


def bring(settings: Settings) -> str:
    """Stop the hub, save copies of both databases, upgrade them to this version, and return a report.

    If a step fails, both are as they were. If this process is killed, each is of one version or the
    other, and the next upgrade continues. Jobs and notebook servers continue meanwhile.
    """
    looked = {"platform": database.platform(settings), "hub": database.hub(settings)}
    there = {name: url for name, url in database.urls(settings).items() if looked[name].revision is not None}
    for url in there.values():
        dumps.check_tools(url)
    if "platform" in there:
        _refuse_beside_another(settings)
    processes.stop_all(settings)  # an old service must not meet the new tables
    try:
        saved = _save(settings, there)
    except (CommandFailed, OSError) as error:
        raise CommandFailed(
            say(
                "The databases could not be copied, and nothing was changed: {why}",
                why=_words(error),
            ),
            say("The hub is stopped, jobs continue. `mlp-hub up` tries again."),
        ) from error
    hub = _HubDatabase(settings.hub_db_url, saved) if "hub" in there else None
    try:
        if hub is not None:
            hub.bring()
        # last: it is one transaction, so that nothing of it has to be put back
        migrate.upgrade(settings.service_db_url)
    except BaseException as error:
        trouble = hub.put_back() if hub is not None else None
        if trouble is None and not isinstance(error, Exception):
            _say(say("The upgrade was interrupted, and the databases are as they were."))
            _say(say("Copies of both databases before the change are in {saved}.", saved=str(saved)))
            raise
        failed = say("The upgrade failed, and the databases are as they were: {why}", why=_words(error))
        if trouble is not None:
            failed = say(
                "The upgrade failed, and JupyterHub's database could not be restored ({trouble}): {why}",
                trouble=trouble,
                why=_words(error),
            )
        raise CommandFailed(
            failed,
            say("Start the version that ran before; the hub is stopped, jobs continue."),
            say("Copies of both databases before the change are in {saved}.", saved=str(saved)),
        ) from error
    return f"of this version now; as before they lie in {saved}" if there else "made"


def _words(error: BaseException) -> str:
    return error.msg if isinstance(error, CommandFailed) else f"{type(error).__name__}: {error}"


def _refuse_beside_another(settings: Settings) -> None:
    """Refuse while a service that is not this hub's decides about the database; one that has died is waited for."""
    found = database.lease(settings)
    service = processes.find(settings, "service")
    if found is None or (service and found.holder.startswith(f"{socket.gethostname()[:200]}/{service.pid}/")):
        return
    time.sleep(min(max(found.expires_at - time.time() + 0.1, 0), MOST_WAITED_S))
    again = database.lease(settings)
    if again is not None and again.expires_at > found.expires_at:
        raise CommandFailed(
            say(
                "Another service holds the lease of this database: {holder}. Nothing was stopped or changed.",
                holder=again.holder,
            ),
            say("Stop that hub first; it must not meet the tables of this version."),
        )


class _HubDatabase:
    """JupyterHub's database, whose steps are each stored for themselves; `saved` has its copy."""

    def __init__(self, url: str, saved: Path) -> None:
        self._url = url
        self._copy = saved / "hub"
        self._changed = False

    def bring(self) -> None:
        """Bring it to this version: SQLite's beside it, so that it is changed at once or not at all."""
        if dumps.kind(self._url) != "sqlite":
            self._changed = True
            _migrate(self._url)
            return
        with tempfile.TemporaryDirectory(dir=self._copy.parent) as place:
            beside = Path(place, "hub")
            shutil.copyfile(self._copy, beside)
            _migrate(f"sqlite:///{beside}")
            self._changed = True
            dumps.load(beside, self._url)

    def put_back(self) -> str | None:
        """Make it what it was, where it was changed; return why that cannot be."""
        if self._changed:
            try:
                dumps.load(self._copy, self._url)
            except (CommandFailed, OSError) as error:
                return _words(error)
        return None


def _migrate(url: str) -> None:
    """Do what `jupyterhub upgrade-db` does, which finds no Alembic where the environment is not on PATH."""
    from jupyterhub import dbutil  # noqa: PLC0415 - half a second, which the first `up` does not need

    with tempfile.TemporaryDirectory() as place:
        ini = Path(place, "alembic.ini")
        dbutil.write_alembic_ini(ini, url)
        command = [sys.executable, "-m", "alembic", "-c", str(ini), "upgrade", "head"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "Error" in line] or [done.stderr.strip()]
        raise CommandFailed(say("Alembic, on JupyterHub's database: {said}", said=said[-1]))


def _save(settings: Settings, there: Mapping[str, str]) -> Path:
    """Copy the databases beside them; the copies stay until somebody removes them."""
    place = settings.db_dir / f"before-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    if there:
        place.mkdir(mode=0o700)
    for name, url in there.items():
        dumps.dump(url, place / name)
    return place


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
