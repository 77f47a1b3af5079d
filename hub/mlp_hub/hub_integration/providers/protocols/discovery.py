"""Announcements of a provider of OpenID Connect: its addresses, and its signing keys; cached and reread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway, ProviderClient
from mlp_hub.settings.login import is_loopback
from mlp_language.message import msg

WELL_KNOWN = "/.well-known/openid-configuration"
READ_AGAIN_S = 300.0
NOW_S = 5.0
"""Seconds for which a document proves that the provider is up, before a browser is sent to it.

A provider that is down is not asked again for the same time.
"""
KEYS_READ_AGAIN_S = 3600.0
"""Seconds for which a key that the provider withdrew can still be accepted, at most."""
KEYS_MAX = 100
_UNKNOWN_KEYS = {"keys": Rate(0.1, 5)}
"""Limit on the requests that tokens with unknown keys cause."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms with a public key: a key that anybody can read cannot be used to sign."""
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Document:
    """A provider's discovery document, checked."""

    issuer: str
    """As the provider writes it, and its tokens too."""
    fields: Mapping[str, Any]

    def url(self, name: str) -> str:
        """Return an address; empty where the provider has none."""
        return str(self.fields.get(name) or "")

    def lists(self, name: str) -> tuple[str, ...]:
        """Return a list of names; empty where there is none."""
        found = self.fields.get(name)
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def basic(self) -> bool:
        """Whether a client sends its secret in a header, which is the default."""
        ways = self.lists("token_endpoint_auth_methods_supported")
        return not ways or "client_secret_basic" in ways

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Which of the algorithms that are safe tokens may be signed with."""
        announced = self.lists("id_token_signing_alg_values_supported")
        return tuple(name for name in ALGORITHMS if name in announced) or ("RS256",)

    @property
    def says_issuer(self) -> bool:
        """Whether who comes back from it says from where (RFC 9207)."""
        return self.fields.get("authorization_response_iss_parameter_supported") is True


class Discovery:
    """The document of one issuer. An old one is taken where it cannot be read again."""

    def __init__(self, issuer: str, title: str, asker: ProviderClient, clock: Clock = time.monotonic) -> None:
        self._issuer, self._title, self._asker, self._clock = issuer, title, asker, clock
        self._kept: Document | None = None
        self._away: ProviderAway | None = None
        """Error of the last read; None: no error."""
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def document(self, *, within_s: float = READ_AGAIN_S) -> Document:
        """Return it, or raise ProviderAway.

        One that is read again in vain holds all the same, unless it is to show that the provider is there now (`NOW_S`).
        """
        if kept := self._new_enough(within_s):  # without waiting for who reads it again
            return kept
        async with self._lock:
            if kept := self._new_enough(within_s):
                return kept
            kept, age = self._kept, self._clock() - self._read_at
            # who comes while it is away is told at once, and does not wait for its silence once more
            if self._away is None or age >= min(within_s, NOW_S):
                try:
                    kept = self._kept = self._checked(await self._asker.get(f"{self._issuer}{WELL_KNOWN}"))
                except ProviderAway as away:
                    self._away = away
                else:
                    self._away = None
                self._read_at = self._clock()
            if self._away is not None and (kept is None or within_s < READ_AGAIN_S):
                raise ProviderAway(self._away.message, self._away.misconfigured)
            assert kept is not None  # noqa: S101 - there is one where it is not away
            return kept

    def _new_enough(self, within_s: float) -> Document | None:
        new = self._away is None and self._clock() - self._read_at < within_s
        return self._kept if new else None

    def _checked(self, answer: Any) -> Document:
        fields = answer.object()
        if answer.refused or not fields:
            text = msg(
                "{title} has no discovery document at {url}.",
                title=self._title,
                url=f"{self._issuer}{WELL_KNOWN}",
            )
            raise ProviderAway(text, misconfigured=True)
        said = fields.get("issuer")
        if not isinstance(said, str) or said.rstrip("/") != self._issuer:
            raise ProviderAway(
                msg(
                    "{title} calls itself {said}, but MLP_LOGIN_ISSUER is {issuer}; they must be the same.",
                    title=self._title,
                    said=repr(said)[:200],
                    issuer=self._issuer,
                ),
                misconfigured=True,
            )
        for name in (*_NEEDED, "userinfo_endpoint", "end_session_endpoint"):
            if not self._may_be(fields.get(name), needed=name in _NEEDED):
                raise ProviderAway(
                    msg(
                        "{title} announces {url} as its {name}; it must be an https:// address.",
                        title=self._title,
                        url=repr(fields.get(name))[:200],
                        name=name,
                    ),
                    misconfigured=True,
                )
        return Document(said, fields)

    def _may_be(self, url: object, *, needed: bool) -> bool:
        if url is None:
            return not needed
        if not isinstance(url, str):
            return False
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        # secrets go there: in the clear only where the provider is on this machine itself
        plain = parts.scheme == "http" and self._issuer.startswith("http:") and is_loopback(host)
        return bool(host) and (parts.scheme == "https" or plain)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key that a provider signs tokens with."""

    name: str | None
    family: str
    algorithm: str | None
    """The only one that it is for; None: any of its family's."""
    key: Any


class Keys:
    """The keys that a provider's tokens are signed with now. A key that is not known is looked for, not too often."""

    def __init__(
        self, discovery: Discovery, title: str, asker: ProviderClient, clock: Clock = time.monotonic
    ) -> None:
        self._discovery, self._title, self._asker, self._clock = discovery, title, asker, clock
        self._kept: tuple[SigningKey, ...] | None = None
        self._read_at = 0.0
        self._away: tuple[ProviderAway, float] | None = None
        """Error of the last read of the keys, and its time; None: no error."""
        self._limiter = Limiter(clock, _UNKNOWN_KEYS)
        self._lock = asyncio.Lock()

    async def find(self, name: str | None, algorithm: str) -> Any:
        """Return the key of this name that signs with this algorithm; None where there is none; or raise ProviderAway."""
        if (
            self._clock() - self._read_at < KEYS_READ_AGAIN_S
            and (key := self._look(name, algorithm)) is not None
        ):
            return key
        async with self._lock:  # who waits for another's question finds its answer
            if self._kept is None or self._clock() - self._read_at >= KEYS_READ_AGAIN_S:
                await self._read()
            found = self._look(name, algorithm)
            if found is None and not self._limiter.take_token("keys", ""):
                await self._read()
                found = self._look(name, algorithm)
            return found

    def _look(self, name: str | None, algorithm: str) -> Any:
        family = _FAMILIES[algorithm[:2]]
        fitting = [
            one for one in self._kept or () if one.family == family and one.algorithm in (None, algorithm)
        ]
        if name is None:  # then there is one, or it cannot be said which is meant
            return fitting[0].key if len(fitting) == 1 else None
        return next((one.key for one in fitting if one.name == name), None)

    async def _read(self) -> None:
        if self._away is not None and self._clock() - self._away[1] < NOW_S:  # not each one's wait anew
            raise ProviderAway(self._away[0].message, self._away[0].misconfigured)
        try:
            await self._read_now()
        except ProviderAway as away:
            self._away = away, self._clock()
            raise
        self._away = None

    async def _read_now(self) -> None:
        document = await self._discovery.document()
        answer = await self._asker.get(document.url("jwks_uri"))
        listed = answer.object().get("keys")
        if answer.refused or not isinstance(listed, list):
            raise ProviderAway(
                msg("{title} does not declare the keys that it signs with.", title=self._title)
            )
        self._kept = tuple(key for one in listed[:KEYS_MAX] if (key := _key(one)) is not None)
        self._read_at = self._clock()


def _key(listed: Any) -> SigningKey | None:
    """Read one key; one that we cannot use is as if it were not there."""
    if (
        not isinstance(listed, dict)
        or listed.get("kty") not in _FAMILIES.values()
        or listed.get("use", "sig") != "sig"
    ):
        return None
    try:
        key = PyJWK.from_dict(listed).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    return SigningKey(listed.get("kid"), listed["kty"], listed.get("alg"), key)
