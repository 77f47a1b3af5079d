"""Stored data of a person's login with the provider: JupyterHub's `auth_state`.

It is encrypted with a key of the state directory's secrets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mlp_hub.hub_integration.providers.protocols.provider import (
    AuthState,
    LoginEnded,
    ProviderIdentity,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway

SAME_PERSON = ("issuer", "subject")
OWN_OF_A_SESSION = ("access_token", "refresh_token", "id_token", "session")
"""Fields of a login; the others are the person's standing, whatever session it was asked by."""


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """A login as it is kept."""

    issuer: str
    subject: str
    access_token: str
    refresh_token: str = ""
    id_token: str = ""
    """By which the provider knows which of its sessions is to end."""
    session: str = ""
    """The provider's name of that session (`sid`), where it says one."""
    claimed_name: str = ""
    email: str = ""
    email_verified: bool = False
    groups: tuple[str, ...] = ()
    admin: bool = False
    groups_in_token: bool = False
    """Whether groups are said in ID tokens alone: then only a new one says how they are now."""

    @property
    def identity(self) -> ProviderIdentity:
        """How the person stood when it was written."""
        return ProviderIdentity(
            **{field.name: getattr(self, field.name) for field in fields(ProviderIdentity)}
        )

    def to_state(self) -> dict[str, Any]:
        """Write it as `auth_state`."""
        return {**asdict(self), "groups": list(self.groups)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> KeptLogin | None:
        """Read it; None where it is none of ours: of an older hub, or of another way to log in."""
        if not state:
            return None
        try:
            made = cls(**{key: value for key, value in state.items() if key in cls.__dataclass_fields__})
            return cls(**{**asdict(made), "groups": tuple(made.groups)})
        except TypeError:
            return None


async def asked_anew(
    issuer: str,
    state: AuthState,
    ask: Callable[[KeptLogin], Awaitable[KeptLogin | LoginEnded]],
    is_there: Callable[[], Awaitable[object]],
) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
    """Ask a provider how a person stands by the login that is kept of them.

    A login with another provider ends once this one is known to be there (`is_there` raises ProviderAway): a mistyped
    address is nobody's provider, and must end nobody's login.
    """
    kept = KeptLogin.from_state(state)
    if kept is None:
        return LoginEnded("session")
    try:
        if kept.issuer != issuer:
            await is_there()
            return LoginEnded("session")
        found = await ask(kept)
    except ProviderAway as away:
        return ProviderUnreachable(away.message, away.misconfigured)
    except TokenRefused:
        return LoginEnded("session")
    return found if isinstance(found, LoginEnded) else (found.identity, found.to_state())
