"""Tenants, their members and the users of the hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import Quota
from mlp_language.message import Message, msg

NUMBERS_GIVEN = "users.numbers_given"
"""Key of the hub's value that holds the highest number of a user that a database before this one gave; none up to it is given again."""
DEFAULT_TENANT = "default"


SHARED, ENCRYPTED, DEDICATED = "shared", "encrypted", "dedicated"
"""Grades in which the files of a tenant are kept apart from those of others."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Isolation of a tenant's files: a grade, and the path of a separate root, where the tenant has one."""

    grade: str = SHARED
    root: str = ""


class Role(StrEnum):
    """Role of a member in a tenant."""

    MEMBER = "member"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Lowering:
    """Lowered guarantee of a tenant that is idle for long: the values that replace the configured ones."""

    since: float
    share: float  # of the guarantee that is left, at least
    lending_limit: Quota | None
    reserved: Quota | None
    message: Message


@dataclass(frozen=True, slots=True)
class Tenant:
    """An owner of quota. Its use is derived from the ledger and stored nowhere.

    `lending_limit` and `reserved` are as configured; `in_force` has what holds now.
    """

    name: str
    quota: Quota = field(default_factory=Quota)
    weight: float = 1.0
    cohort: str | None = None
    parent: str | None = None
    borrowing_limit: Quota | None = None
    lending_limit: Quota | None = None
    reserved: Quota | None = None
    queue_order: str = (
        "priority"  # what its own jobs go by, where tenants take turns: see `scheduler.policy.ORDERS`
    )
    isolation: str = SHARED  # how its files are to be kept
    data_root: str = ""  # where, if that is `dedicated`
    network: str | None = None  # none or outbound, of its jobs and notebooks; None: as the hub's settings say
    leavers: str = "finish"  # finish or stop: what happens to running jobs of who leaves it
    datasets: str = "own"  # own or members: whose datasets its members' jobs may read
    joining: str = "closed"  # closed or asked: whether people may ask for a place in it
    description: str = ""
    idle_since: float | None = None  # as far as it is looked at: under a policy for idle tenants
    lowered: Lowering | None = None

    @property
    def configured(self) -> Tenant:
        """The tenant with all of its guarantee, whether it is lowered or not."""
        return self if self.lowered is None else replace(self, lowered=None)

    @property
    def kept(self) -> Isolation:
        """Chosen isolation of its files.

        While they are moved to it, they are still kept as its relocation describes.
        """
        return Isolation(self.isolation, self.data_root)

    @property
    def in_force(self) -> Tenant:
        """Tenant as others see it now: with a lowered guarantee, if it is lowered."""
        if self.lowered is None:
            return self
        return replace(self, lending_limit=self.lowered.lending_limit, reserved=self.lowered.reserved)


@dataclass(frozen=True, slots=True)
class Member:
    """A user's place in a tenant. `source` is `local`, or `group` when a JupyterHub group gave it."""

    tenant: str
    user: str
    role: Role = Role.MEMBER
    source: str = "local"


@dataclass(frozen=True, slots=True)
class User:
    """Person as the service knows them; `number` makes their uid on a hub that runs as root.

    `language` is the tag of their chosen language. Empty means the language of the browser or terminal.
    """

    name: str
    number: int
    default_tenant: str = DEFAULT_TENANT
    language: str = ""


def no_such_tenant(name: str, mine: Iterable[str] = ()) -> Refused:
    """Return the answer for a tenant that the asker may not know of, or that is not there.

    `mine` are the tenants of the person whose work it is for: the answer lists them, so that somebody who was taken out of
    a tenant reads that. Everybody knows of `default`, so the answer names it.
    """
    if name != DEFAULT_TENANT:
        if known := tuple(sorted(mine)):
            return Refused(
                Reason.NOT_FOUND, msg("you are not in a team {name}; yours: {mine}", name=name, mine=known)
            )
        return not_found("tenant", name)
    return Refused(
        Reason.NOT_FOUND,
        msg(
            "you are not a member of {name}: it is for users who are in no other team, and users whom an administrator adds",
            name=name,
        ),
    )
