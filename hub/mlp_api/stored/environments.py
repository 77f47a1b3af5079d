"""Environments on the wire: the request, the contents, and the progress of the build."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.jobs.jobs import EnvironmentName
from mlp_api.localized import Text
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


EnvironmentImage = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        description="an image of containers: REGISTRY/NAME:TAG, or REGISTRY/NAME@sha256:DIGEST, which never means another one",
    ),
]


class EnvironmentCreate(Request, kw_only=True):
    """An environment to make: its name, and one of two.

    `requirements`, as a requirements.txt has them, where jobs run on the hub's machine; an `image` where they run in containers.
    """

    name: EnvironmentName
    requirements: Requirements | None = None
    image: EnvironmentImage | None = None


class EnvironmentInfo(Response):
    """An environment of a tenant.

    `packages` are those of its lock with their versions, none before it is resolved; `lock` is the SHA-256 of that. `size` are the bytes
    that its files take of the tenant's storage; environments of one lock have the same files, which `shared_with` others, and are
    charged once. `jobs` have not ended and use it; `servers` are the notebook servers that run and were started with it. `message` says why
    it is in error.

    One of an `image` is ready at once, has no packages that are known here and no size; its `lock` is the digest that it was named with,
    empty where it was named by a tag.
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
    servers: list[Text]
    message: Text
    created_at: datetime
    image: str | None


class EnvironmentDetail(Response):
    """An environment with the requirements it was asked for with, its whole lock, and the last that was written while it was made."""

    environment: EnvironmentInfo
    requirements: str
    lock: str
    log: str
