"""One JupyterHub at a time, where it is a pod: two would start the same servers.

The next one is loaded, and ready for its cluster, before the last one ends. It waits for the lock that the last one holds in
JupyterHub's database, so that nobody waits for pods and imports meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import Any

from jupyterhub.app import JupyterHub
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from mlp_hub.probes import answering
from mlp_hub.settings import Settings
from mlp_hub.store import bounds, engine

log = logging.getLogger("mlp_hub.hub")
HUB_LOCK = 0x4D4C5048_0004
"""Contract: PostgreSQL advisory lock that the running JupyterHub holds."""
LOOK_S = 0.1
"""Tuning: seconds between two tries to take the lock: less waiting, or more questions."""
KEEP_S = 5.0
"""Tuning: seconds between two looks whether the lock is held: how long it may be lost after a restart of the database."""
EASE_S = 2.0
"""Tuning: seconds in which a hub that ends closes connections by its answers, and its cluster sends new ones to the next."""
LAST_S = 3.0
"""Tuning: seconds for which answers that have begun are waited for."""
_held: list[Connection] = []


def install(settings: Settings) -> None:
    """Have a hub that is a pod answer what it was asked before it ends; JupyterHub itself cuts it off."""
    if not settings.kubernetes_pod:
        return
    end = JupyterHub.shutdown_cancel_tasks

    async def eased(app: Any, sig: Any = None) -> None:
        server = app.http_server
        if server is not None:
            server.conn_params.no_keep_alive = True
            await asyncio.sleep(EASE_S)
            server.stop()
            until = time.monotonic() + LAST_S
            while server._connections and time.monotonic() < until:  # noqa: SLF001, ASYNC110 - it tells nobody
                await asyncio.sleep(LOOK_S)
        await end(app, sig)

    JupyterHub.shutdown_cancel_tasks = eased


def take(settings: Settings) -> None:
    """Return once no other JupyterHub works on this database; this process holds its lock until it ends."""
    url = engine.parse(settings.hub_db_url)
    if not settings.kubernetes_pod or engine.is_sqlite(url):
        return
    sys.argv.append("--upgrade-db")  # not before: its tables were another's until now
    with answering(settings.hub_listens, f"{settings.base}/hub/api/") as ready:
        told = False
        while not (mine := _take(url)):
            ready(mine is False)  # so that the cluster ends the other one
            if mine is False and not told:
                log.warning("Another JupyterHub runs; waiting for its end")
                told = True
            time.sleep(LOOK_S)
    threading.Thread(target=_keep, args=(url,), name="mlp-hub-turn", daemon=True).start()


def _keep(url: URL) -> None:
    """Take the lock again after a restart of the database; a lock that is held stays."""
    while True:
        time.sleep(KEEP_S)
        if not _take(url):
            log.warning("This JupyterHub runs without its lock: the next one would not wait for its end")


def _take(url: URL) -> bool | None:
    """Try once; return whether this process has it, None where the database does not answer."""
    try:
        if not _held:
            kept = (
                engine.plain_engine(url, bounds.HUB).connect().execution_options(isolation_level="AUTOCOMMIT")
            )
            _held.append(kept)
        return bool(_held[0].scalar(text(f"SELECT pg_try_advisory_lock({HUB_LOCK})")))
    except DBAPIError as error:
        log.warning("JupyterHub's database does not answer: %s", error.orig)
        for connection in _held:
            connection.invalidate()
            connection.close()
        _held.clear()
        return None
