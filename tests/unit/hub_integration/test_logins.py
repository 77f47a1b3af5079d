"""Logins beside what administrators do at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jupyterhub import orm
from nativeauthenticator.orm import UserInfo

from mlp_hub.hub_integration.accounts.authenticator import NativeAccounts
from mlp_hub.hub_integration.accounts.hashing import Hasher, TooManyAtOnce
from mlp_hub.hub_integration.accounts.refusal import AccountRefused


@pytest.fixture
def accounts() -> NativeAccounts:
    made = NativeAccounts(db=orm.new_session_factory("sqlite:///:memory:")())
    made.store_account("dave", b"hashed", authorized=False)
    return made


def log_in(accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch, meanwhile: Any) -> str | None:
    """Log in with the right password, the comparison of which takes until `meanwhile` was done."""

    async def compare(*_: Any) -> bool:
        meanwhile()
        return True

    monkeypatch.setattr(accounts.hasher, "matches", compare)
    found: str | None = asyncio.run(accounts._authenticate("dave", "right", "dave"))
    return found


def test_an_account_refused_during_the_password_check_cannot_log_in(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        accounts.db.delete(UserInfo.find(accounts.db, "dave"))
        accounts.db.commit()

    assert log_in(accounts, monkeypatch, refuse) is None


def test_an_account_approved_during_the_password_check_is_logged_in(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def approve() -> None:
        UserInfo.find(accounts.db, "dave").is_authorized = True
        accounts.db.commit()

    assert log_in(accounts, monkeypatch, approve) == "dave"


def test_an_account_that_waits_for_approval_gets_that_reason(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AccountRefused, match="waits for the approval"):
        log_in(accounts, monkeypatch, lambda: None)


def test_a_login_in_progress_with_the_old_password_fails_after_a_change(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        info = UserInfo.find(accounts.db, "dave")
        info.is_authorized = True
        info.password = b"another hash"
        accounts.db.commit()

    assert log_in(accounts, monkeypatch, change) is None


def test_a_password_change_in_progress_does_not_undo_an_administrators_reset(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    UserInfo.find(accounts.db, "dave").is_authorized = True

    async def reset_meanwhile(_: str) -> bytes:
        UserInfo.find(accounts.db, "dave").password = b"the administrator's"
        return b"the intruder's"

    monkeypatch.setattr(accounts.hasher, "hashed", reset_meanwhile)
    with pytest.raises(AccountRefused, match="changed elsewhere"):
        asyncio.run(accounts.set_password("dave", "long enough, really", instead_of=b"hashed"))
    assert UserInfo.find(accounts.db, "dave").password == b"the administrator's"


def test_a_login_that_is_turned_away_for_too_many_others_does_not_count_as_failed(
    accounts: NativeAccounts,
) -> None:
    accounts.hasher = Hasher(waiting_max=0)
    for _ in range(accounts.allowed_failed_logins + 1):
        with pytest.raises(TooManyAtOnce):
            asyncio.run(accounts._authenticate("dave", "right", "dave"))
    assert accounts.lockout.locked_for("dave", 0.0) == 0


def test_hashing_leaves_the_event_loop_free_and_a_bounded_number_waits() -> None:
    async def flood() -> tuple[int, list[Any]]:
        hasher = Hasher(waiting_max=3)
        hashes = asyncio.gather(*(hasher.hashed("a password") for _ in range(5)), return_exceptions=True)
        turns = 0
        while not hashes.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, hashes.result()

    turns, found = asyncio.run(flood())
    assert turns > 1000  # a loop that hashes itself has one turn for each
    assert [type(one) for one in found] == [bytes] * 3 + [TooManyAtOnce] * 2
    assert asyncio.run(Hasher().matches("a password", found[0]))
    assert not asyncio.run(Hasher().matches("another", found[0]))
    assert not asyncio.run(Hasher().matches("x" * 80 + "\0", found[0]))
