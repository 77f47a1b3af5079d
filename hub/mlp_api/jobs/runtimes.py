"""Objects of the REST contract about runtimes: the platform's own, and those that tenants register."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from mlp_api.jobs.jobs import VARIABLE_PATTERN, EnvName
from mlp_api.types import LINE_PATTERN, NAME_PATTERN, Request, Response

MOST_ARGUMENTS = 64
MOST_VARIABLES = 64
MOST_ROLES = 8
Line = Annotated[str, Meta(pattern=LINE_PATTERN, max_length=500)]
Template = Annotated[str, Meta(max_length=1000)]
Program = Annotated[list[Template], Meta(min_length=1, max_length=MOST_ARGUMENTS)]
RoleName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=20)]
Package = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]


class RuntimeRole(Request):
    """Role of ranks: `count` of the ranks that `--workers` gives, or all the remaining ones where it is null.

    Ranks of the role `ps` are additional, and their number is that of `--ps`. `program` is the command
    of such a rank, where it differs from the runtime's.
    """

    name: RoleName
    count: Annotated[int, Meta(ge=1, le=1000)] | None = None
    program: Program | None = None


class RuntimeUpdate(Request):
    """Runtime of a tenant.

    Commands are lists of arguments, and a shell does not read them. Commands and `env` can have places
    in braces. `launcher` starts the ranks and gives each its number in the variable `rank_env`. Without
    a launcher the ranks are started side by side. `needs` is the Python package that every program
    needs to start. The job has ended when all ranks have ended, or at the latest `linger_s` seconds
    after the first rank of the role `ends_with`. Exit statuses in `success` are not failures. 0 is
    never a failure.
    """

    title: Annotated[str, Meta(pattern=LINE_PATTERN, min_length=1, max_length=60)]
    description: Line = ""
    program: Program = field(default_factory=lambda: ["{program}"])
    env: Annotated[dict[EnvName, Template], Meta(max_length=MOST_VARIABLES)] = field(default_factory=dict)
    roles: Annotated[list[RuntimeRole], Meta(min_length=1, max_length=MOST_ROLES)] = field(
        default_factory=lambda: [RuntimeRole(name="worker")]
    )
    launcher: Program | None = None
    rank_env: EnvName = "RANK"
    needs: Package | None = None
    image: Annotated[str, Meta(max_length=500)] | None = None
    ends_with: RoleName | None = None
    linger_s: Annotated[float, Meta(ge=0, le=600)] = 10.0
    success: Annotated[list[Annotated[int, Meta(ge=0, le=127)]], Meta(max_length=16)] = field(
        default_factory=lambda: [0]
    )


class RuntimeInfo(Response):
    """A way to run a program on several ranks; `ps` says whether it may have parameter servers.

    `tenant` is whose it is, null for the platform's own. New jobs may use it while its `state` is `approved`.
    """

    name: str
    title: str
    description: str
    ps: bool
    tenant: str | None
    state: Literal["submitted", "approved", "disabled"]
    program: list[str]
    env: dict[str, str]
    roles: list[RuntimeRole]
    launcher: list[str] | None
    rank_env: str
    needs: str | None
    image: str | None
    ends_with: str | None
    linger_s: float
    success: list[int]
    changed_by: str | None
    changed_at: datetime | None
