"""Apps: models, or commands, that answer requests, with their state and the one table of their phases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.resources import Resources
from mlp_language.message import NOTHING, Message, msg


class AppPhase(StrEnum):
    """State of an app."""

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
"""Given: characters of an app's name that are kept as they are in its replicas' names.

The number is that of a job's name, less the text around them.
"""


class AppAccess(StrEnum):
    """Access to an app for others than its owner and the holders of its keys."""

    PRIVATE = "private"
    TENANT = "tenant"  # members of its tenant
    HUB = "hub"  # everybody with an account


@dataclass(frozen=True, slots=True)
class AppSpec:
    """Program and size of an app: a `command`, or else the `model` that the platform serves.

    `version` of the model is the latest one at the time of deployment, 0 without a model. From `least`
    to `most` replicas run, one for each `concurrency` requests in progress. Fewer run only once the
    others were not needed for `idle_s` seconds.
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
    """App as stored.

    `generation` grows with each change of its program. Replicas of older generations end when newer
    ones answer.
    """

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
    """Return the name of a replica's job: `app~digits~0`; without a slot the common prefix of such names.

    Names of jobs are shorter than the longest names of apps. So a long name is represented by its
    begin, with a digest of all of it.
    """
    if len(app) > LONGEST_WHOLE:
        digest = hashlib.blake2b(app.encode(), digest_size=4).hexdigest()
        app = f"{app[: LONGEST_WHOLE - len(digest) - 1]}.{digest}"
    return f"{OF_APPS}{app}~{slot}"


def check_app_move(app: App, new: AppPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move, or it is none."""
    if app.phase is not new:
        APP_MACHINE.check(app.phase, new, name=app.name)
