"""What the provider announces, and how people stand there, changes while the hub runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mlp_hub.hub_integration.providers.protocols import discovery
from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider
from mlp_hub.hub_integration.providers.protocols.provider import (
    LoginEnded,
    LoginResult,
    PendingLogin,
    ProviderIdentity,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway, RegisteredClient
from mlp_hub.hub_integration.providers.protocols.tokens import KeptLogin
from support.login.stand_in_issuer import StandIn, published

DOCUMENT = "/.well-known/openid-configuration"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(provider: OidcProvider) -> Clock:
    """Have the provider's caches go by a clock of the test's."""
    made = Clock()
    provider.discovery = discovery.Discovery(provider.issuer, provider.title, provider._asker, made)
    provider.keys = discovery.Keys(provider.discovery, provider.title, provider._asker, made)
    return made


async def arrive(issuer: StandIn, provider: OidcProvider, begun: PendingLogin) -> LoginResult:
    code = issuer.code_for(nonce=begun.nonce, challenge=begun.challenge, redirect_uri=begun.redirect_uri)
    return await provider.arrived(begun, code, issuer.issuer)


def test_keys_that_change_under_load_are_asked_for_once(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, clock: Clock
) -> None:
    async def rounds() -> list[Any]:
        await arrive(issuer, provider, begun)
        issuer.keys, issuer.signs_with = [published("second")], "second"
        return await asyncio.gather(*(arrive(issuer, provider, begun) for _ in range(20)))

    assert {one.identity.subject for one in asyncio.run(rounds())} == {"s-ann"}
    assert issuer.requests["/keys"] == 2
    assert issuer.requests[DOCUMENT] == 1


async def test_a_signature_by_the_old_key_is_invalid_once_the_new_keys_are_read(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, clock: Clock
) -> None:
    await arrive(issuer, provider, begun)
    issuer.keys = [published("second")]  # the thief of the first one goes on to sign with it
    clock.now += discovery.KEYS_READ_AGAIN_S
    with pytest.raises(TokenRefused) as refused:
        await arrive(issuer, provider, begun)
    assert "does not have" in refused.value.message.template


def test_tokens_with_made_up_keys_make_the_provider_be_asked_a_few_times_and_no_more(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, clock: Clock
) -> None:
    async def flood() -> None:
        for n in range(40):
            issuer.sign = lambda claims, n=n: issuer.signed(claims, "thief", kid=f"made-up-{n}")
            with pytest.raises(TokenRefused):
                await arrive(issuer, provider, begun)

    asyncio.run(flood())
    assert issuer.requests["/keys"] <= 6
    issuer.sign = issuer.signed
    issuer.keys, issuer.signs_with = [published("second")], "second"
    clock.now += 60
    assert asyncio.run(arrive(issuer, provider, begun)).identity.subject == "s-ann"


def test_the_document_is_read_again_and_an_old_one_serves_while_the_provider_is_away(
    issuer: StandIn, provider: OidcProvider, clock: Clock
) -> None:
    async def token_endpoint() -> str:
        return (await provider.discovery.document()).url("token_endpoint")

    before = asyncio.run(token_endpoint())
    issuer.document = {"token_endpoint": f"{issuer.issuer}/elsewhere"}
    assert asyncio.run(token_endpoint()) == before
    clock.now += discovery.READ_AGAIN_S
    assert asyncio.run(token_endpoint()) == f"{issuer.issuer}/elsewhere"
    issuer.down = True
    clock.now += discovery.READ_AGAIN_S
    assert asyncio.run(token_endpoint()) == f"{issuer.issuer}/elsewhere"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"issuer": "https://evil.example"}, "calls itself"),
        ({"issuer": None}, "calls itself"),
        ({"token_endpoint": "http://sso.example.org/token"}, "must be an https"),
        ({"token_endpoint": "file:///etc/passwd"}, "must be an https"),
        ({"jwks_uri": 7}, "must be an https"),
        ({"authorization_endpoint": None}, "must be an https"),
        ({"userinfo_endpoint": "http://[bad"}, "must be an https"),
    ],
)
def test_a_document_of_somebody_else_or_that_leads_secrets_into_the_clear_is_refused(
    issuer: StandIn, provider: OidcProvider, document: dict[str, Any], said: str
) -> None:
    issuer.document = document
    with pytest.raises(ProviderAway) as away:
        asyncio.run(provider.discovery.document())
    assert said in away.value.message.template


def test_a_provider_outage_is_reported_by_name(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.down = True
    with pytest.raises(ProviderAway) as away:
        asyncio.run(provider.login_url(begun))
    assert away.value.message.args["title"] == "Stand-in"


# ---------------------------------------------------------------- how people stand


@pytest.fixture
def state(issuer: StandIn, provider: OidcProvider, begun: PendingLogin) -> dict[str, Any]:
    return asyncio.run(arrive(issuer, provider, begun)).auth_state


def now(provider: OidcProvider, state: dict[str, Any]) -> ProviderIdentity:
    """Ask, and return how the person stands, who is still there."""
    found = asyncio.run(provider.refreshed(state))
    assert isinstance(found, tuple), found
    state.update(found[1])
    return found[0]


def theirs(issuer: StandIn, state: dict[str, Any]) -> dict[str, Any]:
    """What the user-info endpoint tells of who holds these tokens."""
    found: dict[str, Any] = issuer.tokens[state["access_token"]]
    return found


def test_groups_and_names_follow_the_provider(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    theirs(issuer, state).update(groups=["/ml/blue"], preferred_username="ann.married")
    assert (now(provider, state).groups, now(provider, state).claimed_name) == (("/ml/blue",), "ann.married")
    del theirs(issuer, state)["groups"]  # as Keycloak says of who is in none
    assert now(provider, state).groups == ()


def test_a_token_that_has_expired_is_renewed(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    issuer.person["groups"] = ["/ml/blue"]
    expired = {**state, "access_token": "expired"}
    assert now(provider, expired).groups == ("/ml/blue",)
    assert expired["access_token"] != "expired"
    assert KeptLogin.from_state(expired) is not None


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        ({"error": "invalid_grant", "error_description": "User disabled"}, "disabled"),
        ({"error": "invalid_grant", "error_description": "Session not active"}, "session"),
        ({"error": "invalid_grant"}, "session"),
    ],
)
def test_a_user_disabled_or_logged_out_at_the_provider_is_logged_out(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any], refusal: dict[str, str], why: str
) -> None:
    issuer.tokens = {}
    issuer.refuses_refresh = refusal
    assert asyncio.run(provider.refreshed(state)) == LoginEnded(why)  # type: ignore[arg-type]


def test_a_refusal_that_is_about_the_hub_puts_nobody_out(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    issuer.tokens = {}
    issuer.refuses_refresh = {"error": "invalid_client"}
    found = asyncio.run(provider.refreshed(state))
    assert isinstance(found, ProviderUnreachable)
    assert found.misconfigured


def test_a_code_that_is_refused_because_of_the_hub_is_not_the_person_s_mistake(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    provider._client = RegisteredClient(provider._client.name, "another secret")
    with pytest.raises(ProviderAway) as caught:
        asyncio.run(arrive(issuer, provider, begun))
    assert caught.value.misconfigured


def test_a_mistyped_issuer_ends_nobody_s_login(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    before = {**state, "issuer": "https://before.example"}
    provider.discovery = discovery.Discovery(provider.issuer, provider.title, provider._asker)  # a new start
    issuer.document = {"issuer": "https://elsewhere.example"}
    found = asyncio.run(provider.refreshed(before))
    assert isinstance(found, ProviderUnreachable)
    assert found.misconfigured
    issuer.down = True
    assert isinstance(asyncio.run(provider.refreshed(before)), ProviderUnreachable)


def test_no_verdict_about_users_is_made_while_the_provider_is_away(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    issuer.down = True
    assert isinstance(asyncio.run(provider.refreshed(state)), ProviderUnreachable)
    issuer.down = False
    assert now(provider, state).subject == "s-ann"


def test_tokens_that_have_become_somebody_elses_are_nobodys(
    issuer: StandIn, provider: OidcProvider, state: dict[str, Any]
) -> None:
    theirs(issuer, state)["sub"] = "s-bob"
    assert asyncio.run(provider.refreshed(state)) == LoginEnded("session")


def test_a_login_from_another_provider_is_not_refreshed(
    provider: OidcProvider, state: dict[str, Any]
) -> None:
    assert asyncio.run(provider.refreshed({**state, "issuer": "https://before.example"})) == LoginEnded(
        "session"
    )
    assert asyncio.run(provider.refreshed({"token_response": {}})) == LoginEnded("session")


def test_groups_found_only_in_id_tokens_come_from_a_new_one(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    del issuer.person["groups"]
    issuer.claims = {"groups": ["/ml/red"]}
    state = asyncio.run(arrive(issuer, provider, begun)).auth_state
    issuer.claims = {"groups": ["/ml/blue"]}
    assert now(provider, state).groups == ("/ml/blue",)


def test_tokens_of_a_terminal_are_accepted_only_for_its_own_client(
    issuer: StandIn, provider_with: Callable[..., OidcProvider]
) -> None:
    provider = provider_with()
    got = issuer.grant()
    tokens = (got["access_token"], issuer.id_token(aud="mlp-cli", azp="mlp-cli"))
    identity = asyncio.run(provider.identity_of(*tokens, client_id="mlp-cli"))
    assert isinstance(identity, ProviderIdentity)
    assert identity.groups == ("/ml/red",)
    with pytest.raises(TokenRefused):
        asyncio.run(provider.identity_of(got["access_token"], got["id_token"], client_id="mlp-cli"))
    assert asyncio.run(provider.identity_of("no-token", tokens[1], client_id="mlp-cli")) == LoginEnded(
        "session"
    )


def test_a_logout_here_leads_to_the_logout_at_the_provider(
    issuer: StandIn, provider_with: Callable[..., OidcProvider], state: dict[str, Any]
) -> None:
    back = "http://localhost:8000/hub/login"
    url = asyncio.run(provider_with().logout_url(state, back))
    assert url.startswith(f"{issuer.issuer}/logout?")
    assert "id_token_hint=" in url
    assert asyncio.run(provider_with(MLP_LOGIN_LOGOUT="false").logout_url(state, back)) == ""
    issuer.document = {"end_session_endpoint": None}
    assert asyncio.run(provider_with().logout_url(state, back)) == ""
    issuer.down = True
    assert asyncio.run(provider_with().logout_url(state, back)) == ""
