"""Provider's answers about a person, for the code that asks it and the code that acts on them."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

from mlp_language.message import Message

ARRIVAL = "arrival"
"""Key of a `LoginResult` and its `PendingLogin` in the data that JupyterHub's `authenticate` gets."""
AuthState = Mapping[str, Any]
"""Stored data of a person's login with the provider, encrypted: tokens and identity.

See `providers/protocols/tokens.py`.
"""


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """Identity of a person at the provider, and their groups, right now."""

    issuer: str
    subject: str
    """Permanent id of the person: with the issuer it never means somebody else."""
    claimed_name: str
    """Name of the person there, which can change, and can be somebody else's later."""
    email: str
    email_verified: bool
    """An address that is not verified is whatever was typed."""
    groups: tuple[str, ...]
    admin: bool
    """Whether one of the groups is of `login_admin_groups`."""


@dataclass(frozen=True, slots=True)
class LoginEnded:
    """A person's login at the provider is over: it was taken away, or only that session ended."""

    why: Literal["disabled", "session"]


@dataclass(frozen=True, slots=True)
class ProviderUnreachable:
    """Failure of the provider to answer, or to answer as it should; nothing is known about anyone."""

    message: Message
    misconfigured: bool = False
    """Whether the hub's settings are why (`asking.ProviderAway`)."""


@dataclass(eq=False)
class TokenRefused(Exception):  # noqa: N818 - what happened
    """A token, or a code, that is not one of this provider for this hub; says why."""

    message: Message


class NotStoredError(Exception):
    """The hub's database took no write, for example on a full disk: the provider's answer about a person is not stored."""


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A login of a browser that was begun, as only that browser knows it (`states.py`)."""

    issuer: str
    redirect_uri: str
    state: str
    nonce: str
    verifier: str
    """Proof that the person with the code is the one who began (PKCE)."""
    next: str
    """Page to continue with, as requested."""
    at: float
    confirms: str = ""
    """The person who is logged in, and only says again that it is them."""

    @property
    def fresh(self) -> bool:
        """Whether the password must be entered now."""
        return bool(self.confirms)

    @property
    def challenge(self) -> str:
        """Digest of the verifier for the provider."""
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class LoginResult:
    """Somebody who came back from the provider, checked."""

    identity: ProviderIdentity
    auth_state: dict[str, Any]
    entered_at: float | None
    """When the password was entered there; None: it does not say."""


class Provider(Protocol):
    """Asks one provider about people."""

    issuer: str
    title: str

    async def login_url(self, pending: PendingLogin) -> str:
        """Return where a browser goes to log in, or raise ProviderAway."""

    async def arrived(self, pending: PendingLogin, code: str, said_issuer: str) -> LoginResult:
        """Find out who came back from there with this code; raise TokenRefused or ProviderAway."""

    async def logout_url(self, state: AuthState, back: str) -> str:
        """Return the address that logs a browser out there too; empty without such an address."""

    async def refreshed(
        self, auth_state: AuthState
    ) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
        """Ask for the person's present standing, and return the data to keep from now on."""

    async def unreachable(self) -> ProviderUnreachable | None:
        """Look whether it is there; return why not. None too where that cannot be asked but about a person."""

    async def identity_of(
        self, access_token: str, id_token: str, *, client_id: str
    ) -> ProviderIdentity | LoginEnded | ProviderUnreachable:
        """Check tokens that a client of ours was given, as a terminal's, and ask whose they are; or raise TokenRefused."""
