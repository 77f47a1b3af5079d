"""What-if runs and the reasons of decisions, as they cross the wire; the rest of the contract is in `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.jobs.jobs import Cpu, Ram
from mlp_api.localized import Detail, Text
from mlp_api.terms import PlacementRule, PolicyName, QueueOrder
from mlp_api.types import Counted, Gpu, Name, QuotaCpu, QuotaRam, Request, Response, Rom

Seconds = Annotated[float, Meta(ge=0, le=10**12)]
Limits = dict[Annotated[str, Meta(min_length=1, max_length=80)], float | None]
LongName = Annotated[str, Meta(min_length=1, max_length=200)]


class WhatIfTenant(Request):
    """Changes of a tenant in a simulation.

    Fields that are left out keep their value. A quota that is null has no limit.
    """

    cpu: QuotaCpu | UnsetType | None = UNSET
    gpu: Gpu | UnsetType | None = UNSET
    ram: QuotaRam | UnsetType | None = UNSET
    rom: Rom | UnsetType | None = UNSET
    gpu_kinds: dict[str, Gpu] | UnsetType = UNSET
    amounts: Counted | UnsetType = UNSET
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
    """Scheduling policy in a simulation; fields that are left out keep their value."""

    name: PolicyName | UnsetType = UNSET
    placement: PlacementRule | UnsetType = UNSET
    backfill: bool | UnsetType = UNSET
    preemption: bool | UnsetType = UNSET
    half_life_s: Annotated[float, Meta(gt=0, le=10**12)] | UnsetType = UNSET
    min_run_s: Seconds | UnsetType = UNSET
    restart_cost_s: Seconds | UnsetType = UNSET
    aging_s: Seconds | UnsetType = UNSET


class WhatIfChanges(Request):
    """Changes to simulate: tenants by name, new tenants by name, the policy, and nodes.

    Nodes are added, removed or down.
    """

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
    """Results of some jobs in a run; waits and completion times are in seconds, and 0 for no jobs.

    `running` of the jobs already ran when the run began: their waits are over and do not count here.
    Waits are of the `waits_of` other jobs that start: all the time that each was in the queue.
    `waited_again_s` is a sum over the jobs that were stopped for others, or that lost their nodes in
    the simulated change. It is the time that they waited until they continued. `ftf` is finish-time
    fairness: the duration of a job, divided by its duration alone on its tenant's fair share. Above 1
    is worse than that.
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
    """Results of one tenant: core and gpu hours used, share of all use, and fair share by weight."""

    cpu_h: float
    gpu_h: float
    share: float
    fair_share: float


class SimulatedWait(Response):
    """Last reason for the wait of `jobs` jobs that did not run when the run began.

    `never` of them wait for it in vain. `message` has the numbers of one of them, `job` of `user`,
    which waits longest.
    """

    reason: str
    jobs: int
    never: int
    job: str
    user: str
    message: str


class SimulatedRun(SimulatedWork):
    """Results of a whole run.

    `utilization` is from 0 to 1 by dimension. `lost_work_s` is worker-seconds of work that was done
    twice. `waits` are the reasons for waits, the most frequent first. Each job counts once.
    """

    makespan_s: float
    utilization: dict[str, float]
    lost_work_s: float
    per_tenant: dict[str, SimulatedTenant]
    waits: list[SimulatedWait]
    gantt: str | None


class SimulatedMove(Response):
    """Job whose start moves: seconds from the begin of the run, null where it does not start.

    `why` is the reason for its wait in the run in which it starts later, or never.
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
    """Real waits of the jobs of a window, counted for each time in the queue, to compare with `before`."""

    jobs: int
    avg_wait_s: float
    p50_wait_s: float
    p99_wait_s: float


class Simulated(Response):
    """Results of a simulation: `before` is without the changes, `after` with them.

    A scenario has `after` only. `begin` is the instant that seconds count from. `remarks` are the
    assumptions, and the limits of the results. `lines` are those of `after`, where requested.
    `lines_left_out` is the number of lines that were too many.
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
    """Node that was considered for a job: its ranks, its free amounts after that, and its score.

    The ranks are those that the job got there or would have got. Scores are compared from the left, and
    the smallest is best. Their parts depend on the placement rule.
    """

    node: str
    ranks: int
    chosen: bool
    free_after: Text
    score: list[float]


class DecisionVictim(Response):
    """Running job that could have been stopped for another: the loss, and the reason for the choice.

    `lost_work` is the most that can be lost, less the work that the job saves when it is asked to end.
    It is in `lost_unit`: gpu-seconds, or core-seconds for a job without a gpu. The unit is empty where
    an older hub did not store it. `gives` is the number of workers that the job gives up instead of
    all. It is 0 where the job is stopped or left alone. `right` is the ground on which a chosen job
    makes room: reclaim, priority, in-one-piece or extra (workers beyond the least of an elastic job).

    Names are null where the asker may not see them. For jobs that share with the asker's tenant, the
    tenant is named. For a replica of an app, `job` is the app's name, and `replica` is its number.
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
    """Reason for an action of the scheduler on a job: its time, its place, and the choice of this job.

    `kind` is admitted, preempted or resized. The time is that of the decision. An admission follows
    when the jobs that make room for it have ended. `waited_for` is the last reason for the wait
    (`waited_reason` is its type). `changed` is the list of changes since then. `passed` are the first
    of the jobs that were considered before it and did not start, and `passed_count` is their number.
    `order` is the order of its queue, and `rule` is the rule of placement. `nodes` are the few best
    places. `only`: no other place existed. `victims` are the jobs that could have been stopped.
    `spared` are the reasons why the others could not. `share` is the tenant's dominant share before.
    For cycles with very many decisions only `summary` is kept. `detail` is the summary as data.
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
