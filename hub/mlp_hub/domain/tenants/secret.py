"""Secrets that tenants and people keep with the hub, as credentials of an object store; only sealed ones are stored."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """A secret by its name: of a tenant, for all its members, or of a user. `keys` are the names of what is in it."""

    tenant: str  # empty: of the user
    user: str  # empty: of the tenant
    name: str
    keys: tuple[str, ...]
    sealed: bytes = field(repr=False)
    changed_at: float
    changed_by: str

    @property
    def bound(self) -> bytes:
        """What it is sealed together with, so that nobody who writes to the database makes it another's."""
        return f"secret\0{self.tenant}\0{self.user}\0{self.name}".encode()
