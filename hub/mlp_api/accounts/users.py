"""Objects of the REST contract that are about people: accounts, sessions, and what the spawner asks of a user."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from mlp_api.types import LINE_PATTERN, NAME_PATTERN, Name, Request, Response

Scope = Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
UserName = Annotated[str, Meta(min_length=1, max_length=255)]


class UserCreate(Request):
    """Sign up. The password goes to the hub's authenticator and is kept nowhere else."""

    username: UserName
    password: Annotated[str, Meta(min_length=1, max_length=1024)]
    tenant: Name | None = None


class UserClosed(Request):
    """A user, as clients of the interface document send one with the request that closes the account: `username` has to be theirs."""

    username: Annotated[str, Meta(max_length=255)] | None = None
    password: Annotated[str, Meta(max_length=1024)] | None = None
    state: Annotated[str, Meta(max_length=50)] | None = None


class TokenCreate(Request):
    """A token of somebody, for the operator's command. No `scopes`: all that the user may; no `expires_in`: for ever."""

    note: Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=100)] | None = None
    expires_in: Annotated[int, Meta(ge=1, le=315_360_000)] | None = None


class TokenAsk(Request):
    """Personal token for a program.

    Without `scopes` it has all scopes of the asking token. Without `expires_in` (seconds) it is valid
    for 30 days, or for the remaining time of the asking token if that is less.
    """

    note: Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=100)] | None = None
    expires_in: Annotated[int, Meta(ge=60, le=31_536_000)] | None = None


class TokenGiven(Response):
    """A token that was just made. Nobody can show it again."""

    token: str
    note: str
    scopes: list[str]
    expires: datetime


class TokenInfo(Response):
    """A token of somebody, without what it is. `scopes` are the platform's that it holds.

    `last_used` is kept by the hub, some minutes apart; `last_from` is the address it came from last, empty where it was not
    used here. `current` is the token that asks; `ends_soon`: within five days.
    """

    id: str
    note: str
    scopes: list[str]
    created: datetime | None
    expires: datetime | None
    last_used: datetime | None
    last_from: str
    current: bool
    ends_soon: bool


class TokenMade(Request):
    """Token that the hub gave a user on its own page, for the audit log.

    The fields are the asker, the purpose, the scopes, and the time of expiry.
    """

    actor: UserName
    note: Annotated[str, Meta(max_length=255, pattern=LINE_PATTERN)]
    scopes: Annotated[str, Meta(max_length=1000, pattern=LINE_PATTERN)]
    expires: Annotated[str, Meta(max_length=64, pattern=LINE_PATTERN)]


class HubNews(Request, kw_only=True):
    """Common part of reports of the hub: reports with the same key `once` are recorded once within a day.

    `at` is the time of the change in seconds since 1970, if it is recorded later.
    """

    once: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None
    at: Annotated[float, Meta(ge=0, le=253_402_300_799)] | None = None


class TokenEnded(HubNews):
    """A token that is ended at the hub itself, for the audit log: by whom, and which: its note and the hub's id.

    With `recorded` the entry is there, and the token has ended: the service believes it no more.
    """

    actor: UserName
    note: Annotated[str, Meta(max_length=255, pattern=LINE_PATTERN)]
    token: Annotated[str, Meta(max_length=64, pattern=LINE_PATTERN)]
    recorded: bool = False


class AccountChange(HubNews):
    """Change of an account at the hub itself, for the audit log: by whom, and which.

    The hub reports it before it makes it, and afterwards if it takes something away while the service is away.
    """

    actor: UserName
    action: Literal[
        "user.approve",
        "user.deactivate",
        "user.password",
        "user.logout",
        "user.stop_servers",
        "user.admin",
        "user.delete",
    ]
    admin: bool | None = None


class TokenUse(Response):
    """From where a token was used last, by the hub's id, and since when from there: seconds since 1970."""

    id: str
    address: str
    at: float


class LoginStanding(HubNews):
    """State of an account at the login's provider, as reported by the hub that asked the provider.

    `groups` are the account's groups now. `left_out` are those that are not taken, with the reason.
    `ended`: the account was removed there (`disabled`), or only that login ended (`session`). In both
    cases `groups` are the last known ones. `tokens` is the number of the user's tokens that ended
    because the account was removed just now. `admin`: a group made the user a platform admin just now,
    or took that away.
    """

    groups: Annotated[list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=1000)] = (
        field(default_factory=list)
    )
    left_out: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=20)] = field(
        default_factory=list
    )
    ended: Literal["", "disabled", "session"] = ""
    tokens: Annotated[int, Meta(ge=0)] | None = None
    admin: bool | None = None


class ProviderStanding(Request):
    """Whether the login's provider answers, reported by the hub that asks it.

    `refuses`: the provider's words where it answers and does not accept this hub, so that logins fail.
    """

    away: bool
    refuses: Annotated[str, Meta(max_length=1000)] = ""


class PasswordReset(Request):
    """Another password for somebody. Without one it is made up, and told in the answer, once."""

    password: Annotated[str, Meta(min_length=1, max_length=1024)] | None = None


class PasswordSet(Response):
    """New password for an administrator to give to the user; `password` is set where it was generated."""

    username: str
    password: str | None


class AdminRight(Request):
    """Administrator flag of a user of the platform."""

    admin: bool


class User(Response):
    """A user of the hub. `new` is who asked for an account and was never let in, `applied_for` the tenant they named.

    `servers` is how many notebook servers of theirs run. `last_activity` is when JupyterHub last saw them; null: never.
    """

    username: str
    state: Literal["NotActive", "Actived"]
    tenants: list[str]
    admin: bool = False
    default_tenant: str = "default"
    new: bool = False
    applied_for: str | None = None
    servers: int = 0
    last_activity: datetime | None = None


class Departing(Response):
    """Choices for a user who leaves, and the progress: `closing`, `ending`, `removing`, `left`.

    `stopped`, `suspended` and `removed` are the numbers of jobs that this was done to so far.
    """

    stage: Literal["closing", "ending", "removing", "left"]
    jobs: Literal["finish", "stop"]
    files: Literal["keep", "remove"]
    actor: str
    since: datetime
    stopped: int
    suspended: int
    removed: int


class Leaving(Response):
    """Belongings of a user that the person who closes the account decides on.

    Notebook servers, tokens and sessions end, and `apps` are deleted. `running` jobs finish or are
    stopped. `waiting` jobs are put aside or stopped. `suspended` and `ended` jobs stay or are removed
    with the files. The same is true of `datasets` and of `models` (versions of them), which take
    `stored` bytes. `bytes` is the size of the home where it is known. `departure` is null unless the
    account was closed after its last admission.
    """

    username: str
    state: Literal["NotActive", "Actived"]
    tenants: list[str]
    running: int
    waiting: int
    suspended: int
    ended: int
    servers: int
    tokens: int
    datasets: int
    models: int
    stored: int
    apps: int
    bytes: int | None
    departure: Departing | None


class Preferences(Request):
    """Preferences of a user.

    `language` is the language of all texts for the user. Empty means the language of the browser or
    terminal.
    """

    language: Literal["", "en", "zh-CN"] = ""


class SpawnInfo(Response):
    """User data for the spawner: `GET /users/{user}:spawn`, with the ledger's scope only.

    Where the hub runs as root, the user's processes run as system user `first_uid` plus `number`.
    """

    number: int
    tenants: list[str]
    default_tenant: str
    room: dict[str, SpawnRoom]


class ServerStop(Response):
    """Why the platform is stopping a user's notebook servers; `why` is empty where it is not. `at_once` gives them no time to end."""

    why: str = ""
    at_once: bool = False


class SpawnEnvironment(Response):
    """An environment that notebook servers of a tenant may be started with: the `image` of their pods, else the `kernel` of new notebooks."""

    uid: str
    name: str
    image: str | None
    kernel: str | None


class SpawnRoom(Response):
    """Room in a tenant's quota: cpu in cores, ram in MiB, gpu in devices; null: the nodes' capacity.

    `gpu_kinds` are the kinds that nodes have and the tenant may use. `cpu_borrow` and `ram_borrow` are
    idle amounts of others that the tenant may also have now. `cpu_back` and `ram_back` are amounts of
    its quota that a server could take back from the tenants that borrowed them (`back_from`). `network`
    is the tenant's setting for its jobs and notebooks, null without a setting. `job_network` is the
    network of its jobs: `none` or `outbound`. `environments` are the names of the environments that are
    ready.
    """

    cpu: float | None
    cpu_free: float | None
    ram: int | None
    ram_free: int | None
    gpu: float | None
    gpu_free: float | None
    gpu_kinds: list[str]
    cpu_borrow: float
    ram_borrow: int
    cpu_back: float
    ram_back: int
    back_from: list[str]
    network: str | None
    job_network: str
    environments: list[SpawnEnvironment]


class Keeping(Response):
    """How long the hub keeps a user's jobs that have ended; null: without a limit.

    They go `job_days` days after they ended; of more than `jobs`, or of more than `job_mib` in the database, the oldest first.
    """

    job_days: float | None
    jobs: int | None
    job_mib: float | None


class Session(Response):
    """Caller of the session, with the data that a page needs first.

    `warnings` are for platform admins: settings that are less safe than they could be. `language` is
    the chosen one, empty where none was chosen. `images`: jobs run in containers here, and environments
    are images.
    """

    username: str
    admin: bool
    tenants: list[str]
    tenant_admin: list[str]
    xsrf: str
    version: str
    keeping: Keeping
    warnings: list[str]
    language: str = ""
    images: bool = False


class ServiceCreate(Request):
    """An account of a tenant, with its first token. No `expires_in` (seconds): 90 days."""

    name: Annotated[str, Meta(pattern=NAME_PATTERN, max_length=28)]
    expires_in: Annotated[int, Meta(ge=60, le=31_536_000)] | None = None


class ServiceRotate(Request):
    """Another token for an account of a tenant. `grace`: seconds that those before it are taken still."""

    expires_in: Annotated[int, Meta(ge=60, le=31_536_000)] | None = None
    grace: Annotated[int, Meta(ge=0, le=2_592_000)] = 86_400


class ServiceTokenGiven(Response):
    """A token of an account of a tenant that was just made. Nobody can show it again. `old_until`: when those before it end."""

    user: str
    token: str
    expires: datetime
    old_until: datetime | None


class ServiceAccount(Response):
    """An account of a tenant: as which user it works, who made it and when, and its tokens."""

    name: str
    user: str
    made_by: str
    made_at: datetime
    tokens: list[TokenInfo]
