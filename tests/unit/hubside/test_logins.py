"""Logins beside what administrators do at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jupyterhub import orm
from nativeauthenticator.orm import UserInfo
from tornado import web

from mlp_hub.hubside.authenticator import NativeAccounts


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

    monkeypatch.setattr(asyncio, "to_thread", compare)
    found: str | None = asyncio.run(accounts._authenticate({"username": "dave", "password": "right"}))
    return found


def test_who_is_refused_while_the_password_is_compared_is_nobody(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        accounts.db.delete(UserInfo.find(accounts.db, "dave"))
        accounts.db.commit()

    assert log_in(accounts, monkeypatch, refuse) is None


def test_who_is_let_in_while_the_password_is_compared_is_in(
    accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def approve() -> None:
        UserInfo.find(accounts.db, "dave").is_authorized = True
        accounts.db.commit()

    assert log_in(accounts, monkeypatch, approve) == "dave"


def test_who_waits_for_approval_is_told_so(accounts: NativeAccounts, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(web.HTTPError, match="waits for the approval"):
        log_in(accounts, monkeypatch, lambda: None)
