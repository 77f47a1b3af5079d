"""Whatever a provider, or somebody in its place, answers to a code: who is let in is who it signed, for us, for this login, now."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider
from mlp_hub.hub_integration.providers.protocols.provider import LoginResult, PendingLogin, TokenRefused
from support.login.stand_in_issuer import CLIENT, StandIn, private_key, published, unsigned

HOUR = 3600


def arrive(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, *, code: str = "", iss: str = ""
) -> LoginResult:
    """Come back from the provider, which was asked with this login's nonce and challenge."""
    code = code or issuer.code_for(
        nonce=begun.nonce, challenge=begun.challenge, redirect_uri=begun.redirect_uri
    )
    return asyncio.run(provider.arrived(begun, code, iss or issuer.issuer))


def why(issuer: StandIn, provider: OidcProvider, begun: PendingLogin, **how: str) -> str:
    """Return why nobody is let in."""
    with pytest.raises(TokenRefused) as refused:
        arrive(issuer, provider, begun, **how)
    return refused.value.message.template


def test_the_person_named_in_a_valid_token_is_let_in(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    arrival = arrive(issuer, provider, begun)
    identity = arrival.identity
    assert (identity.issuer, identity.subject) == (issuer.issuer, "s-ann")
    assert (identity.claimed_name, identity.groups, identity.admin) == ("ann", ("/ml/red",), False)
    assert arrival.entered_at == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"iss": "https://evil.example"}, "of another issuer"),
        ({"iss": None}, "is not valid"),
        ({"aud": "another-app"}, "for another audience"),
        ({"aud": None}, "is not valid"),
        ({"aud": [CLIENT, "another-app"]}, "for another audience"),
        ({"aud": [CLIENT, "another-app"], "azp": "another-app"}, "for another audience"),
        ({"azp": "another-app"}, "for another audience"),
        ({"exp": int(time.time()) - 120}, "has expired"),
        ({"exp": None}, "is not valid"),
        ({"exp": "later"}, "is not valid|is not a time"),
        ({"iat": int(time.time()) + HOUR}, "is from the future"),
        ({"nbf": int(time.time()) + HOUR}, "is from the future"),
        ({"iat": int(time.time()) - HOUR}, "too old"),
        ({"iat": None}, "is not valid"),
        ({"nonce": "another"}, "another login"),
        ({"nonce": None}, "another login"),
        ({"sub": None}, "is not valid"),
        ({"sub": ""}, "does not identify its user|is not valid"),
        ({"sub": "x" * 300}, "does not identify its user"),
        ({"sub": "s-bob"}, "returned another user"),
        ({"at_hash": "of-another-one"}, "another access token"),
        ({"auth_time": "today"}, "is not a time"),
        ({"auth_time": True}, "is not a time"),
        ({"auth_time": float("nan")}, "is not a time"),
        ({"nbf": float("nan")}, "is not a time"),
        ({"exp": float("inf")}, "is not a time"),
        ({"exp": 10**400}, "is not a time"),
        ({"nonce": "\ud800"}, "another login"),
    ],
)
def test_a_token_that_says_something_else_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, claims: dict[str, Any], said: str
) -> None:
    issuer.claims = claims
    found = why(issuer, provider, begun)
    assert any(part in found for part in said.split("|")), found


def test_two_audiences_are_right_where_we_are_the_party(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.claims = {"aud": [CLIENT, "account"], "azp": CLIENT}
    assert arrive(issuer, provider, begun).identity.subject == "s-ann"


def test_clocks_may_differ_by_the_setting_and_no_more(
    issuer: StandIn, provider_with: Callable[..., OidcProvider], begun: PendingLogin
) -> None:
    ahead = int(time.time()) + 100
    issuer.claims = {"iat": ahead, "exp": ahead + 300}
    assert arrive(issuer, provider_with(MLP_LOGIN_CLOCK_SKEW_S="200"), begun).identity.subject == "s-ann"
    assert "is from the future" in why(issuer, provider_with(MLP_LOGIN_CLOCK_SKEW_S="30"), begun)


def _public_pem() -> bytes:
    public = private_key("first").public_key()
    return bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _with_public_key_as_secret(claims: dict[str, Any]) -> str:
    """Sign with what anybody can read; PyJWT refuses to make this by itself."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")

    header = {"alg": "HS256", "kid": "first", "typ": "JWT"}
    signed = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
    return f"{signed}.{part(hmac.new(_public_pem(), signed.encode(), sha256).digest())}"


@pytest.mark.parametrize("announced", [["RS256"], ["none", "HS256", "RS256"]])
@pytest.mark.parametrize("forge", [unsigned, _with_public_key_as_secret])
def test_a_token_that_anybody_could_have_made_is_refused_even_where_the_provider_announces_such(
    issuer: StandIn,
    provider: OidcProvider,
    begun: PendingLogin,
    forge: Callable[[dict[str, Any]], str],
    announced: list[str],
) -> None:
    issuer.document = {"id_token_signing_alg_values_supported": announced}
    issuer.sign = forge
    assert "is signed with" in why(issuer, provider, begun)


def test_a_token_of_another_key_under_a_known_name_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.sign = lambda claims: jwt.encode(claims, private_key("thief"), "RS256", headers={"kid": "first"})
    assert "is not valid" in why(issuer, provider, begun)


def test_a_key_that_the_token_brings_along_is_not_used(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.sign = lambda claims: issuer.signed(
        claims, "thief", jwk=published("thief"), jku="http://127.0.0.1:9/"
    )
    assert "a key that the provider does not have" in why(issuer, provider, begun)


def test_a_key_for_encryption_signs_nothing(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.keys = [published("first", use="enc")]
    assert "a key that the provider does not have" in why(issuer, provider, begun)


@pytest.mark.parametrize("token", ["", "a.b", "x" * 1000, "\u0000", "é.é.é", "." * 5000, "\ud800.a.b"])
def test_an_invalid_token_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, token: str
) -> None:
    issuer.sign = lambda _: token
    assert "ID token" in why(issuer, provider, begun)


def test_a_code_is_good_once(issuer: StandIn, provider: OidcProvider, begun: PendingLogin) -> None:
    code = issuer.code_for(nonce=begun.nonce, challenge=begun.challenge, redirect_uri=begun.redirect_uri)
    arrive(issuer, provider, begun, code=code)
    assert "does not accept the code" in why(issuer, provider, begun, code=code)


def test_a_code_of_another_browsers_login_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    theirs = replace(begun, verifier="another", nonce="another")
    code = issuer.code_for(nonce=theirs.nonce, challenge=theirs.challenge, redirect_uri=theirs.redirect_uri)
    assert "does not accept the code" in why(issuer, provider, begun, code=code)


@pytest.mark.parametrize("header", [{"crit": ["made-up"], "made-up": 1}, {"kid": None}])
def test_a_token_with_a_header_that_is_not_understood_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, header: dict[str, Any]
) -> None:
    part = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": "first", **header}).encode()).decode()

    def forged(claims: dict[str, Any]) -> str:
        body = issuer.signed(claims).split(".")[1]
        signed = f"{part.rstrip('=')}.{body}"
        key = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        seal = base64.urlsafe_b64encode(key.sign(signed.encode(), private_key("first"))).decode()
        return f"{signed}.{seal.rstrip('=')}"

    issuer.sign = forged
    assert "is not valid" in why(issuer, provider, begun)


def test_a_key_that_is_too_short_signs_nothing(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - the attack
    told = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(short.public_key()))
    issuer.keys = [{**told, "kid": "short"}]
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = jwt.encode(
            json.loads(base64.urlsafe_b64decode(issuer.id_token(begun.nonce).split(".")[1] + "==")),
            short,
            "RS256",
            headers={"kid": "short"},
        )
    issuer.sign = lambda _: token
    assert "is not valid" in why(issuer, provider, begun)


@pytest.mark.parametrize(("says", "iss"), [(True, "https://evil.example"), (False, "https://evil.example")])
def test_a_login_that_returns_from_another_provider_is_refused(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, says: bool, iss: str
) -> None:
    issuer.says_iss = says
    assert "ended elsewhere" in why(issuer, provider, begun, iss=iss)


def test_a_provider_that_says_where_from_must_do_so(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    code = issuer.code_for(nonce=begun.nonce, challenge=begun.challenge, redirect_uri=begun.redirect_uri)
    with pytest.raises(TokenRefused) as refused:
        asyncio.run(provider.arrived(begun, code, ""))
    assert "ended elsewhere" in refused.value.message.template


def test_a_confirmation_asks_for_a_password_that_was_entered_since(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    again = replace(begun, confirms="ann")
    assert "prompt=login" in asyncio.run(provider.login_url(again))
    assert "prompt" not in asyncio.run(provider.login_url(begun))
    assert arrive(issuer, provider, again).entered_at is not None
    issuer.auth_time = time.time() - HOUR
    assert "did not ask for the password" in why(issuer, provider, again)
    issuer.claims = {"auth_time": None}
    assert "did not ask for the password" in why(issuer, provider, again)
    assert arrive(issuer, provider, begun).entered_at is None


def test_an_address_that_is_not_verified_names_nobody(
    issuer: StandIn, provider_with: Callable[..., OidcProvider], begun: PendingLogin
) -> None:
    provider = provider_with(MLP_LOGIN_NAME_CLAIM="email")
    for verified in (False, "true", None, 1):
        issuer.person = {"sub": "s-ann", "email": "admin@example.org", "email_verified": verified}
        assert "not verified" in why(issuer, provider, begun)
    issuer.person["email_verified"] = True
    assert arrive(issuer, provider, begun).identity.claimed_name == "admin@example.org"


@pytest.mark.parametrize("name", ["\ud800", "ann\0", " ", 7, ["ann"], {"name": "ann"}])
def test_attack_a_name_that_no_table_holds_names_nobody(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, name: object
) -> None:
    issuer.person |= {"preferred_username": name, "email": name}
    assert "for the user name is missing" in why(issuer, provider, begun)
    issuer.person["preferred_username"] = "ann"
    email = name if name == " " else ""
    assert arrive(issuer, provider, begun).identity.email == email


@pytest.mark.parametrize("session", ["\ud800", "a\0", "s" * 256, 7, ["s"]])
def test_attack_a_session_that_no_table_holds_has_no_name(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, session: object
) -> None:
    issuer.claims["sid"] = session
    assert arrive(issuer, provider, begun).auth_state["session"] == ""


@pytest.mark.parametrize(
    ("said", "groups"),
    [
        (None, ()),
        ("/ml/red", ("/ml/red",)),
        (["b", "a", "a", "", 3, None, ["nested"], {"name": "x"}, "x" * 256, "a\nb"], ("a", "b")),
        ({"red": True}, ()),
        (["/ML/Red", "/ml/red"], ("/ML/Red", "/ml/red")),
        (7, ()),
    ],
)
def test_a_claim_of_groups_is_a_list_of_names_and_all_else_is_left_out(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin, said: object, groups: tuple[str, ...]
) -> None:
    issuer.person["groups"] = said
    assert arrive(issuer, provider, begun).identity.groups == groups


def test_more_groups_than_a_row_can_hold_are_refused_and_ten_thousand_are_not(
    issuer: StandIn, provider: OidcProvider, begun: PendingLogin
) -> None:
    issuer.person["groups"] = [f"/ml/group-{n}" for n in range(10_000)]
    assert len(arrive(issuer, provider, begun).identity.groups) == 10_000
    issuer.person["groups"].append("/one/more")
    assert "groups" in why(issuer, provider, begun)


def test_groups_may_be_nested_and_administrators_are_who_is_in_theirs(
    issuer: StandIn, provider_with: Callable[..., OidcProvider], begun: PendingLogin
) -> None:
    provider = provider_with(MLP_LOGIN_GROUPS_CLAIM="realm.roles", MLP_LOGIN_ADMIN_GROUPS="ops,root")
    issuer.person["realm"] = {"roles": ["ops", "all"]}
    assert arrive(issuer, provider, begun).identity.admin
    issuer.person["realm"] = {"roles": ["OPS", "all"]}
    assert not arrive(issuer, provider, begun).identity.admin
