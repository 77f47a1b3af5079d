"""Secrets that tenants and people keep with the hub, as credentials of an object store; only sealed ones are stored."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """Secret by its name: of a tenant, for all its members, or of a user; `keys` are the names of its values."""

    tenant: str  # empty: of the user
    user: str  # empty: of the tenant
    name: str
    keys: tuple[str, ...]
    sealed: bytes = field(repr=False)
    changed_at: float
    changed_by: str

    @property
    def bound(self) -> bytes:
        """Data that it is sealed with, so that a writer to the database cannot give it to another owner."""
        return f"secret\0{self.tenant}\0{self.user}\0{self.name}".encode()
