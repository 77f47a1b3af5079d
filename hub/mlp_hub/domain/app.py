"""Apps: models, or commands, that answer requests; what each is, where it stands, and the one table of their phases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.resources import Resources
from mlp_language.message import NOTHING, Message, msg


class AppPhase(StrEnum):
    """Where an app stands."""

    STARTING = "starting"  # its replicas are being started, and do not answer yet
    RUNNING = "running"  # it answers
    WAITING = "waiting"  # none of its replicas runs: they are in the queue, or it sleeps until somebody asks
    ERROR = "error"  # its replicas end soon after their start; it is tried again, later and later
    DELETING = "deleting"  # its replicas are being ended


A = AppPhase
_LIVE = (A.STARTING, A.RUNNING, A.WAITING, A.ERROR)
APP_MACHINE = Machine(
    {
        **{old: frozenset({*_LIVE, A.DELETING} - {old}) for old in _LIVE},
        A.DELETING: frozenset(),
    },
    msg("app {name} is {old} and cannot become {new}"),
)
PORTS = range(31_000, 50_001)
"""Ports, of which each app has one for itself as long as it is there; nothing of this machine listens at it."""
OF_APPS = "app~"
"""Beginning of the names of those jobs that are replicas of apps: no job of a user's is called so."""
LONGEST_WHOLE = 40
"""Given: characters of an app's name that stand in its replicas' names as they are: those of a job's name, less what is around them."""


class AppAccess(StrEnum):
    """Who may ask an app, besides its owner and who has one of its keys."""

    PRIVATE = "private"
    TENANT = "tenant"  # members of its tenant
    HUB = "hub"  # everybody with an account


@dataclass(frozen=True, slots=True)
class AppSpec:
    """What an app runs and how much of it. With a `command` it is that; else the platform serves the `model`.

    `version` of the model is the one that was the latest when it was deployed, 0 without a model. From `least` to `most` replicas run,
    as many as one for each `concurrency` requests that are under way; fewer only once they were not needed for `idle_s` seconds.
    """

    per_replica: Resources
    model: str = ""
    version: int = 0
    command: str = ""
    inner_port: int = 8080  # at which the command listens
    runtime: str = "plain"
    environment: str = ""  # by name: each replica has what it means when that starts
    gpu_kind: str | None = None
    least: int = 1
    most: int = 1
    idle_s: int = 900
    concurrency: int = 8
    priority: str = "normal"
    access: AppAccess = AppAccess.TENANT
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def scales(self) -> bool:
        """Whether the number of its replicas follows what is asked of it."""
        return self.least < self.most


@dataclass(frozen=True, slots=True)
class App:
    """An app as stored. `generation` grows with each change of what it runs; replicas of older ones go when newer answer."""

    uid: str
    user: str
    name: str
    tenant: str
    spec: AppSpec
    port: int
    phase: AppPhase
    made_at: float
    generation: int = 1
    wanted: int = 1  # replicas, now
    failures: int = 0  # replicas that ended by themselves, in a row
    not_before: float = 0.0  # when the next one is started
    message: Message = NOTHING  # why it is as it is
    tail: str = ""  # last lines of the replica that ended last by itself

    def within(self, spec: AppSpec) -> int:
        """Return how many replicas are wanted when it is run as `spec` says: as many as now, where that may be."""
        return min(max(self.wanted, spec.least, 1), spec.most)

    @property
    def sleeps_idle(self) -> bool:
        """Whether all of it is ended while nobody asks."""
        return self.spec.least == 0


def replica_name(app: str, slot: int | str) -> str:
    """Return the name of the job that is a replica: `app~digits~0`; without a slot what all names of such begin with.

    Names of jobs are shorter than those of apps may be: of a long one the beginning stands there, with a digest of all of it.
    """
    if len(app) > LONGEST_WHOLE:
        digest = hashlib.blake2b(app.encode(), digest_size=4).hexdigest()
        app = f"{app[: LONGEST_WHOLE - len(digest) - 1]}.{digest}"
    return f"{OF_APPS}{app}~{slot}"


def check_app_move(app: App, new: AppPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move, or it is none."""
    if app.phase is not new:
        APP_MACHINE.check(app.phase, new, name=app.name)
