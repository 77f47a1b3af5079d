"""Tenants, their members and the users of the hub."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.resources import Quota

DEFAULT_TENANT = "default"


class Role(StrEnum):
    """What a member may do in a tenant."""

    MEMBER = "member"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Tenant:
    """An owner of quota. Its use is derived from the ledger and stored nowhere."""

    name: str
    quota: Quota = field(default_factory=Quota)
    weight: float = 1.0
    cohort: str | None = None
    parent: str | None = None
    borrowing_limit: Quota | None = None
    lending_limit: Quota | None = None
    reserved: Quota | None = None
    isolation: str = "shared"  # shared, encrypted, dedicated
    description: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A user's place in a tenant. `source` is `local`, or `group` when a JupyterHub group gave it."""

    tenant: str
    user: str
    role: Role = Role.MEMBER
    source: str = "local"


@dataclass(frozen=True, slots=True)
class User:
    """A person as the service knows them; `number` makes their uid on a hub that runs as root."""

    name: str
    number: int
    default_tenant: str = DEFAULT_TENANT
