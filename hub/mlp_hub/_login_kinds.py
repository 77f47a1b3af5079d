"""Ways to log in by the names that the setting `login` takes, with what else of a hub depends on which it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoginKind:
    """A row of the table. `words` complete "How people log in: "."""

    words: str
    title: str = ""
    """What the provider is called where no setting says it; empty: there is no provider."""
    issuer: str = ""
    """Where it is, where there is one such provider in the world."""
    scopes: tuple[str, ...] = ()
    name_claim: str = ""
    groups_claim: str = ""


AUTHENTICATORS: Mapping[str, LoginKind] = {
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
    ),
}
