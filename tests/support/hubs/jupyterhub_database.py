"""JupyterHub's database, as a test needs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from jupyterhub import orm

from mlp_hub.hub_integration.providers.records import used_tokens


@contextlib.contextmanager
def memory_of_logins() -> Iterator[Any]:
    """Give a session of a database in memory, in which the logins are remembered that were taken."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    used_tokens.ensure_table(session)
    yield session
    session.close()
