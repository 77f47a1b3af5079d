"""Ways in which a cluster can run a runtime's ranks, and which of them this one takes: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.executors.base import CannotStart
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import (
    JOBS,
    MPI_JOBS,
    POD_GROUPS,
    PYTORCH_JOBS,
    TF_JOBS,
    VOLCANO_JOBS,
    Kind,
)
from mlp_language.message import Message, msg


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run ranks: by an object of `kind`, which the part of the cluster called `by` makes pods of."""

    kind: Kind
    by: str

    @property
    def title(self) -> Message:
        """Name of it for people."""
        return msg("{kind} of {by}", kind=self.kind.kind, by=self.by)

    @property
    def remedy(self) -> Message:
        """How a cluster gets it that has none."""
        version = self.kind.api_version.partition("/")[2]
        return msg(
            "install the {by}, with its kind {kind}", by=self.by, kind=f"{self.kind.full_name}/{version}"
        )


JOB = Way(JOBS, "Kubernetes")
MPI = Way(MPI_JOBS, "MPI Operator")
TF = Way(TF_JOBS, "Training Operator")
PYTORCH = Way(PYTORCH_JOBS, "Training Operator")
VOLCANO = Way(VOLCANO_JOBS, "Volcano")

WAYS: Mapping[str, tuple[Way, ...]] = {
    "mpi": (MPI,),
    "tf": (TF, VOLCANO, JOB),
    "torch": (PYTORCH, JOB),
    "plain": (JOB,),
}
"""Ways of the platform's runtimes, the best first; a tenant's own runtimes use `plain`.

The last way of all but MPI is one that every cluster has, so that at most MPI has to be installed.
"""


@dataclass(frozen=True, slots=True)
class OperatorWays:
    """Kinds of them that one cluster serves."""

    served: frozenset[Kind] = frozenset({JOBS})

    @property
    def gangs(self) -> bool:
        """Whether pods can be bound all or none: by Volcano's scheduler."""
        return POD_GROUPS in self.served

    def way_of(self, runtime: Runtime, ranks: int) -> Way:
        """Return the way that a job of a runtime takes here; one rank alone needs nobody to bring ranks together.

        Raises `CannotStart` where the cluster has none, naming what would have to be installed.
        """
        if ranks == 1:
            return JOB
        ways = _ways(runtime)
        for way in ways:
            if way.kind in self.served:
                return way
        raise CannotStart(
            msg(
                "this cluster cannot run runtime {runtime} on several ranks: {remedy}",
                runtime=runtime.name,
                remedy=ways[0].remedy,
            )
        )

    def explain(self) -> tuple[Message, ...]:
        """Return which way each of the platform's runtimes takes, and why, for the cluster's administrator."""
        said = []
        for runtime, ways in WAYS.items():
            here = next((way for way in ways if way.kind in self.served), None)
            if here is None:
                said.append(
                    msg(
                        "{runtime}: one rank only; for more, {remedy}",
                        runtime=runtime,
                        remedy=ways[0].remedy,
                    )
                )
            elif here is ways[0]:
                said.append(msg("{runtime}: {way}", runtime=runtime, way=here.title))
            else:
                missing = tuple(way.title for way in ways[: ways.index(here)])
                said.append(
                    msg(
                        "{runtime}: {way}, because the cluster has no {missing}",
                        runtime=runtime,
                        way=here.title,
                        missing=missing,
                    )
                )
        if self.gangs:
            said.append(msg("gangs: Volcano binds all pods of a job, or none"))
        else:
            said.append(
                msg(
                    "gangs: pods are bound one by one; with Volcano all of a job's pods would be bound, or none, even if the cluster has changed meanwhile"
                )
            )
        return tuple(said)


def _ways(runtime: Runtime) -> tuple[Way, ...]:
    return WAYS.get(runtime.name, WAYS["plain"]) if runtime.tenant is None else WAYS["plain"]


async def discover(client: KubernetesClient) -> OperatorWays:
    """Ask a cluster what it serves."""
    wanted = {way.kind for ways in WAYS.values() for way in ways} | {POD_GROUPS}
    return OperatorWays(frozenset([kind for kind in sorted(wanted, key=_path) if await client.serves(kind)]))


def _path(kind: Kind) -> str:
    return kind.path()
