"""JupyterHub's database, as a test needs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from jupyterhub import orm

from mlp_hub.hub_integration.providers import taken


@contextlib.contextmanager
def memory_of_logins() -> Iterator[Any]:
    """Give a session of a database in memory, in which the logins are remembered that were taken."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    taken.ensure_table(session)
    yield session
    session.close()
