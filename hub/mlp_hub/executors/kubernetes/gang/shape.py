"""Common parts of a gang for all ways: its requests, its placement, its ranks' identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.domain.runtime.runtime import roles_of
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.operators import Way
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Kind, Object

LONGEST_NAME = 40
"""Given: characters of a gang's name: operators add a role and a number to it, and that becomes a host's name."""
LEAST_UID = 1000
"""Given: uid of a rank where users have no individual uid; never root."""


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks of a gang that are alike to the cluster: `count` of one role, from the rank `first` on."""

    role: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Outline:
    """Gang to describe: `together` if it is bound as a whole; its gpus are of the resource `device`."""

    spec: LaunchSpec
    at: Installation
    way: Way
    name: str
    together: bool
    device: str

    @property
    def uid(self) -> int:
        """Return whose processes its ranks are."""
        return self.spec.uid or LEAST_UID

    @property
    def namespace(self) -> str:
        """Namespace of its tenant."""
        return self.at.namespace_of(self.spec.tenant)

    @property
    def queue(self) -> str:
        """Volcano's queue of its tenant, which is called as its namespace; Volcano's own where the hub makes none."""
        return "default" if self.at.namespaces else self.namespace

    @property
    def roles(self) -> tuple[str, ...]:
        """Role of each rank."""
        return roles_of(self.spec.runtime, self.spec.workers, self.spec.ps)

    @property
    def leader(self) -> int | None:
        """Rank with whose end the gang has ended; None: with the end of all."""
        ends_with = self.spec.runtime.ends_with
        return None if ends_with is None else self.roles.index(ends_with)

    @property
    def group(self) -> str:
        """Name of the group of its pods; not its own, which an operator gives to a group that it may make itself."""
        return f"{self.name}-gang"

    @property
    def by_role(self) -> Sequence[RankGroup]:
        """Ranks by role, in the order of their numbers; those of a role follow each other."""
        roles = self.roles
        return [RankGroup(role, roles.index(role), roles.count(role)) for role in dict.fromkeys(roles)]

    @property
    def image(self) -> str:
        """Image of its pods; the job's image has priority over the image of its runtime."""
        return self.spec.image or self.spec.runtime.image or self.at.image

    @property
    def deadline_s(self) -> int | None:
        """Seconds after which the cluster ends it by itself.

        The rank program keeps the time limit, to the second and from the start of the program; the cluster counts from
        when it took the object, and ends only what nobody ended.
        """
        if self.spec.time_limit is None:
            return None
        return int(self.spec.time_limit + self.spec.grace_s) + self.at.start_slack_s

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all that it consists of."""
        spec = self.spec
        return {
            **self.at.own,
            names.COMPONENT: "job",
            names.TENANT: names.label_value(spec.tenant),
            names.USER: names.label_value(spec.user),
            names.JOB: names.label_value(spec.job),
            names.RUN: str(spec.run),
            names.ATTEMPT: names.label_value(spec.attempt),
        }

    def object(self, kind: Kind, name: str | None = None, **fields: object) -> Object:
        """Make an object of the gang's in the tenant's namespace."""
        made = kind.named(name or self.name, self.namespace, **fields)
        made["metadata"]["labels"] = self.labels
        return made
