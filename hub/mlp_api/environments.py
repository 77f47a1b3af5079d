"""Environments on the wire: what is asked for, what they are made of, and how their making goes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.jobs import EnvironmentName
from mlp_api.said import Text
from mlp_api.types import Request, Response

EnvironmentState = Literal["creating", "ready", "error", "deleting"]
Requirements = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200_000,
        description="packages, one a line, with versions where they matter: pandas>=2.2; no options, addresses or paths",
    ),
]


class EnvironmentCreate(Request, kw_only=True):
    """An environment to make: its name, and its requirements as a requirements.txt has them."""

    name: EnvironmentName
    requirements: Requirements


class EnvironmentInfo(Response):
    """An environment of a tenant.

    `packages` are those of its lock with their versions, none before it is resolved; `lock` is the SHA-256 of that. `size` are the bytes
    that its files take of the tenant's storage; environments of one lock have the same files, which `shared_with` others, and are
    charged once. `jobs` have not ended and use it. `message` says why it is in error.
    """

    name: str
    tenant: str
    user: str
    state: EnvironmentState
    size: int
    packages: dict[str, str]
    lock: str
    shared_with: list[str]
    jobs: list[str]
    message: Text
    created_at: datetime


class EnvironmentDetail(Response):
    """An environment with the requirements it was asked for with, its whole lock, and the last that was written while it was made."""

    environment: EnvironmentInfo
    requirements: str
    lock: str
    log: str
