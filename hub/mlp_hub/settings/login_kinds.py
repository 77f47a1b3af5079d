"""Ways to log in by the values of the setting `login`, with all other properties that depend on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoginKind:
    """A row of the table. `words` complete "How people log in: "."""

    words: str
    title: str = ""
    """Name of the provider where no setting gives one; empty where the login has no provider."""
    issuer: str = ""
    """Where it is, where there is one such provider in the world."""
    scopes: tuple[str, ...] = ()
    name_claim: str = ""
    groups_claim: str = ""
    """Claim with the groups; empty where the class of the provider asks for groups itself."""
    codes_at: str = ""
    """Where codes are exchanged, below its address; empty: it speaks OpenID Connect and announces that."""


LOGIN_KINDS: Mapping[str, LoginKind] = {
    "accounts": LoginKind("accounts of this hub, which an administrator approves"),
    "keycloak": LoginKind(
        "a realm of Keycloak",
        "Keycloak",
        scopes=("openid", "profile", "email"),
        name_claim="preferred_username",
        groups_claim="groups",
    ),
    "oidc": LoginKind(
        "a provider of OpenID Connect",
        "the company's account",
        scopes=("openid", "profile", "email"),
        name_claim="preferred_username",
        groups_claim="groups",
    ),
    "github": LoginKind(
        "GitHub, whose organisations and teams are the groups",
        "GitHub",
        "https://github.com",
        scopes=("read:org", "user:email"),
        name_claim="login",
        codes_at="/login/oauth/access_token",
    ),
}


def by_default(read: Callable[[LoginKind], str]) -> str:
    """Return the default as text: the value of the first provider, then the values that differ."""
    told = {name: read(kind) for name, kind in LOGIN_KINDS.items() if kind.title and read(kind)}
    usual = next(iter(told.values()))
    others = [f"of {name} `{value}`" for name, value in told.items() if value != usual]
    return ", ".join([f"`{usual}`", *others])
