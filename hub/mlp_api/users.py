"""Objects of the REST contract that are about people: accounts, sessions, and what the spawner asks of a user."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.types import LINE_PATTERN, Name, Request, Response

Scope = Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
UserName = Annotated[str, Meta(min_length=1, max_length=255)]


class UserCreate(Request):
    """Sign up. The password goes to the hub's authenticator and is kept nowhere else."""

    username: UserName
    password: Annotated[str, Meta(min_length=1, max_length=1024)]
    tenant: Name | None = None


class TokenCreate(Request):
    """A token of somebody, for the operator's command. No `scopes`: all that the user may; no `expires_in`: for ever."""

    note: Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=100)] | None = None
    expires_in: Annotated[int, Meta(ge=1, le=315_360_000)] | None = None


class User(Response):
    """A user of the hub. `new` is who asked for an account and was never let in, `applied_for` the tenant they named."""

    username: str
    state: Literal["NotActive", "Actived"]
    tenants: list[str]
    admin: bool = False
    default_tenant: str = "default"
    new: bool = False
    applied_for: str | None = None


class SpawnInfo(Response):
    """What the spawner needs to know of a user: `GET /users/{user}:spawn`, with the ledger's scope only.

    Where the hub runs as root, the user's processes run as system user `first_uid` plus `number`.
    """

    number: int
    tenants: list[str]
    default_tenant: str
    room: dict[str, SpawnRoom]


class SpawnRoom(Response):
    """What is left of a tenant's quota: cpu in cores, ram in MiB. Null quotas: what the nodes have.

    `cpu_back` and `ram_back`: of its own quota, what a server would have besides by taking it back from tenants that
    borrowed it (`back_from`).
    """

    cpu: float | None
    cpu_free: float | None
    ram: int | None
    ram_free: int | None
    cpu_back: float
    ram_back: int
    back_from: list[str]


class Keeping(Response):
    """How long the hub keeps a user's jobs that have ended; null: without a limit.

    They go `job_days` days after they ended; of more than `jobs`, or of more than `job_mib` in the database, the oldest first.
    """

    job_days: float | None
    jobs: int | None
    job_mib: float | None


class Session(Response):
    """Who is asking; what a page needs before anything else."""

    username: str
    admin: bool
    tenants: list[str]
    tenant_admin: list[str]
    xsrf: str
    version: str
    keeping: Keeping
