"""ID tokens, believed only when the provider signed them, for this hub, for this login, and now."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256, sha384, sha512
from typing import Any, Protocol

import jwt

from mlp_hub.hub_integration.providers.protocols.discovery import Document
from mlp_hub.hub_integration.providers.protocols.provider import TokenRefused
from mlp_language.message import Message, msg

TOKEN_MAX = 256 << 10
SUBJECT_MAX = 255
OLDEST_S = 600.0
"""So long ago at most a token was made that comes with a login."""
TIMES = ("exp", "iat", "nbf", "auth_time")
TIME_MAX = 1 << 53
"""Safety: largest time in seconds; larger numbers, infinity and NaN are not times, and would break or pass comparisons."""
_DIGESTS: dict[str, Callable[..., Any]] = {"256": sha256, "384": sha384, "512": sha512, "DSA": sha512}


class TimeInvalidError(jwt.DecodeError):
    """A time of a token is not a time; its text names the claim."""


class KeySource(Protocol):
    """Part of the provider's keys that is needed."""

    async def find(self, name: str | None, algorithm: str) -> Any:
        """Return the key of this name that signs with this algorithm; None where there is none."""


async def verified(
    token: str, document: Document, keys: KeySource, *, audience: str, required: Sequence[str]
) -> dict[str, Any]:
    """Return `header` and `payload` of a token that the provider signed for this audience, of whatever kind it is.

    Its times are numbers, and not compared with a clock. Raises ProviderAway, or a PyJWTError: InvalidAlgorithmError names
    the algorithm, PyJWKClientError means an unknown key, TimeInvalidError names the claim.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in document.algorithms:
            raise jwt.InvalidAlgorithmError(repr(algorithm)[:40])
        key = await keys.find(header.get("kid"), algorithm)
        if key is None:
            raise jwt.PyJWKClientError("unknown key")
        found = jwt.decode_complete(
            token,
            key,
            algorithms=[algorithm],
            audience=audience,
            issuer=document.issuer,
            options={
                "require": list(required),
                # the caller compares times, by a clock that tests can set
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
    except (ValueError, TypeError, RecursionError) as error:  # the last one by older versions of PyJWT
        raise jwt.DecodeError(f"{type(error).__name__}: {error}") from error
    for name in TIMES:
        value = found["payload"].get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= TIME_MAX:
            raise TimeInvalidError(name)
    return found


async def check(
    token: object,
    document: Document,
    keys: KeySource,
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
        found = await verified(
            token, document, keys, audience=audience, required=("iss", "sub", "aud", "exp", "iat")
        )
    except jwt.PyJWTError as error:
        raise TokenRefused(_refusal(error, document, audience)) from error
    claims: dict[str, Any] = found["payload"]
    _check_party(claims, audience)
    _check_times(claims, now, skew_s)
    if not 0 < len(claims["sub"]) <= SUBJECT_MAX or not claims["sub"].isprintable():
        raise TokenRefused(msg("The ID token does not identify its user."))
    if nonce is not None:
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(errors="replace"), nonce.encode()):
            raise TokenRefused(msg("The ID token belongs to another login."))
        if now - claims["iat"] > OLDEST_S + skew_s:
            raise TokenRefused(msg("The ID token is too old."))
    half = _half(access_token, found["header"]["alg"])
    if access_token and claims.get("at_hash", half) != half:
        raise TokenRefused(msg("The ID token came with another access token."))
    return claims


def _check_party(claims: dict[str, Any], audience: str) -> None:
    """Refuse a token that was made for another client and names us beside it."""
    party = claims.get("azp")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (party is not None and party != audience) or (several and party is None):
        raise TokenRefused(msg("The ID token is for another audience than {audience}.", audience=audience))


def _check_times(claims: dict[str, Any], now: float, skew_s: float) -> None:
    if not now < claims["exp"] + skew_s:
        raise TokenRefused(msg("The ID token has expired, or the clocks differ."))
    if not max(claims["iat"], claims.get("nbf", 0)) <= now + skew_s:
        raise TokenRefused(
            msg("The ID token is from the future; the clocks differ by more than {n} s.", n=round(skew_s))
        )


def _half(access_token: str, algorithm: str) -> str:
    digest = _DIGESTS[algorithm[-3:]](access_token.encode(errors="replace")).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _refusal(error: jwt.PyJWTError, document: Document, audience: str) -> Message:
    if isinstance(error, jwt.InvalidAlgorithmError):
        return msg(
            "The ID token is signed with {algorithm}; allowed are {allowed}.",
            algorithm=str(error),
            allowed=", ".join(document.algorithms),
        )
    if isinstance(error, jwt.PyJWKClientError):
        return msg("The ID token is signed with a key that the provider does not have.")
    if isinstance(error, jwt.InvalidAudienceError):
        return msg("The ID token is for another audience than {audience}.", audience=audience)
    if isinstance(error, jwt.InvalidIssuerError):
        return msg("The ID token is of another issuer than {issuer}.", issuer=document.issuer)
    if isinstance(error, TimeInvalidError):
        return msg("The ID token's {name} is not a time.", name=str(error))
    return msg("The ID token is not valid ({why}).", why=f"{type(error).__name__}: {error}"[:200])
