"""ID tokens, believed only when the provider signed them, for this hub, for this login, and now."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256, sha384, sha512
from typing import Any

import jwt

from mlp_hub.hub_integration.providers.discovery import Document, Keys
from mlp_hub.hub_integration.providers.provider import TokenRefused
from mlp_language.message import Message, msg

TOKEN_MAX = 256 << 10
SUBJECT_MAX = 255
OLDEST_S = 600.0
"""So long ago at most a token was made that comes with a login."""
_DIGESTS: dict[str, Callable[..., Any]] = {"256": sha256, "384": sha384, "512": sha512, "DSA": sha512}


async def check(
    token: object,
    document: Document,
    keys: Keys,
    *,
    audience: str,
    now: float,
    skew_s: float,
    nonce: str | None = None,
    access_token: str = "",
) -> dict[str, Any]:
    """Return the claims of an ID token; raise TokenRefused, or ProviderAway.

    `nonce` is what was sent along when a login began in a browser; there is none for a terminal's and for one that is renewed.
    """
    if not isinstance(token, str) or not 0 < len(token) <= TOKEN_MAX:
        raise TokenRefused(msg("The ID token is missing; the scopes must include `openid`."))
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise TokenRefused(_broken(error)) from error
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in document.algorithms:
        raise TokenRefused(
            msg(
                "The ID token is signed with {algorithm}; allowed are {allowed}.",
                algorithm=repr(algorithm)[:40],
                allowed=", ".join(document.algorithms),
            )
        )
    if key_id is not None and not isinstance(key_id, str):
        raise TokenRefused(msg("The ID token is signed with a key that the provider does not have."))
    key = await keys.find(key_id, algorithm)
    if key is None:
        raise TokenRefused(msg("The ID token is signed with a key that the provider does not have."))
    claims = _verified(token, key, algorithm, document, audience=audience, now=now, skew_s=skew_s)
    if nonce is not None:
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise TokenRefused(msg("The ID token belongs to another login."))
        if now - claims["iat"] > OLDEST_S + skew_s:
            raise TokenRefused(msg("The ID token is too old."))
    if access_token and "at_hash" in claims and claims["at_hash"] != _half(access_token, algorithm):
        raise TokenRefused(msg("The ID token came with another access token."))
    return claims


def _verified(
    token: str, key: Any, algorithm: str, document: Document, *, audience: str, now: float, skew_s: float
) -> dict[str, Any]:
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=audience,
            issuer=document.issuer,
            options={
                "require": ["iss", "sub", "aud", "exp", "iat"],
                # the times are looked at below, by a clock that tests can set
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
    except jwt.InvalidAudienceError as error:
        raise TokenRefused(
            msg("The ID token is for another audience than {audience}.", audience=audience)
        ) from error
    except jwt.InvalidIssuerError as error:
        raise TokenRefused(
            msg("The ID token is of another issuer than {issuer}.", issuer=document.issuer)
        ) from error
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise TokenRefused(_broken(error)) from error
    _check_party(claims, audience)
    _check_times(claims, now, skew_s)
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX or not subject.isprintable():
        raise TokenRefused(msg("The ID token does not identify its user."))
    return claims


def _check_party(claims: dict[str, Any], audience: str) -> None:
    """Refuse a token that was made for another client and names us beside it."""
    party = claims.get("azp")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (party is not None and party != audience) or (several and party is None):
        raise TokenRefused(msg("The ID token is for another audience than {audience}.", audience=audience))


def _check_times(claims: dict[str, Any], now: float, skew_s: float) -> None:
    for name in ("exp", "iat", "nbf", "auth_time"):
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenRefused(msg("The ID token's {name} is not a time.", name=name))
    if not now < claims["exp"] + skew_s:
        raise TokenRefused(msg("The ID token has expired, or the clocks differ."))
    if not max(claims["iat"], claims.get("nbf", 0)) <= now + skew_s:
        raise TokenRefused(
            msg("The ID token is from the future; the clocks differ by more than {n} s.", n=round(skew_s))
        )


def _half(access_token: str, algorithm: str) -> str:
    digest = _DIGESTS[algorithm[-3:]](access_token.encode()).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _broken(error: Exception) -> Message:
    return msg("The ID token is not valid ({why}).", why=f"{type(error).__name__}: {error}"[:200])
