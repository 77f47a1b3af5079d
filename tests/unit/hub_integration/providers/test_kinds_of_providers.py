"""The table of ways to log in has for each provider what the rest of the hub looks up by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub.hub_integration.providers.protocols.github import GitHubProvider
from mlp_hub.hub_integration.providers.protocols.kinds import PROVIDERS
from mlp_hub.settings import Settings
from mlp_hub.settings.login_kinds import LOGIN_KINDS


def test_each_provider_that_can_be_set_has_a_class_that_asks_it() -> None:
    """Else a hub that is set to it would log people in with accounts of its own, and say nothing."""
    assert PROVIDERS.keys() == {name for name, kind in LOGIN_KINDS.items() if kind.title}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_without_openid_connect_defines_where_codes_are_exchanged(name: str) -> None:
    kind = LOGIN_KINDS[name]
    assert ("openid" in kind.scopes) != bool(kind.codes_at)


def test_the_doctor_asks_github_where_people_s_codes_go(tmp_path: Path) -> None:
    environ = {"MLP_HOME": str(tmp_path), "MLP_LOGIN": "github", "MLP_LOGIN_CLIENT_ID": "hub"}
    settings = Settings.load(environ)
    github = GitHubProvider(settings)
    assert github._at.token_url == f"{settings.login_provider}{settings.login_kind.codes_at}"
