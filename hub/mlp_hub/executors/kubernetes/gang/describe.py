"""From an attempt to the objects that run it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from mlp_hub.executors.base import CannotStart, LaunchSpec
from mlp_hub.executors.kubernetes.gang import job, mpi, training, volcano
from mlp_hub.executors.kubernetes.gang.files import files
from mlp_hub.executors.kubernetes.gang.made import Described
from mlp_hub.executors.kubernetes.gang.shape import LONGEST_NAME, Outline
from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, Installation
from mlp_hub.executors.kubernetes.nodes.devices import USUAL
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.tenancy.objects.network import between_ranks
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import (
    JOBS,
    MPI_JOBS,
    POD_GROUPS,
    PYTORCH_JOBS,
    SECRETS,
    SERVICES,
    TF_JOBS,
    VOLCANO_JOBS,
    Kind,
    Object,
    labels_of,
    name_of,
    namespace_of,
)
from mlp_language.message import msg


@dataclass(frozen=True, slots=True)
class Gang:
    """Objects that run one attempt.

    `main` is the one object that makes all its pods. `beside` are objects that must exist before it:
    the ranks' way to each other, and names and a group where no operator makes them. `files` are the
    contents of a Secret of the gang's name, which its pods read. A claim can own all of it.
    """

    main: tuple[Kind, Object]
    files: Mapping[str, str]
    beside: tuple[tuple[Kind, Object], ...] = ()

    @property
    def secret(self) -> tuple[Kind, Object]:
        """Secret with the files.

        They include variables and tokens, and a reader of a namespace cannot read Secrets.
        """
        main = self.main[1]
        made = SECRETS.named(name_of(main), namespace_of(main), stringData=dict(self.files), immutable=True)
        made["metadata"]["labels"] = dict(labels_of(main))
        return SECRETS, made

    @property
    def group(self) -> str:
        """Name of the PodGroup that is beside it; empty for none."""
        return next((name_of(each) for kind, each in self.beside if kind == POD_GROUPS), "")


def describe(
    spec: LaunchSpec, at: Installation, ways: OperatorWays, name: str, devices: Collection[str] = ()
) -> Gang:
    """Return the objects of an attempt, called `name`; raise `CannotStart` if the cluster can never run it.

    `devices` are the resources by which its nodes give out gpus, such as `amd.com/gpu`.
    """
    if len(name) > LONGEST_NAME:
        raise ValueError(f"{name} is longer than {LONGEST_NAME} characters")
    if any(mount.name == FILES_CLAIM for mount in spec.mounts):
        raise CannotStart(msg("{name} holds everybody's files and cannot be mounted", name=FILES_CLAIM))
    way = ways.way_of(spec.runtime, spec.ranks)
    together = ways.gangs and spec.ranks > 1 and way.kind != VOLCANO_JOBS  # which sees to it itself
    shape = Outline(spec, at, way, name, together, _device(spec, devices))
    made = _MAKERS[way.kind](shape)
    beside: list[tuple[Kind, Object]] = []
    if spec.ranks > 1:
        beside.append(between_ranks(at, spec.tenant, shape.labels[names.ATTEMPT], name))
    if made.nameless:
        beside.append((SERVICES, _names(shape)))
    if together:
        beside.append((POD_GROUPS, _group(shape)))
    return Gang((way.kind, made.main), files(shape, made.plan), tuple(beside))


def _device(spec: LaunchSpec, devices: Collection[str]) -> str:
    """Return what all its pods ask for gpus by: they are alike, wherever they go."""
    if spec.per_worker.gpu and len(devices) > 1:
        raise CannotStart(
            msg(
                "its ranks would be on nodes with different GPUs ({devices}); ask for one kind of GPU",
                devices=tuple(sorted(devices)),
            )
        )
    return next(iter(devices), USUAL)


def _names(shape: Outline) -> Object:
    """Make what gives each pod a name that the others find, from the moment that it has an address."""
    chosen = {names.ATTEMPT: shape.labels[names.ATTEMPT]}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": chosen}
    return shape.object(SERVICES, spec=spec)


def _group(shape: Outline) -> Object:
    """Make what has all pods bound, or none."""
    return shape.object(POD_GROUPS, shape.group, spec={"minMember": shape.spec.ranks, "queue": shape.queue})


_MAKERS: Mapping[Kind, Callable[[Outline], Described]] = {
    JOBS: job.make,
    MPI_JOBS: mpi.make,
    TF_JOBS: training.make_tf,
    PYTORCH_JOBS: training.make_pytorch,
    VOLCANO_JOBS: volcano.make,
}
