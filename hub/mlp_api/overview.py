"""How the whole platform stands, for its administrators: who holds what, what waits and why, what is wrong."""

from __future__ import annotations

from datetime import datetime

from mlp_api.jobs import QueueEntry
from mlp_api.said import Text
from mlp_api.types import NodeCondition, Response


class TeamHolds(Response):
    """What a tenant holds of its quota (null: what the nodes have). The fields mean what those of a `Tenant` mean."""

    name: str
    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    rom_inuse: int
    borrowed: dict[str, float]
    lent: dict[str, float]
    free: dict[str, float]
    over: dict[str, float]
    running: int
    waiting: int


class WaitingFor(Response):
    """How many wait for one reason; null: no cycle has looked at them yet. `message` is what is said of the one that waits longest."""

    reason: str | None
    count: int
    message: Text


class NodeTrouble(Response):
    """A node that takes nothing new, and why."""

    name: str
    up: bool
    conditions: list[NodeCondition]


class OverviewProblem(Response):
    """Something that does not work, as `/health` tells it."""

    component: str
    reason: str
    message: Text


class AppTrouble(Response):
    """An app that does not answer because its replicas end, and why."""

    user: str
    name: str
    tenant: str
    message: Text


class Overview(Response):
    """How all stands. `teams` are those that hold most and those for which most waits, of `teams_all`; `longest` waits longest.

    `nodes` counts those that are there, `nodes_up` those that answer, `nodes_open` those that take new work; `troubles` are the first
    of the others. `apps_failing` counts the apps in error, `app_troubles` are the first of them. `running` counts jobs, no replicas of
    apps; `waiting` is all that waits. `teams` and apps in error may be as old as `at`; all else is of this moment.
    """

    at: datetime
    teams: list[TeamHolds]
    teams_all: int
    running: int
    waiting: int
    suspended: int
    reasons: list[WaitingFor]
    longest: list[QueueEntry]
    problems: list[OverviewProblem]
    nodes: int
    nodes_up: int
    nodes_open: int
    troubles: list[NodeTrouble]
    servers: int
    servers_waiting: int
    apps: int
    replicas: int
    apps_failing: int
    app_troubles: list[AppTrouble]
