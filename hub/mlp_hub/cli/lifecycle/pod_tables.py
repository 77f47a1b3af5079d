"""Upgrades of the tables where all parts are pods: services wait for them, and the hub's pod makes them in time.

Services of two versions are there at once, because a new one must be ready before an old one ends. If the new tables only add to
the old ones, they are made at once, and the services follow each other without a pause. If not, the services of the new version are ready
but do nothing, so that the cluster ends those of the old one; then the tables are made, under the lease that nobody else has.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import database
from mlp_hub.cli.state import plan as plans
from mlp_hub.probes import answering
from mlp_hub.settings import Settings
from mlp_language.render import say

LOOK_S = 1.0
"""Tuning: seconds between two looks at a database."""
POLL_S = 0.2
"""Tuning: seconds between two looks at the lease: sooner than a standby of the version before looks."""


def wait_for_tables(settings: Settings) -> None:
    """Return once this version works with the platform's tables; raise `CommandFailed` where it never will."""
    said = ""
    path = f"{settings.base}{plans.SERVICE_HEALTH}"
    with answering(settings.listens[1], path) as ready:
        while True:
            try:
                found = database.platform(settings)
            except database.DatabaseSilent as silent:
                now = silent.text()
            else:
                if found.fits:
                    return
                now = _why_not(found)
                # the pods of the version before are ended once this one is ready
                ready(found.revision is not None and not database.adds_only(found))
            if now != said:  # once, not each second
                _say(now)
            said = now
            time.sleep(LOOK_S)


def _why_not(found: database.Tables) -> str:
    """Say what is waited for; raise `CommandFailed` where nothing would help."""
    if found.is_later:
        raise CommandFailed(
            say(
                "{what} is of revision {revision}, newer than this version's {newest}.",
                what=found.what,
                revision=str(found.revision),
                newest=found.newest,
            ),
            say("Install the version that made it."),
        )
    if found.revision is None or database.adds_only(found):
        return say("The hub's pod brings the databases to this version; waiting for it")
    return say(
        "The services of the version before end; then the hub's pod brings the databases to this version"
    )


def bring(settings: Settings) -> None:
    """Bring the platform's database to this version; raise `CommandFailed` where it cannot be, or JupyterHub's is of a later version.

    JupyterHub brings its own, once the one before has ended (`hub_integration.turn`).
    """
    for line in database.changes(settings):
        _say(line)
    platform = database.platform(settings)
    try:
        if not platform.fits:
            _bring_platform(settings, platform)
    except CommandFailed:
        raise
    except Exception as error:
        raise CommandFailed(
            say("The upgrade of the databases failed: {why}", why=f"{type(error).__name__}: {error}"),
            say("Start the version that ran before; or try again."),
        ) from error


def _bring_platform(settings: Settings, found: database.Tables) -> None:
    from mlp_hub.store import migrate  # noqa: PLC0415 - a second of imports, once a version

    url = settings.service_db_url
    if found.revision is None:
        migrate.upgrade(url)
    elif database.adds_only(found):
        _say(say("The new tables only add to the old ones: services of the version before work on meanwhile"))
        migrate.upgrade_beside(url)
    else:
        _say(say("The new tables are not for services of the version before: waiting until those have ended"))
        asyncio.run(_leading(settings, lambda: migrate.upgrade(url)))


async def _leading(settings: Settings, work: Callable[[], object]) -> None:
    """Do work in a thread once no service leads, and let none lead meanwhile."""
    from mlp_hub.service.config import RunPolicy  # noqa: PLC0415 - as in `_bring_platform`
    from mlp_hub.service.state.leadership import Leadership, since_boot  # noqa: PLC0415
    from mlp_hub.store import Database  # noqa: PLC0415

    db = Database(settings.service_db_url)
    lease = Leadership(
        db,
        time.time,
        length_s=RunPolicy().lease_s,
        poll_s=POLL_S,
        alone=False,
        steady=since_boot,
        of_tables=lambda _: None,
    )
    try:
        await lease.acquire_lease()
        await asyncio.to_thread(work)
        await lease.give_up()
    finally:
        await lease.forget()
        db.close()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
