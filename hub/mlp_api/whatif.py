"""What-if runs and the reasons of decisions, as they cross the wire; the rest of the contract is in `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.jobs import Cpu, Ram
from mlp_api.said import Detail, Text
from mlp_api.terms import PlacementRule, PolicyName, QueueOrder
from mlp_api.types import Gpu, Name, QuotaCpu, QuotaRam, Request, Response, Rom

Seconds = Annotated[float, Meta(ge=0, le=10**12)]
Limits = dict[Annotated[str, Meta(min_length=1, max_length=80)], float | None]
LongName = Annotated[str, Meta(min_length=1, max_length=200)]


class WhatIfTenant(Request):
    """What would be other about a tenant. What is left out stays; a quota that is null has no limit."""

    cpu: QuotaCpu | UnsetType | None = UNSET
    gpu: Gpu | UnsetType | None = UNSET
    ram: QuotaRam | UnsetType | None = UNSET
    rom: Rom | UnsetType | None = UNSET
    gpu_kinds: dict[str, Gpu] | UnsetType = UNSET
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] | UnsetType = UNSET
    cohort: Name | UnsetType | None = UNSET
    parent: Name | UnsetType | None = UNSET
    borrowing_limit: Limits | UnsetType | None = UNSET
    lending_limit: Limits | UnsetType | None = UNSET
    reserved: Limits | UnsetType | None = UNSET
    queue_order: QueueOrder | UnsetType = UNSET


class WhatIfNodes(Request):
    """Nodes that would come: `count` of them, named NAME-0 and so on where there is more than one."""

    name: LongName
    count: Annotated[int, Meta(ge=1, le=10_000)] = 1
    cpu: Cpu = 8.0
    ram: Ram = 32_768
    gpu: Annotated[int, Meta(ge=0, le=1024)] = 0
    gpu_kind: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    labels: Annotated[dict[LongName, LongName], Meta(max_length=100)] = field(default_factory=dict)


class WhatIfPolicy(Request):
    """How the hub would schedule. What is left out stays."""

    name: PolicyName | UnsetType = UNSET
    placement: PlacementRule | UnsetType = UNSET
    backfill: bool | UnsetType = UNSET
    preemption: bool | UnsetType = UNSET
    half_life_s: Annotated[float, Meta(gt=0, le=10**12)] | UnsetType = UNSET
    min_run_s: Seconds | UnsetType = UNSET
    restart_cost_s: Seconds | UnsetType = UNSET
    aging_s: Seconds | UnsetType = UNSET


class WhatIfChanges(Request):
    """What would be other: tenants by name, new tenants by name, nodes that come, go or are down, the policy."""

    tenants: Annotated[dict[Name, WhatIfTenant], Meta(max_length=1000)] = field(default_factory=dict)
    new_tenants: Annotated[dict[Name, WhatIfTenant], Meta(max_length=1000)] = field(default_factory=dict)
    new_nodes: Annotated[list[WhatIfNodes], Meta(max_length=100)] = field(default_factory=list)
    remove_nodes: Annotated[list[LongName], Meta(max_length=10_000)] = field(default_factory=list)
    nodes_down: Annotated[list[LongName], Meta(max_length=10_000)] = field(default_factory=list)
    policy: WhatIfPolicy | None = None


class WhatIfWindow(Request):
    """Jobs that were submitted from `since` on and before `until` (null: now)."""

    since: Annotated[datetime, Meta(tz=True)]
    until: Annotated[datetime, Meta(tz=True)] | None = None


class WhatIfHistory(Request):
    """Recorded history."""

    history: WhatIfWindow


class SimulateRequest(Request):
    """Either a scenario (the keys of a scenario file) or a what-if: `from` the present or history, with `changes`."""

    version: int | UnsetType = UNSET
    policy: dict[str, Any] | UnsetType | None = UNSET
    flavors: list[Any] | UnsetType | None = UNSET
    nodes: list[Any] | UnsetType = UNSET
    tenants: list[Any] | UnsetType = UNSET
    priorities: dict[str, Any] | UnsetType | None = UNSET
    jobs: list[Any] | UnsetType = UNSET
    events: list[Any] | UnsetType | None = UNSET
    bookings: list[Any] | UnsetType | None = UNSET
    until: float | UnsetType | None = UNSET
    from_: Literal["now"] | WhatIfHistory | UnsetType = field(name="from", default=UNSET)
    changes: WhatIfChanges | UnsetType = UNSET


class SimulatedWork(Response):
    """What became of some jobs in a run. Waits and completion times in seconds; of none they are 0.

    `running` of the jobs ran already when the run began: their waits are over and no part of these. Waits are of the
    `waits_of` others that begin to run: all the time that each was in the queue. `waited_again_s`: what jobs that were stopped
    for others, or lost their nodes by what is tried, waited until they went on, all together. `ftf` is finish-time fairness:
    how long a job took, divided by what it would have taken alone on its tenant's fair share; above 1 is worse than that.
    """

    jobs: int
    running: int
    waits_of: int
    waited_again_s: float
    finished: int
    refused: int
    never_started: int
    preemptions: int
    avg_wait_s: float
    p50_wait_s: float
    p99_wait_s: float
    avg_jct_s: float
    ftf_avg: float
    ftf_worst: float


class SimulatedTenant(SimulatedWork):
    """One tenant's part: what it used in core and gpu hours, its share of all that was used, and its fair share by weight."""

    cpu_h: float
    gpu_h: float
    share: float
    fair_share: float


class SimulatedWait(Response):
    """What `jobs` of those that did not run when the run began waited for last before they started, by reason.

    `never` of them wait for it in vain. `message` has the numbers of one of them, `job` of `user`, which waits longest.
    """

    reason: str
    jobs: int
    never: int
    job: str
    user: str
    message: str


class SimulatedRun(SimulatedWork):
    """One run in all. `utilization` is from 0 to 1 by dimension, `lost_work_s` worker-seconds done twice.

    `waits`: what jobs waited for, each counted once; the most first.
    """

    makespan_s: float
    utilization: dict[str, float]
    lost_work_s: float
    per_tenant: dict[str, SimulatedTenant]
    waits: list[SimulatedWait]
    gantt: str | None


class SimulatedMove(Response):
    """A job whose start moves: seconds from the begin of the run, null where it does not start.

    `why`: what it waits for in the run in which it starts later, or never.
    """

    job: str
    user: str
    tenant: str
    before_s: float | None
    after_s: float | None
    why: str | None


class SimulatedMoves(Response):
    """How many jobs start earlier, later, as before, or in one of the runs only; `most` lists those that move most."""

    earlier: int
    later: int
    unmoved: int
    only_before: int
    only_after: int
    most: list[SimulatedMove]


class RecordedWaits(Response):
    """What jobs of a window really waited, each time that they were in the queue, to hold `before` against."""

    jobs: int
    avg_wait_s: float
    p50_wait_s: float
    p99_wait_s: float


class Simulated(Response):
    """What came out. `before` is as things are and `after` with the changes; a scenario has `after` only.

    `begin` is the instant that seconds count from. `remarks` tell what was assumed and what cannot be told. `lines` are those
    of `after`, where asked for; `lines_left_out` of them were too many.
    """

    begin: datetime | None
    before: SimulatedRun | None
    after: SimulatedRun
    moves: SimulatedMoves | None
    recorded: RecordedWaits | None
    remarks: list[Text]
    lines: list[dict[str, Any]] | None
    lines_left_out: int


# ------------------------------------------------------------ decisions


class DecisionNode(Response):
    """A node that was looked at for a job: ranks it got there or would have got, what it has free after that, its score.

    Scores are compared from the left, the smallest is best; what they are made of depends on the placement rule.
    """

    node: str
    ranks: int
    chosen: bool
    free_after: Text
    score: list[float]


class DecisionVictim(Response):
    """A running job that could have been stopped for another: what that loses, and why it was chosen or not.

    `lost_work` is the most that may be lost, less what it saves when it is asked to end; in `lost_unit`: gpu-seconds, or
    core-seconds where it has no gpu; empty where an older hub did not write it down. `gives` are the workers that it gives up instead of all,
    0 where it is stopped or left alone. `right` is that by which a chosen one makes room: reclaim, priority, in-one-piece or extra
    (workers beyond the least of an elastic job). Names are null where they are not the
    asker's to know; of those that share with the asker's tenant the tenant is named. Of a replica of an app `job` is the app's name, and
    `replica` which one it is.
    """

    job: str | None
    user: str | None
    tenant: str | None
    priority: int
    lost_work: float
    over_nominal: bool
    chosen: bool
    right: str | None
    why: Text
    gives: int
    lost_unit: str
    replica: int | None = None


class DecisionPassed(Response):
    """A job that was looked at before another one and did not start, by the type of its reason; it stands for all that ask for the same.

    Names are null where they are not the asker's to know. Of a replica of an app `job` is the app's name.
    """

    job: str | None
    user: str | None
    tenant: str | None
    reason: str
    replica: int | None = None


class Decision(Response):
    """Why the scheduler did something with a job: why then, why there, why this one.

    `kind` is admitted, preempted or resized; it is told at the time of the decision, which an admission follows when those that
    make room for it have ended. `waited_for` is what it waited for until then (`waited_reason` the type of that) and
    `changed` what had changed since; `passed` are the first of those that were looked at before it and did not start, `passed_count`
    how many there were; `order` is what its queue goes by, `rule` the rule of placement;
    `nodes` are the best few places, `only` says that there was no other; `victims` are those that could have been stopped, `spared`
    why the others could not. `share` is the tenant's dominant share before. Of cycles with very many decisions only `summary` is kept. `detail` is the summary as data.
    """

    time: datetime
    kind: str
    summary: Text
    detail: Detail
    waited_for: Text | None
    waited_reason: str | None
    changed: list[Text]
    passed: list[DecisionPassed]
    passed_count: int
    position: int | None
    policy: str
    order: str | None
    share: float | None
    rule: str | None
    nodes: list[DecisionNode]
    only: bool
    victims: list[DecisionVictim]
    spared: list[Text]
