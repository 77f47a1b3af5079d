"""Apps on the wire: the model or command, the number of replicas, and the address."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.jobs.earlier_runs import RunForecast
from mlp_api.jobs.jobs import Cpu, EnvironmentName, EnvName, Ram, RuntimeName
from mlp_api.localized import Detail, Text
from mlp_api.stored.models import MODEL_PATTERN
from mlp_api.types import Gpu, Name, Request, Response

MODEL_OR_NONE_PATTERN = rf"^$(?!\n)|{MODEL_PATTERN}"
ModelReference = Annotated[
    str,
    Meta(
        pattern=MODEL_OR_NONE_PATTERN,
        max_length=60,
        description="NAME, which means the latest version, or NAME@VERSION; empty where a command needs none",
    ),
]
REPLICAS_PATTERN = r"^[0-9]{1,3}:[1-9][0-9]{0,2}$(?!\n)"
Replicas = (
    Annotated[int, Meta(ge=1, le=100)]
    | Annotated[str, Meta(pattern=REPLICAS_PATTERN, description="MIN:MAX; MIN may be 0")]
)
InnerPort = Annotated[int, Meta(ge=1024, le=65_535)]
Concurrency = Annotated[int, Meta(ge=1, le=1000, description="requests at once that one replica is for")]
IdleSeconds = Annotated[int, Meta(ge=10, le=30 * 86_400)]
Command = Annotated[str, Meta(max_length=4096)]
Env = Annotated[dict[EnvName, Annotated[str, Meta(max_length=65_536)]], Meta(max_length=100)]
AppAccess = Literal["private", "tenant", "hub"]
AppState = Literal["creating", "ready", "error", "deleting"]
AppPhase = Literal["starting", "running", "waiting", "error", "deleting"]


class AppCreate(Request, kw_only=True):
    """App to deploy: the platform serves a model by the Open Inference Protocol, or a `command` runs.

    The command listens on `command_port`, which the variable PORT names. cpu, gpu and ram are per replica.
    `replicas` is MIN:MAX. The number of replicas follows the load: each gets about `concurrency` requests at once. A replica
    that was not needed for `idle` seconds ends; with a MIN of 0 none runs without requests. With `replace` an
    existing app of this name changes: replicas of the new one answer before those of the old one end.
    `env_name` is an environment of the tenant with the packages of the server or the command. `access` lists
    the callers in addition to the owner and the app's keys: members of its tenant, or everybody of the hub.
    """

    name: Name
    model_name: ModelReference
    tenant: Name | None = None
    cpu: Cpu = 1.0
    gpu: Gpu = 0
    gpu_kind: Annotated[str, Meta(max_length=64)] | None = None
    ram: Ram = 1024
    replicas: Replicas = 1
    idle: IdleSeconds = 900
    concurrency: Concurrency = 8
    command: Command | None = None
    command_port: InnerPort = 8080
    runtime: RuntimeName | None = None
    env_name: EnvironmentName | None = None
    priority: Name = "normal"
    access: AppAccess = "tenant"
    env: Env = field(default_factory=dict)
    replace: bool = False


class AppScale(Request):
    """Number of replicas from now on."""

    replicas: Replicas
    idle: IdleSeconds | UnsetType = UNSET
    concurrency: Concurrency | UnsetType = UNSET


class SharedApp(Response):
    """App as users with access to it see it: its address and its state, but not its configuration.

    `address` is `url` with the hub's public address. `serves` says what answers there: a `model` by the Open Inference Protocol, as `model_name`, or a `command` in its own way.
    """

    name: str
    user: str
    tenant: str
    uid: str
    url: str
    address: str
    state: AppState
    phase: AppPhase
    access: AppAccess
    serves: Literal["model", "command"]
    model_name: str
    wanted: int
    ready: int
    message: Text
    detail: Detail
    created_at: datetime


class AppReplica(Response):
    """A replica: `phase` is that of its job, `ready` whether it answers. `message` says why it waits, or how it is.

    `forecast` has the range of its start by earlier runs of the jobs ahead of it, null if too little is known, or it waits no more.
    """

    replica: int
    phase: str
    ready: bool
    generation: int
    node: str | None
    reason: str | None
    message: Text
    detail: Detail
    position: int | None
    expected_start: datetime | None
    started_at: datetime | None
    forecast: RunForecast | None = None


class Application(Response):
    """An app. `state` is told by `phase`, which says more. `port` is its own as long as it is there; `url` is where it answers, below the hub's address.

    `address` is the same with the hub's public address, as a browser opens it.

    `model_name` is the model with the version that is served, empty where a command needs none. `wanted` are the replicas that are to
    run now, `ready` those that answer, `under_way` the requests that they had at once lately, null where nobody asks. `message` says why it waits or fails, `tail` has the last lines of the replica that failed last.
    """

    name: str
    user: str
    tenant: str
    gpu: float
    cpu: float
    model_name: str
    port: int
    url: str
    address: str
    state: AppState
    phase: AppPhase
    uid: str
    ram: int
    gpu_kind: str | None
    replicas: int | str
    idle: int
    concurrency: int
    under_way: float | None
    wanted: int
    ready: int
    command: str | None
    command_port: int
    runtime: str
    env_name: str | None
    priority: str
    access: AppAccess
    generation: int
    failures: int
    message: Text
    detail: Detail
    tail: str
    running: list[AppReplica]
    created_at: datetime
