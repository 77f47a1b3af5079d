"""A provider's word that a session has ended is taken when it is really the provider's, for this hub, of now, and once."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jupyterhub import orm
from jupyterhub.apihandlers.base import APIHandler

from mlp_hub.hub_integration.providers.protocols.discovery import Document
from mlp_hub.hub_integration.providers.protocols.provider import TokenRefused
from mlp_hub.hub_integration.providers.records import used_tokens as tokens
from mlp_hub.hub_integration.providers.sync import logout
from mlp_hub.hub_integration.providers.sync.logout import EVENT, LONGEST_S, LogoutHandler, SessionEnd, check
from mlp_language.render import plain

ISSUER, US, NOW, SKEW_S = "https://sso.example.org/realms/mlp", "mlp-hub", 1_800_000_000.0, 30.0
OURS, THEIRS = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
DOCUMENT = Document(ISSUER, {"id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]})
GOOD: dict[str, Any] = {
    "iss": ISSUER,
    "aud": US,
    "iat": NOW,
    "exp": NOW + 120,
    "jti": "one",
    "sub": "s-1",
    "sid": "session-1",
    "events": {EVENT: {}},
}


class Keys:
    async def find(self, name: str | None, algorithm: str) -> Any:
        return OURS.public_key() if (name, algorithm) == ("k", "RS256") else None


def signed(claims: dict[str, Any], key: Any = OURS, **header: str) -> str:
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "k", "typ": "logout+jwt", **header})


def taken(token: str, now: float = NOW) -> SessionEnd:
    return asyncio.run(check(token, DOCUMENT, Keys(), audience=US, now=now, skew_s=SKEW_S))


def plain_part(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def test_an_honest_one_says_whose_session_it_was() -> None:
    found = taken(signed(GOOD))
    assert (found.issuer, found.subject, found.session, found.name) == (ISSUER, "s-1", "session-1", "one")
    assert taken(signed({**GOOD, "aud": [US, "other"]})).subject == "s-1"
    assert taken(signed({k: v for k, v in GOOD.items() if k != "sid"})).session == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iss": "https://evil.example.org"}, "issuer"),
        ({"aud": "another"}, "udience"),
        ({"events": {}}, "tells of no logout"),
        ({"events": [EVENT]}, "tells of no logout"),
        ({"events": {EVENT: True}}, "tells of no logout"),
        ({"nonce": "n"}, "token of a login"),
        ({"exp": NOW - SKEW_S - 1}, "is over"),
        ({"iat": NOW - LONGEST_S - SKEW_S - 1, "exp": NOW + 10_000}, "is over"),
        ({"iat": NOW + SKEW_S + 1}, "time to come"),
        ({"exp": "soon"}, "exp is no time"),
        ({"iat": 10**400}, "iat is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"sub": "", "sid": ""}, "names nobody"),
        ({"sub": ["s-1"]}, "Subject"),
        ({"sub": "s" * 256}, "names nobody"),
        ({"jti": ""}, "names nobody"),
        ({"jti": "\ud800"}, "names nobody"),
        ({"sid": "\ud800"}, "names nobody"),
        ({"sub": "s-1\0"}, "names nobody"),
    ],
)
def test_an_invalid_foreign_or_outdated_logout_token_is_refused_with_the_reason(
    change: dict[str, Any], why: str
) -> None:
    with pytest.raises(TokenRefused) as refused:
        taken(signed({**GOOD, **change}))
    assert why in plain(refused.value.message)


@pytest.mark.parametrize("claim", ["iss", "aud", "iat", "jti", "events"])
def test_nothing_that_says_too_little_is_taken(claim: str) -> None:
    with pytest.raises(TokenRefused):
        taken(signed({name: value for name, value in GOOD.items() if name != claim}))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "x" * (logout.TOKEN_MAX + 1),
        signed(GOOD, THEIRS),
        signed(GOOD, kid="another"),
        signed(GOOD, typ="at+jwt"),
        f"{plain_part({'alg': 'none', 'kid': 'k'})}.{plain_part(GOOD)}.",
        jwt.encode(GOOD, "x" * 64, algorithm="HS256", headers={"kid": "k"}),
    ],
)
def test_nothing_that_is_signed_otherwise_is_taken(token: str) -> None:
    with pytest.raises(TokenRefused):
        taken(token)


def test_a_token_nested_too_deeply_is_refused_whatever_version_of_pyjwt_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(_: str) -> dict[str, Any]:
        raise RecursionError  # as PyJWT 2.13 does

    deep = base64.urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=")
    with pytest.raises(TokenRefused):
        taken(f"{deep}.e30.x")
    monkeypatch.setattr(jwt, "get_unverified_header", read)
    with pytest.raises(TokenRefused):
        taken(f"{deep}.e30.x")


def test_one_is_taken_once_and_remembered_for_as_long_as_it_could_be_taken_over_restarts(
    tmp_path: Path,
) -> None:
    found = taken(signed(GOOD))

    def told(now: float) -> str:
        """Tell a hub that has just been started of it, and return why it was refused."""
        with contextlib.closing(orm.new_session_factory(f"sqlite:///{tmp_path}/hub.sqlite")()) as db:
            tokens.ensure_table(db)
            try:
                logout.take(db, found, now)
            except TokenRefused as refused:
                return plain(refused.message)
            return ""

    assert told(NOW) == ""
    for later in (NOW, NOW + 120 + SKEW_S - 1):
        assert "already used" in told(later)
    with pytest.raises(TokenRefused):  # by then it is refused for its age
        taken(signed(GOOD), NOW + 120 + SKEW_S)


def test_the_hub_asks_for_nobody_and_no_cookie_there() -> None:
    for name in ("prepare", "check_xsrf_cookie"):
        assert getattr(LogoutHandler, name) is not getattr(APIHandler, name)
