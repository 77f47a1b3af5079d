"""What a column cannot hold is its sender's fault, and not an outage of the database: nobody asks again, and others go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import text

from mlp_hub.api.edge.answers import of_error
from mlp_hub.store import Database
from mlp_hub.store.errors import ValueRefused
from mlp_hub.store.tx import Tx
from mlp_language.render import ENGLISH


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)  # SQLite holds both
@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE tenant SET description = :value", "a\0b"),
        ("UPDATE tenant SET cpu = CAST(:value AS BIGINT)", "9223372036854775808"),
    ],
)
async def test_a_value_that_postgresql_cannot_hold_is_refused_and_the_writer_continues(
    db: Database, statement: str, value: str
) -> None:
    def wrong(tx: Tx) -> None:
        tx.tenants._c.execute(text(statement), {"value": value})

    refused, done = await asyncio.gather(
        db.write(wrong), db.write(lambda tx: tx.users.ensure("ann", 1.0)), return_exceptions=True
    )
    assert isinstance(refused, ValueRefused)
    assert not isinstance(done, BaseException)
    status, body, _ = of_error(refused, "PUT tenants_update", ENGLISH)
    assert (status, body["reason"]) == (403, "Invalid")
    assert "PostgreSQL" not in body["msg"], "the words of a database are for the log"
    with pytest.raises(ValueRefused):
        await db.read(lambda tx: tx.tenants._c.execute(text("SELECT :value"), {"value": "a\0"}).all())


async def test_a_description_with_a_nul_is_kept_without_it(db: Database) -> None:
    def described(tx: Tx) -> str:
        tenant = tx.tenants.get("default")
        assert tenant is not None
        tx.tenants.update(replace(tenant, description="a\0b"))
        after = tx.tenants.get("default")
        assert after is not None
        return after.description

    assert await db.write(described) == "a\ufffdb"
