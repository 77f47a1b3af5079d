"""Accounts of tenants and not of people, for a tenant's builds and nightly runs."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "svc-"
"""How the users of such accounts are called; no person is."""
NAME_MAX = 28
"""Given: characters of a name: with the prefix as many as a user's name may have."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """An account of a tenant. `ended` ones stay: their name and files are nobody else's afterwards."""

    user: str
    tenant: str
    made_by: str
    made_at: float
    ended: bool = False

    @property
    def name(self) -> str:
        """Name of the account in its tenant."""
        return self.user.removeprefix(PREFIX)


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """A token of such an account, by the hub's id. `until` is when one that was rotated out is refused; None: as long as the hub keeps it."""

    id: str
    user: str
    until: float | None = None


def is_service(user: str) -> bool:
    """Tell whether a user of this name can only be such an account."""
    return user.startswith(PREFIX)
