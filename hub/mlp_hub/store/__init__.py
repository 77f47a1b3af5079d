"""Durable state: SQLAlchemy Core tables, repositories, migrations.

    db = Database(url, guard=True)
    job = await db.write(lambda tx: tx.jobs.update(job))     one transaction, durable when it returns
    jobs = await db.read(lambda tx: tx.jobs.active(SYSTEM))  one unchanging state
    with db.begin() as tx: ...                               the same, synchronous, for commands and tests

`migrate.upgrade(url)` makes and updates the tables; only it needs Alembic.
"""

from mlp_hub.store.database import Database
from mlp_hub.store.errors import StoreInUse, StoreUnavailable, WrongSchema
from mlp_hub.store.repos.jobs.jobs import Stale
from mlp_hub.store.tx import Tx

__all__ = ["Database", "Stale", "StoreInUse", "StoreUnavailable", "Tx", "WrongSchema"]
