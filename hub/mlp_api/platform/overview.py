"""State of the whole platform for its administrators: use, waiting work with reasons, and troubles."""

from __future__ import annotations

from datetime import datetime

from mlp_api.jobs.jobs import QueueEntry
from mlp_api.localized import Text
from mlp_api.types import NodeCondition, Response


class TeamHolds(Response):
    """Use of a tenant's quota (null: the nodes' capacity); the fields mean the same as those of a `Tenant`."""

    name: str
    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    rom_inuse: int
    amounts: dict[str, int]
    amounts_inuse: dict[str, int]
    borrowed: dict[str, float]
    lent: dict[str, float]
    free: dict[str, float]
    over: dict[str, float]
    running: int
    waiting: int


class WaitingFor(Response):
    """Count of waiting work for one reason; null: no cycle has looked at it yet.

    `message` is the message of the one that waits longest.
    """

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


class ForecastCalibration(Response):
    """Starts of jobs before, inside and after the range (`p10` to `p90`) that was told first in that wait.

    `since` is the time of the first one, null without one. If very many are counted, old ones no longer
    count: all counts are halved at 2,000 starts.
    """

    since: datetime | None
    before: int
    inside: int
    after: int


class Overview(Response):
    """State of the platform.

    `teams` are the tenants that hold most and those with the most waiting work, of `teams_all`.
    `longest` waits longest. `nodes` counts the nodes that are present, `nodes_up` those that answer,
    `nodes_open` those that take new work. `troubles` are the first of the other nodes. `apps_failing`
    counts the apps in error, and `app_troubles` are the first of them. `running` and `waiting` count jobs, without
    replicas of apps and notebook servers, as each team does: `replicas`, `replicas_waiting`, `servers` and `servers_waiting` are these. `forecasts` compares starts with their forecasts. `teams` and apps in error can be as old as `at`.
    All other values are of this moment.
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
    replicas_waiting: int
    apps_failing: int
    app_troubles: list[AppTrouble]
    forecasts: ForecastCalibration
