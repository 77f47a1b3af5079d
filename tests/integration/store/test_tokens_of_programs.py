"""Accounts of tenants, their tokens, and from where tokens are used, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.service.tenants.service_accounts import ServiceAccounts
from mlp_hub.store import Database
from mlp_hub.store.repos.audit import Audit

NOW = 1_800_000_000.0


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(db: Database, clock: Clock) -> ServiceAccounts:
    with db.begin() as tx:
        for name in ("red", "blue"):
            tx.tenants.insert(Tenant(name), NOW)
    return ServiceAccounts(db, clock)


async def test_tokens_are_valid_until_they_are_rotated_out_or_their_account_ends(
    db: Database, accounts: ServiceAccounts, clock: Clock
) -> None:
    one = await accounts.add("svc-night", "red", actor="rita")
    await accounts.took(one, "a1", old_until=None, actor="rita", detail={"note": "night of red"})
    await accounts.took(one, "a2", old_until=NOW + 60, actor="rita", detail={})
    assert await accounts.taken("svc-night") == {"a1": NOW + 60, "a2": None}
    assert [await accounts.stands("svc-night", token) for token in ("a1", "a2", "a3")] == [
        True,
        True,
        False,
    ]
    assert not await accounts.stands("svc-other", "a2")
    clock.now += 60
    assert [await accounts.stands("svc-night", token) for token in ("a1", "a2")] == [False, True]
    await accounts.end(await accounts.get("svc-night", "red"), actor="rita")
    assert not await accounts.stands("svc-night", "a2")
    for tenant in ("red", "blue"):
        with pytest.raises(Refused) as refused:
            await accounts.get("svc-night", tenant)
        assert refused.value.reason is Reason.NOT_FOUND
    await accounts.free("svc-night", "red")
    with pytest.raises(Refused):
        await accounts.free("svc-night", "blue")
    with db.reading() as tx:
        found = [(e.actor, e.action, e.tenant) for e in tx.audit.page(name="svc-night")[0]]
    acts = [
        "service_account.end",
        "user.token",
        "service_account.rotate",
        "user.token",
        "service_account.create",
    ]
    assert found == [("rita", act, "red") for act in acts]


async def test_a_rotation_lets_nothing_before_it_hold_longer_and_gives_nothing_back(
    db: Database, accounts: ServiceAccounts
) -> None:
    one = await accounts.add("svc-night", "red", actor="rita")
    await accounts.took(one, "a1", old_until=None, actor="rita", detail={})
    await accounts.took(one, "a2", old_until=NOW + 60, actor="rita", detail={})
    await accounts.took(one, "a3", old_until=NOW + 3600, actor="rita", detail={})
    assert await accounts.taken("svc-night") == {"a1": NOW + 60, "a2": NOW + 3600, "a3": None}
    await accounts.took(one, "a4", old_until=NOW, actor="rita", detail={})
    assert await accounts.taken("svc-night") == {"a4": None}


async def test_an_ended_account_does_not_count_as_a_name_of_its_tenant(
    db: Database, accounts: ServiceAccounts
) -> None:
    for name, tenant in (("svc-night", "red"), ("svc-day", "red"), ("svc-other", "blue")):
        one = await accounts.add(name, tenant, actor="rita")
        await accounts.took(one, f"t-{name}", old_until=None, actor="rita", detail={})
    await accounts.end(await accounts.get("svc-day", "red"), actor="rita")
    left = await db.write(lambda tx: tx.service_accounts.leave_behind("red"))
    assert [one.user for one in left] == ["svc-night"]
    assert await accounts.of_tenant("red") == []
    for name in ("svc-night", "svc-day"):
        with pytest.raises(Refused, match="is taken"):
            await accounts.free(name, "red")
        assert not await accounts.stands(name, f"t-{name}")
    assert await accounts.stands("svc-other", "t-svc-other")


async def test_a_rotation_that_cannot_be_written_down_did_not_happen(
    db: Database, accounts: ServiceAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    one = await accounts.add("svc-night", "red", actor="rita")
    await accounts.took(one, "a1", old_until=None, actor="rita", detail={})
    monkeypatch.setattr(Audit, "add", full)
    with pytest.raises(OSError, match="full"):
        await accounts.took(one, "a2", old_until=NOW, actor="rita", detail={})
    monkeypatch.undo()
    assert await accounts.taken("svc-night") == {"a1": None}
    assert await accounts.stands("svc-night", "a1")


async def test_an_account_that_left_its_tenant_is_told_to_be_made_again(
    db: Database, accounts: ServiceAccounts
) -> None:
    one = await accounts.add("svc-night", "red", actor="rita")
    await accounts.took(one, "a1", old_until=None, actor="rita", detail={})
    await accounts.check_place(one)
    await db.write(lambda tx: tx.members.remove("red", "svc-night"))
    assert not await accounts.stands("svc-night", "a1")
    with pytest.raises(Refused) as refused:
        await accounts.check_place(one)
    assert refused.value.reason is Reason.WRONG_STATE


def test_the_last_address_of_each_token_is_kept_until_it_is_swept(db: Database) -> None:
    with db.begin() as tx:
        tx.token_uses.set("a1", "ann", "10.0.0.1", NOW)
        tx.token_uses.set("a2", "ann", "10.0.0.2", NOW - 100)
        tx.token_uses.set("a1", "ann", "2001:db8::1", NOW + 5)
        tx.token_uses.set("a3", "bob", "10.0.0.3", NOW)
    with db.reading() as tx:
        assert tx.token_uses.uses_of("ann") == {"a1": ("2001:db8::1", NOW + 5), "a2": ("10.0.0.2", NOW - 100)}
        assert tx.token_uses.uses_of("ann", ["a2", "a3"]) == {"a2": ("10.0.0.2", NOW - 100)}
    with db.begin() as tx:
        assert tx.token_uses.delete_before(NOW) == 1
    with db.reading() as tx:
        assert set(tx.token_uses.uses_of("ann")) == {"a1"}
