"""The classes that ask providers, by the names that the setting `login` takes."""

from __future__ import annotations

from collections.abc import Callable

from mlp_hub.hub_integration.providers.protocols.provider import Provider
from mlp_hub.settings import Settings


def _oidc(settings: Settings) -> Provider:
    from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider  # noqa: PLC0415 - loads what only this one needs

    return OidcProvider(settings)


def _github(settings: Settings) -> Provider:
    from mlp_hub.hub_integration.providers.protocols.github import GitHubProvider  # noqa: PLC0415

    return GitHubProvider(settings)


PROVIDERS: dict[str, Callable[[Settings], Provider]] = {
    "keycloak": _oidc,
    "oidc": _oidc,
    "github": _github,
}


def provider_of(settings: Settings) -> Provider | None:
    """Make what asks the hub's provider; None where people log in with accounts of the hub alone."""
    make = PROVIDERS.get(settings.login)
    return None if make is None else make(settings)
