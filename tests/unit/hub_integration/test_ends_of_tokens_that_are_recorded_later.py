"""Ends of tokens that the audit log could not take come into it later, and one that it never takes holds up no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jupyterhub import orm

from mlp_hub.hub_integration.accounts import unrecorded
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from support.waiting import until


@pytest.fixture
def db() -> Any:
    session = orm.new_session_factory("sqlite:///:memory:")()
    unrecorded.ensure_table(session)
    return session


def kept(db: Any) -> list[str]:
    return [row.user for row in db.query(unrecorded.UnrecordedEnd).order_by(unrecorded.UnrecordedEnd.id)]


async def test_an_entry_that_is_refused_for_ever_holds_up_no_other(db: Any) -> None:
    for user in ("ann", "odd", "bob", "odd", "eve"):
        unrecorded.keep(db, user, {"actor": "admin", "note": "", "token": user})
    db.commit()
    came: list[str] = []
    away = refusals = 2

    async def deliver(user: str, fields: dict[str, Any]) -> None:
        nonlocal away, refusals
        if away:
            away -= 1
            raise ServiceUnreachable("http://hub", "nobody listens")
        if user == "odd" and refusals > -4:
            refusals -= 1
            raise ServiceRefused("the name is odd", "Invalid")
        came.append(user)

    unrecorded.begin(db, deliver, retry_s=0.001)
    await until(lambda: _is(kept(db) == []), what="all entries")
    assert came[:3] == ["ann", "bob", "eve"]
    assert sorted(came) == ["ann", "bob", "eve", "odd", "odd"], "each once"
    await until(lambda: _is(not unrecorded._delivering))
    unrecorded.keep(db, "zoe", {"actor": "admin", "note": "", "token": "z"})
    db.commit()
    unrecorded.begin(db, deliver, retry_s=0.001)
    await until(lambda: _is(kept(db) == []), what="the next one")
    await asyncio.gather(*unrecorded._delivering)


async def _is(value: bool) -> bool:
    return value
