"""Objects of the REST contract, as `msgspec` structs: the schemas that validate are the ones documented.

Units on the wire: cpu in cores, gpu in devices, ram in MiB, rom and sizes in bytes, progress 0-100,
times RFC 3339 UTC. Requests refuse unknown fields; responses hold all fields of the object.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from mlp_api.localized import Detail, Text
from mlp_api.terms import ORDERS, QueueOrder

# Python's `$` also matches before a final newline; `(?!\n)` shuts that out and means the same in ECMA 262
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$(?!\n)"
LINE_PATTERN = r"^[^\x00-\x1f\x7f]*$(?!\n)"
CURSOR_PATTERN = r"^[0-9]{1,18}$(?!\n)"
Name = Annotated[
    str, Meta(pattern=NAME_PATTERN, max_length=50, description="a-z, 0-9 and -, 1 to 50 characters")
]
Gpu = Annotated[float, Meta(ge=0, le=100_000)]
Rom = Annotated[int, Meta(ge=0, le=2**60)]
QuotaCpu = Annotated[float, Meta(ge=0, le=1_000_000)]
Counted = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=50)], Annotated[int, Meta(ge=0, le=2**60)]],
    Meta(max_length=50, description="amounts of dimensions that have no field here, by name"),
]
"""Amounts of the dimensions that are only counted: rows of the hub's table, in its units."""
QuotaRam = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Amounts = dict[str, float]
"""Amounts by dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`), in the units of quotas.

A dimension that is left out is not limited.
"""


class Request(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of all request bodies."""


class Response(Struct, kw_only=True):
    """Base of all response bodies."""


class Fact(Response):
    """Row of the table below a reason: its meaning, its value, and the one that it is about.

    `label` is in the reader's words. `key` names the row for programs, with its `dimension` where it
    has one. `number` is its value where that is a number, in the units of quotas and in seconds.
    """

    key: str
    dimension: str | None
    label: Text
    value: Text
    number: float | None
    who: Text
    detail: Detail


class Refusal(Response):
    """Body of every refused request (403). `msg` is in the reader's language, `detail` the same as data.

    `facts` are there where the scheduler says why, as for a job that waits; else there are none. `request_id` is in the
    log lines of the request too, and in the header X-Request-ID.
    """

    msg: str
    reason: str
    detail: dict[str, Any]
    facts: list[Fact]
    request_id: str = ""


class Fault(Response):
    """Body of every server fault (503), as that of refused requests without a reason."""

    msg: str
    detail: dict[str, Any]
    request_id: str = ""


# -------------------------------------------------------------- tenants

Network = Literal["none", "outbound"]


class TenantCreate(Request):
    """New tenant; a quota that is left out (null) means the nodes' capacity."""

    name: Name
    cpu: QuotaCpu | None = None
    gpu: Gpu | None = None
    ram: QuotaRam | None = None
    rom: Rom | None = None
    amounts: Counted = field(default_factory=dict)
    gpu_kinds: dict[str, Gpu] = field(default_factory=dict)
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    cohort: Annotated[
        Name | None, Meta(description="tenants of one cohort lend each other what they leave idle")
    ] = None
    parent: Annotated[
        Name | None,
        Meta(description="the tenant out of whose quota this one's is carved; it shares with its siblings"),
    ] = None
    borrowing_limit: Annotated[
        Amounts | None,
        Meta(description="the most it may hold beyond its quota; left out: all that the others leave"),
    ] = None
    lending_limit: Annotated[
        Amounts | None, Meta(description="the most of its quota that others may hold; left out: all of it")
    ] = None
    reserved: Annotated[
        Amounts | None,
        Meta(
            description="kept free for it on the nodes, used or not, whatever others may borrow; not above the quota"
        ),
    ] = None
    queue_order: Annotated[
        QueueOrder,
        Meta(
            description="what its own jobs go by: "
            + "; ".join(f"`{name}` ({words})" for name, words in ORDERS.items())
            + ". Under age alone no job of it stops another for its priority; in turns each member's jobs go by priority. "
            "Where the hub orders the jobs of all tenants in one line, that order holds instead"
        ),
    ] = "priority"
    isolation: Annotated[
        Literal["shared", "encrypted", "dedicated"],
        Meta(
            description="how the tenant's datasets, models and jobs' directories are kept: in the tree of all with directories of "
            "their own, encrypted with a key of its own, or in a root of its own. A change moves them: see `move` of the tenant. "
            "With a cluster there is `shared` alone"
        ),
    ] = "shared"
    data_root: Annotated[
        str,
        Meta(
            max_length=1000,
            description="with `dedicated`, the absolute path of a directory for this tenant alone: empty, or one that can be made",
        ),
    ] = ""
    network: Annotated[
        Network | None,
        Meta(
            description="what its jobs and notebooks may reach: `none`, nothing but themselves; `outbound`, other machines, but "
            "never this one; left out: what the hub's settings `job_network` and `notebook_network` say. What is started "
            "later follows it"
        ),
    ] = None
    leavers: Annotated[
        Literal["finish", "stop"],
        Meta(
            description="what happens to running jobs of who leaves it, or whose account is taken away: `finish`, they go on to "
            "their end; `stop`, they are cancelled. Those that wait are put aside, and notebook servers end, either way"
        ),
    ] = "finish"
    datasets: Annotated[
        Literal["own", "members"],
        Meta(
            description="which of its datasets a member's jobs may read: `own`, the member's; `members`, those of all its members"
        ),
    ] = "own"
    joining: Annotated[
        Literal["closed", "asked"],
        Meta(
            description="whether people may ask for a place in it: `closed`, they are not even told that it is there; `asked`, it is "
            "among the teams on their page with its description, and its admins decide"
        ),
    ] = "closed"
    description: Annotated[str, Meta(max_length=500)] = ""


class TenantUpdate(TenantCreate):
    """All that a tenant is from now on; `name` may be left out and must match the path otherwise."""

    name: Name | None = None  # type: ignore[assignment]


class LoweredGuarantee(Response):
    """Reduced guarantee of a tenant that is idle for long: its lending limit and its reservation.

    It ends when a job of the tenant waits, or when a server of the tenant asks.
    """

    since: datetime
    share: float
    lending_limit: dict[str, float] | None
    reserved: dict[str, float] | None
    message: Text


class IsolationMove(Response):
    """Last move of a tenant's files from one grade of isolation to another.

    `state`: `waiting` for running work, `copying`, `comparing`, `removing` the copied originals,
    `done`. `undoing` and `failed` mean that the move was called off or cannot be done, with the reason
    in `message`. `done` and `total` are bytes of the present state.
    """

    state: str
    old: str
    new: str
    done: int
    total: int
    message: Text
    asked_by: str
    asked_at: datetime
    ended_at: datetime | None


class Tenant(Response):
    """Tenant with its quota (null: the nodes' capacity) and its use.

    `borrowed`, `lent`, `lendable` and `free` are by dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`).
    Zeroes of the first three are left out. `borrowed` is use beyond its quota. `lent` is the part of
    its idle quota that others hold now. Where several tenants could have lent it, each counts in
    proportion to its idle quota. `lendable` is the part that it would still lend. `free` is the amount
    that it may take now, borrowing included. A dimension without a limit is left out.

    `over` is use beyond all that it may hold with others as they are, for example after its quota was
    lowered. Nothing is stopped for that alone. `lowered` is the part of its guarantee that holds while
    the guarantee is lowered because the tenant is idle for long. `lending_limit` and `reserved` are as
    configured. `notes` are, in the answer to a change, the booked windows of this tenant or others that
    no longer fit, or that fit again.

    `isolation` is the chosen grade for its files. `move` is their move to that grade, and is null where
    they never moved. `network` is as configured (null: the hub's default). `job_network` is the network
    of its jobs: `none` or `outbound`. `running` and `waiting` count jobs, without replicas of apps.
    """

    name: str
    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    gpu_kinds: dict[str, float]
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    rom_inuse: int
    amounts: dict[str, int]
    amounts_inuse: dict[str, int]
    weight: float
    cohort: str | None
    parent: str | None
    borrowing_limit: dict[str, float] | None
    lending_limit: dict[str, float] | None
    reserved: dict[str, float] | None
    borrowed: dict[str, float]
    lent: dict[str, float]
    lendable: dict[str, float]
    free: dict[str, float]
    over: dict[str, float]
    lowered: LoweredGuarantee | None
    queue_order: str
    isolation: str
    data_root: str
    move: IsolationMove | None
    network: str | None
    job_network: str
    leavers: str
    datasets: str
    joining: str
    description: str
    members: int
    running: int
    waiting: int
    notes: list[Text]


class MemberUpdate(Request):
    """A member's role."""

    role: Literal["member", "admin"] = "member"


class Member(Response):
    """A user's place in a tenant.

    `note` says what else came with it: a first tenant takes the place in `default`, unless an admin of that tenant gave it, who takes
    nobody out of another. `managed_by` is who keeps the place where it follows a group of a login's provider, and it is changed there; else empty.
    """

    tenant: str
    user: str
    role: str
    source: str
    note: Text
    managed_by: str = ""


class Holding(Response):
    """Somebody who holds part of a quota; `job` is the name of the job that does, `name@run` of a later run, where it is one.

    Of a replica of an app, `app` is its name and `replica` which one it is.
    """

    holder: Text
    user: str
    applier: str
    cpu: float
    gpu: float
    ram: int
    rom: int
    amounts: dict[str, int]
    since: datetime
    job: str | None = None
    app: str | None = None
    replica: int | None = None


class UsageHour(Response):
    """Use of a tenant in the hour that begins at `time`: means of samples every 5 minutes, and most jobs.

    `cpu` and `gpu` are units held by jobs, servers and apps. `jobs` has the sums of the jobs' use.
    `ram` is in MiB, `rom` in bytes. Job counts are the most at once. Hours in which the hub was down
    are left out.
    """

    time: datetime
    cpu: float
    gpu: float
    ram: int
    rom: int
    amounts: dict[str, int]
    running: int
    waiting: int


class UsageTotal(Response):
    """Use by a tenant's jobs in the last 7 days in UTC: core-hours and device-hours as the ledger has them, and the most at once.

    For the most at once, only the runs that are kept count.
    """

    cpu_hours: float = 0.0
    gpu_hours: float = 0.0
    cpu_most: float = 0.0
    gpu_most: float = 0.0


class Usage(Response):
    """One tenant's quota and who uses it, as its members may see it. `history` are the hours of the last 7 days, the oldest first.

    `history` shows how it went; `jobs` is exact, up to half a minute ago.
    """

    tenant: Tenant
    holdings: list[Holding]
    jobs: UsageTotal
    history: list[UsageHour] = field(default_factory=list)


# ------------------------------------------------------ resource requests


class ResourceRequestTry(Request):
    """Try to hold (request) or to give back (release) an amount.

    `environment` is the `uid` of the one that a notebook server is started with, as `GET /users/{user}:spawn` has it.
    """

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    applier: Literal["dm", "jm", "am", "mm", "sp"]
    request_type: Literal["request", "release"]
    tenant: Name = "default"
    gpu: Gpu = 0
    cpu: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    ram: QuotaRam = 0
    rom: Rom = 0
    amounts: Counted = field(default_factory=dict)
    gpu_kind: str | None = None
    user: str = ""
    holder: Annotated[str, Meta(max_length=255)] = ""
    node: str | None = None
    environment: Annotated[str, Meta(max_length=26)] | None = None


class ResourceRequestKey(Request):
    """Which resource request to confirm or cancel."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    applier: Literal["dm", "jm", "am", "mm", "sp"]


# ------------------------------------------------------- the whole cluster


class Scheduling(Response):
    """The policy in force, as the settings that begin with `scheduling_` have it; `meaning` says what it goes by."""

    policy: str
    meaning: str
    placement: str
    backfill: bool
    preemption: bool
    half_life_s: float
    min_run_s: float
    restart_cost_s: float
    aging_s: float


class NodeCondition(Struct):
    """Fault of a node, with its message."""

    kind: Literal[
        "NotReady", "Cordoned", "MemoryPressure", "DiskPressure", "PIDPressure", "Drained", "Absent"
    ]
    message: str


class Taint(Struct):
    """Taint that keeps workloads off a node.

    With the key `tenant` and the effect `NoSchedule` it reserves the node for that tenant.
    """

    key: str
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Node(Response):
    """Node with its capacity, its allocatable amounts and its use.

    `up`: the node answers. `schedulable`: it takes new ranks of jobs that tolerate its `taints`.
    Otherwise `conditions` are the reasons. The amounts that others than the hub hold there now
    (`cpu_others` and so on) are not part of the allocatable amounts.
    """

    name: str
    up: bool
    schedulable: bool
    conditions: list[NodeCondition]
    taints: list[Taint]
    cpu: float
    gpu: float
    gpu_kind: str | None
    ram: int
    cpu_allocatable: float
    ram_allocatable: int
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    cpu_others: float
    gpu_others: float
    ram_others: int
    labels: dict[str, str]
    holders: list[Holding]
