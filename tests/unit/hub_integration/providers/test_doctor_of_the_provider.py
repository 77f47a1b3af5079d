"""The doctor asks the provider what can be asked without a person, and says what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli.doctor import login as checks_login
from mlp_hub.cli.doctor.checks import Check
from mlp_hub.cli.doctor.login import login
from mlp_hub.cli.lifecycle import up
from mlp_hub.hub_integration.providers.examine import Examination, Finding, redirect_uri
from mlp_hub.settings import Settings
from mlp_language.render import plain
from support.login.stand_in_issuer import StandIn


def look(issuer: StandIn, home: Path, **environ: str) -> list[Finding]:
    settings = Settings.load({"MLP_HOME": str(home), **issuer.environ(**environ)})
    return asyncio.run(Examination(settings).findings())


def wrong(found: list[Finding]) -> list[str]:
    return [plain(one.found) for one in found if one.status != "ok"]


def test_a_provider_that_knows_the_hub_is_all_right(issuer: StandIn, tmp_path: Path) -> None:
    issuer.document = {"code_challenge_methods_supported": ["S256"]}
    found = look(issuer, tmp_path)
    assert wrong(found) == []
    assert any(redirect_uri(Settings.load({"HOME": "/x"})) in plain(one.found) for one in found)
    assert not issuer.tokens, "a token was made"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MLP_LOGIN_CLIENT_SECRET": "another"}, "does not accept the client mlp-hub"),
        ({"MLP_LOGIN_CLIENT_ID": "another"}, "does not accept the client another"),
        ({"MLP_LOGIN_CLI_CLIENT_ID": "mlp-cli"}, "has no device flow"),
    ],
)
def test_a_setting_that_is_not_as_the_provider_has_it_is_named(
    issuer: StandIn, tmp_path: Path, environ: dict[str, str], words: str
) -> None:
    assert any(words in text for text in wrong(look(issuer, tmp_path, **environ)))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"issuer": "https://other.example"}, "calls itself"),
        ({"token_endpoint": "http://sso.example/token"}, "https://"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"end_session_endpoint": None}, "no logout address"),
    ],
)
def test_an_unexpected_announcement_of_the_provider_is_named(
    issuer: StandIn, tmp_path: Path, document: dict[str, Any], words: str
) -> None:
    issuer.document = document
    assert any(words in text for text in wrong(look(issuer, tmp_path)))


def test_a_provider_that_is_away_or_has_no_keys_fails(issuer: StandIn, tmp_path: Path) -> None:
    issuer.keys = []
    assert any("no keys" in text for text in wrong(look(issuer, tmp_path)))
    issuer.down = True
    (only,) = look(issuer, tmp_path)
    assert only.status == "fail"
    assert "does not answer" in plain(only.found)


def test_a_redirect_uri_that_the_provider_does_not_know_fails_with_what_to_register(
    issuer: StandIn, tmp_path: Path
) -> None:
    issuer.document = {"authorization_endpoint": f"{issuer.issuer}/no-such-place"}
    (found,) = [one for one in look(issuer, tmp_path) if one.status == "fail"]
    assert "does not redirect people back" in plain(found.found)
    assert found.remedy is not None
    assert "/hub/oauth_callback" in plain(found.remedy)


def test_the_command_says_it_too(issuer: StandIn, tmp_path: Path) -> None:
    right = login(Settings.load({"MLP_HOME": str(tmp_path), **issuer.environ()}))
    assert {one.name for one in right} == {"login"}
    assert all(one.status != "fail" for one in right), right
    wrong_secret = login(
        Settings.load({"MLP_HOME": str(tmp_path), **issuer.environ(MLP_LOGIN_CLIENT_SECRET="another")})
    )
    assert [one.status for one in wrong_secret].count("fail") == 1
    assert not any("another" in one.found + one.remedy for one in wrong_secret), "the secret is shown"


def test_accounts_of_the_hub_need_no_provider(tmp_path: Path) -> None:
    (only,) = login(Settings.load({"MLP_HOME": str(tmp_path)}))
    assert only.status == "ok"


def test_a_rule_that_makes_a_tenant_of_the_platform_admins_group_is_named(
    issuer: StandIn, tmp_path: Path
) -> None:
    rules = {"MLP_LOGIN_TENANTS": "/{tenant} -> {tenant}", "MLP_LOGIN_NEW_TENANTS": "make"}
    environ = issuer.environ(MLP_LOGIN_ADMIN_GROUPS="/hub-admins", **rules)
    found = login(Settings.load({"MLP_HOME": str(tmp_path), **environ}))
    (named,) = [one for one in found if "hub-admins" in one.found]
    assert named.status == "warn"
    assert named.remedy.endswith("/teams/{tenant} -> {tenant}")


def test_a_check_of_the_provider_that_breaks_is_told_by_up_and_stops_nothing(
    issuer: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Settings) -> list[Check]:
        raise KeyError("tenant")

    monkeypatch.setattr(checks_login, "login", broken)
    settings = Settings.load({"MLP_HOME": str(tmp_path), **issuer.environ()})
    assert up._provider_faults(settings) == ["KeyError: 'tenant' This check itself failed."]
