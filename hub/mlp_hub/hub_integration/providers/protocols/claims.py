"""Meaning of a provider's claims: a person's name, address and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mlp_hub.domain.text import storable
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity, TokenRefused
from mlp_hub.settings import Settings
from mlp_language.message import msg

GROUPS_MAX = 10_000
"""Safety: groups of one person: bounds memory, and what a database row holds."""
GROUP_MAX = 255
"""Characters of a group's name: as many as JupyterHub keeps."""
TEXT_MAX = 255


class Claims:
    """Reads claims by the settings."""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.login_name_claim or settings.login_kind.name_claim
        self._groups = settings.login_groups_claim or settings.login_kind.groups_claim
        self._admins = frozenset(settings.login_admin_groups)

    def identity(
        self, issuer: str, subject: str, claims: Mapping[str, Any], *, known_as: str = ""
    ) -> ProviderIdentity:
        """Return the standing of a person, who is called `known_as` here if already known.

        Raises TokenRefused where no claim gives a name.
        """
        verified = claims.get("email_verified") is True  # the text "true" is what somebody typed
        if self._name == "email" and not verified and not known_as:
            raise TokenRefused(
                msg(
                    "The e-mail address is not verified, so it cannot be a user name. Verify it, and log in again."
                )
            )
        name = text_of(found(claims, self._name)).strip() or known_as
        if not name:
            raise TokenRefused(
                msg(
                    "The claim {claim} for the user name is missing; MLP_LOGIN_NAME_CLAIM names another claim.",
                    claim=self._name,
                )
            )
        identity = ProviderIdentity(
            issuer=issuer,
            subject=subject,
            claimed_name=name[:TEXT_MAX],
            email=text_of(claims.get("email"))[:TEXT_MAX],
            email_verified=verified,
            groups=(),
            admin=False,
        )
        return self.with_groups(identity, groups(found(claims, self._groups)) if self._groups else ())

    def with_groups(self, identity: ProviderIdentity, names: tuple[str, ...]) -> ProviderIdentity:
        """Say of somebody which groups they are in."""
        return replace(identity, groups=names, admin=not self._admins.isdisjoint(names))

    def says_groups(self, claims: Mapping[str, Any]) -> bool:
        """Whether groups are among them."""
        return found(claims, self._groups) is not None


def found(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path with dots (`realm_access.roles`); None where there is none."""
    if name in claims:  # a name may be an address, with dots of its own
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def text_of(value: object) -> str:
    """Return a claim that is a text. Return an empty text for others, and for a text that databases cannot hold: people write some claims."""
    return value if isinstance(value, str) and storable(value) else ""


def groups(value: object) -> tuple[str, ...]:
    """Return the names of groups, each once, sorted.

    Other values are left out. Letters keep their case.
    """
    listed: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    names = {
        one for one in listed if isinstance(one, str) and 0 < len(one) <= GROUP_MAX and one.isprintable()
    }
    if len(names) > GROUPS_MAX:
        raise TokenRefused(
            msg(
                "The provider lists {count} groups; the limit is {most}. Have it send fewer to this hub.",
                count=len(names),
                most=GROUPS_MAX,
            )
        )
    return tuple(sorted(names))
