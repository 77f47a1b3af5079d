"""Files outlive the account that they were made with, and are given to nobody who is only called the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

from jupyterhub import orm

from mlp_hub.hub_integration.providers.login.authenticator import CompanyAccounts
from mlp_hub.hub_integration.providers.protocols.provider import (
    ARRIVAL,
    LoginResult,
    PendingLogin,
    ProviderIdentity,
)
from mlp_hub.settings import Settings

ISSUER = "https://sso.example.org"
HANDLER = SimpleNamespace(current_user=None)


def test_a_new_person_does_not_get_the_home_of_an_account_that_was_deleted(tmp_path: Path) -> None:
    settings = Settings.load(
        {
            "MLP_HOME": str(tmp_path),
            "MLP_LOGIN": "oidc",
            "MLP_LOGIN_ISSUER": ISSUER,
            "MLP_LOGIN_CLIENT_ID": "mlp-hub",
        }
    )
    db = orm.new_session_factory("sqlite:///:memory:")()
    accounts = CompanyAccounts(db=db, settings_of=lambda: settings)
    (settings.homes_dir / "ann").mkdir(parents=True)

    def name(subject: str) -> str:
        identity = ProviderIdentity(ISSUER, subject, "ann", "", False, (), False)
        begun = PendingLogin(
            ISSUER, "http://localhost:8000/hub/oauth_callback", "0" * 32, "nonce", "verifier", "", 0.0
        )
        data = {"username": "ann", ARRIVAL: (LoginResult(identity, {}, None), begun)}
        return str(asyncio.run(accounts.get_authenticated_user(HANDLER, data))["name"])

    assert name("1") == "ann-2"
    (settings.homes_dir / "ann-2").mkdir()  # the own one, since the first notebook server
    assert name("1") == "ann-2"
    assert name("2") == "ann-3"
