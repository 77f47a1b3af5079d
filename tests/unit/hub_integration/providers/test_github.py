"""GitHub's API as its documentation has it, by a `ProviderClient` that answers from a table."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.hub_integration.providers.protocols.github import GitHubProvider
from mlp_hub.hub_integration.providers.protocols.provider import (
    LoginEnded,
    LoginResult,
    PendingLogin,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAnswer
from mlp_hub.settings import Settings

AT = "https://github.example.org"
API = f"{AT}/api/v3"
TEAM = {"slug": "red", "organization": {"login": "acme"}}


class Answers:
    """What it answers, by address; the last page of a list names no next one."""

    def __init__(self) -> None:
        self.token: dict[str, Any] = {"access_token": "access", "token_type": "bearer"}
        self.forms: list[dict[str, str]] = []
        self.bearers: dict[str, str] = {}
        self.got: dict[str, ProviderAnswer] = {
            f"{API}/user": ProviderAnswer(200, {"id": 7, "login": "Ann", "email": "public@example.org"}),
            f"{API}/user/emails": ProviderAnswer(
                200, [{"email": "ann@example.org", "primary": True, "verified": True}]
            ),
            f"{API}/user/orgs?per_page=100": ProviderAnswer(200, [{"login": "acme"}]),
            f"{API}/user/teams?per_page=100": ProviderAnswer(200, [TEAM]),
        }

    async def get(self, url: str, bearer: str = "") -> ProviderAnswer:
        self.bearers[url] = bearer
        return self.got[url]

    async def post(self, url: str, form: dict[str, str], headers: dict[str, str]) -> ProviderAnswer:
        assert url == f"{AT}/login/oauth/access_token"
        self.forms.append(form)
        return ProviderAnswer(200, self.token)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def github(answers: Answers, tmp_path: Path) -> GitHubProvider:
    settings = {
        "MLP_HOME": str(tmp_path),
        "MLP_LOGIN": "github",
        "MLP_LOGIN_ISSUER": AT,
        "MLP_LOGIN_CLIENT_ID": "hub",
        "MLP_LOGIN_CLIENT_SECRET": "secret",
        "MLP_LOGIN_ADMIN_GROUPS": "acme:red",
    }
    made = GitHubProvider(Settings.load(settings))
    made._asker = answers  # type: ignore[assignment]
    return made


@pytest.fixture
def begun() -> PendingLogin:
    return PendingLogin(
        AT, "http://localhost:8000/hub/oauth_callback", "0" * 32, "nonce", "verifier", "", 0.0
    )


def arrive(github: GitHubProvider, begun: PendingLogin) -> LoginResult:
    return asyncio.run(github.arrived(begun, "code", ""))


def test_a_person_is_their_number_and_groups_are_organisations_and_teams(
    github: GitHubProvider, answers: Answers, begun: PendingLogin
) -> None:
    identity = arrive(github, begun).identity
    assert (identity.issuer, identity.subject, identity.claimed_name) == (AT, "7", "Ann")
    assert (identity.groups, identity.admin) == (("acme", "acme:red"), True)
    assert (identity.email, identity.email_verified) == ("ann@example.org", True)
    assert answers.forms[0]["code_verifier"] == begun.verifier
    assert answers.forms[0]["client_secret"] == "secret"


def test_teams_come_page_by_page_and_the_token_goes_nowhere_else(
    github: GitHubProvider, answers: Answers, begun: PendingLogin
) -> None:
    first, second = f"{API}/user/teams?per_page=100", f"{API}/user/teams?per_page=100&page=2"
    answers.got[first] = ProviderAnswer(200, [TEAM], f'<{second}>; rel="next", <{second}>; rel="last"')
    blue = {"slug": "blue", "organization": {"login": "acme"}}
    answers.got[second] = ProviderAnswer(200, [blue], '<https://evil.example/x>; rel="next"')
    assert arrive(github, begun).identity.groups == ("acme", "acme:blue", "acme:red")
    assert not [url for url in answers.bearers if "evil" in url]


def test_a_code_that_it_does_not_take_is_refused_though_it_says_so_with_success(
    github: GitHubProvider, answers: Answers, begun: PendingLogin
) -> None:
    answers.token = {"error": "bad_verification_code", "error_description": "The code has expired."}
    with pytest.raises(TokenRefused) as refused:
        arrive(github, begun)
    assert "expired" in str(refused.value.message.args["why"])


def test_a_list_that_it_does_not_tell_is_not_an_empty_one(
    github: GitHubProvider, answers: Answers, begun: PendingLogin
) -> None:
    state = arrive(github, begun).auth_state
    answers.got[f"{API}/user/teams?per_page=100"] = ProviderAnswer(403, {"message": "rate limit"})
    assert isinstance(asyncio.run(github.refreshed(state)), ProviderUnreachable)


def test_a_renamed_user_stays_the_same_and_a_user_with_an_ended_token_is_logged_out(
    github: GitHubProvider, answers: Answers, begun: PendingLogin
) -> None:
    state = arrive(github, begun).auth_state
    answers.got[f"{API}/user"] = ProviderAnswer(200, {"id": 7, "login": "ann-married"})
    found = asyncio.run(github.refreshed(state))
    assert isinstance(found, tuple)
    assert (found[0].subject, found[0].claimed_name) == ("7", "ann-married")
    answers.got[f"{API}/user"] = ProviderAnswer(
        200, {"id": 8, "login": "Ann"}
    )  # somebody else has the name now
    assert asyncio.run(github.refreshed(state)) == LoginEnded("session")
    answers.got[f"{API}/user"] = ProviderAnswer(401, {"message": "Bad credentials"})
    assert asyncio.run(github.refreshed(state)) == LoginEnded("session")


def test_a_confirmation_leads_through_the_choice_of_an_account(
    github: GitHubProvider, begun: PendingLogin
) -> None:
    again = replace(begun, confirms="ann")
    assert "prompt=select_account" in asyncio.run(github.login_url(again))
    assert arrive(github, again).entered_at is not None
    assert arrive(github, begun).entered_at is None


def test_a_terminals_token_is_refused(github: GitHubProvider) -> None:
    with pytest.raises(TokenRefused):
        asyncio.run(github.identity_of("access", "", client_id="mlp-cli"))
