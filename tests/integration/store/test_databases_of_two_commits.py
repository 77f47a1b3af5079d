"""Databases that programs of two earlier commits wrote, as SQL: each becomes one of this version, and its rows are read.

`older/COMMIT.sql` is `sqlite3.Connection.iterdump` of a database that the commit's own `migrate.upgrade` and repositories made.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from mlp_hub.domain.jobs.job import Phase
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Member, Role, Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store import Database, migrate
from mlp_hub.store.tables import REVISION

OLDER = Path(__file__).parent / "older"
REVISIONS = {"77babfe": "0012", "38d9ce8": "0040"}
RED = Tenant(
    "red",
    Quota(cpu=8000, kinds={"a100": 2000}),
    weight=2.0,
    lending_limit=Quota(cpu=1000),
    description="the red ones",
)


@pytest.mark.parametrize("commit", REVISIONS)
def test_a_database_of_the_commit_upgrades_and_its_rows_are_read(tmp_path: Path, commit: str) -> None:
    file = tmp_path / "mlp.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript((OLDER / f"{commit}.sql").read_text())
    assert migrate.upgrade(f"sqlite:///{file}") == REVISIONS[commit]
    assert migrate.current(f"sqlite:///{file}") == REVISION
    db = Database(f"sqlite:///{file}", guard=True)
    db.open()
    with db.reading() as tx:
        assert [tenant for tenant in tx.tenants.all() if tenant.name != DEFAULT_TENANT] == [RED]
        assert tx.members.get("red", "ann") == Member("red", "ann", Role.ADMIN)
        user = tx.users.get("ann")
        assert user is not None
        assert user.number == 1
        jobs = [tx.jobs.get(SYSTEM, f"{n:026d}") for n in range(3)]
        assert [job and job.phase for job in jobs] == [Phase.QUEUED, Phase.RUNNING, Phase.FINISHED]
        assert [job and (job.spec.code, job.run) for job in jobs] == [("print(1)", 1)] * 3
        assert [step.kind for step in tx.events.since(f"{0:026d}")] == ["submitted"]
        held = tx.ledger.get("jm", f"{1:026d}")
        assert held is not None
        assert held.amount == Resources(1000, 0, 512, kinds=(("a100", 1000),))
        assert held.shares == (("n1", Resources(1000)),)
        assert tx.settings.get("a.setting") == {"x": [1, 2]}
    db.close()
