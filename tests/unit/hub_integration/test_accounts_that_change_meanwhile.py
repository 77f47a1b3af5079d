"""Changes of accounts are made only if they are allowed of the account as it is once they are recorded."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.hub_integration.accounts import accounts
from mlp_language.message import msg


async def test_an_account_that_is_shut_out_meanwhile_becomes_no_administrator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    info = SimpleNamespace(username="ann", is_authorized=True)
    handler: Any = SimpleNamespace(
        _body=lambda: {"admin": True},
        _needed=lambda _body, _name: None,
        _check_may_touch_admins=lambda: None,
        _info=lambda _name: info,
    )
    handler._recorded = partial(accounts._Accounts._recorded, handler)

    async def record(*_args: object, **_fields: object) -> None:
        info.is_authorized = False

    monkeypatch.setattr(accounts.recording, "record", record)
    with pytest.raises(accounts.AccountRefused, match="is not approved"):
        await accounts.AccountAction._admin(handler, info)


async def test_an_account_that_becomes_an_administrators_meanwhile_gets_no_password_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    info, admin = SimpleNamespace(username="ann"), [False]
    refused = accounts.AccountRefused(
        msg("only an administrator may change administrators' accounts"), "Forbidden", 403
    )

    def check(_info: object) -> None:
        if admin[0]:
            raise refused

    handler: Any = SimpleNamespace(
        _body=lambda: {"password": "long enough"},
        _needed=lambda _body, _name: None,
        _check_may_touch=check,
        _info=lambda _name: info,
        current_user=SimpleNamespace(kind="service"),
        authenticator=SimpleNamespace(check_password_rule=lambda _password: None),
    )
    handler._recorded = partial(accounts._Accounts._recorded, handler)

    async def record(*_args: object, **_fields: object) -> None:
        admin[0] = True

    monkeypatch.setattr(accounts.recording, "record", record)
    with pytest.raises(accounts.AccountRefused):
        await accounts.AccountAction._password(handler, info)
