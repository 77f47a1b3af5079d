"""Scopes as data: the rights of tokens, the holders of scopes, and the relations to objects.

The service checks requests by this table. The hub's configuration defines its custom scopes and
roles from it. OpenAPI and the documentation print it. It imports nothing, so that the hub's
configuration can read it at no cost.

A request needs both: its token must hold the route's scope, and its owner must have the route's
relation to the object (their own, their tenant's, any as a platform admin).
"""

from __future__ import annotations

PREFIX = "custom:mlp:"
JOBS_READ = f"{PREFIX}jobs:read"
JOBS_WRITE = f"{PREFIX}jobs:write"
MODELS_READ = f"{PREFIX}models:read"
MODELS_WRITE = f"{PREFIX}models:write"
APPS_READ = f"{PREFIX}apps:read"
APPS_WRITE = f"{PREFIX}apps:write"
DATA_READ = f"{PREFIX}data:read"
DATA_WRITE = f"{PREFIX}data:write"
TENANTS_READ = f"{PREFIX}tenants:read"
TENANTS_WRITE = f"{PREFIX}tenants:write"
USERS_READ = f"{PREFIX}users:read"
USERS_WRITE = f"{PREFIX}users:write"
NOTICES_READ = f"{PREFIX}notices:read"
NOTICES_WRITE = f"{PREFIX}notices:write"
CLUSTER_READ = f"{PREFIX}cluster:read"
CLUSTER_WRITE = f"{PREFIX}cluster:write"
LEDGER_WRITE = f"{PREFIX}ledger:write"
STORED_WRITE = f"{PREFIX}stored:write"
GATEWAY = f"{PREFIX}gateway"
METRICS_READ = "read:metrics"
"""Scope of a scraper: it is JupyterHub's own, so that one token scrapes the hub and the platform."""

SCOPES: dict[str, str] = {
    JOBS_READ: "Read jobs, their logs, metrics and events; and environments.",
    JOBS_WRITE: "Submit, cancel, suspend, resume and delete jobs; report their metrics; make and delete environments.",
    MODELS_READ: "Read models and their files.",
    MODELS_WRITE: "Register, stage and delete models.",
    APPS_READ: "Read apps, how they stand and their logs.",
    APPS_WRITE: "Deploy, scale and delete apps; make and revoke their keys.",
    DATA_READ: "Read datasets and their files.",
    DATA_WRITE: "Make, write and delete datasets and their files.",
    TENANTS_READ: "Read tenants, their quota, members and use.",
    TENANTS_WRITE: "Change tenants and their members.",
    USERS_READ: "Read accounts and whether they were let in.",
    USERS_WRITE: "Approve and deregister accounts, set passwords, end sessions; get a new token.",
    NOTICES_READ: "Read what is new of one's jobs, and where one is told.",
    NOTICES_WRITE: "Choose what one is told of one's jobs, and where.",
    CLUSTER_READ: "Read nodes and the whole queue; stand as a platform admin to every object.",
    CLUSTER_WRITE: "Take nodes out of service and give them back; tell everybody something.",
    LEDGER_WRITE: "Hold and give back quota; the platform's own parts only.",
    STORED_WRITE: "Take room for files that are written, and give it back; what holds files only.",
    METRICS_READ: "Read the metrics of the platform and of JupyterHub; for a scraper such as Prometheus.",
    GATEWAY: "Ask who may open an app, and tell what was asked of it; the gateway to apps only.",
}
"""Every scope with its description."""

ACCESS = "access:services!service=mlp"
"""Scope that a person's token must hold in addition, whatever it asks for."""

PLATFORM_ADMIN = CLUSTER_READ
"""Scope that gives its holder a platform admin's relation to every object.

A notebook server's token does not hold it, so that an admin's notebook sees its owner's jobs only.
"""

OPERATOR = "mlp-operator"
"""The hub's service whose token the operator's command holds."""

SPAWNER = "mlp-spawner"
"""The hub's service whose token the hub itself holds, and its spawner."""

DATA = "mlp-data"
"""The hub's service whose token the process has that holds files of datasets."""

PROXY = "mlp-gateway"
"""The hub's service whose token the proxy has, for its gateway to apps."""

USER_SCOPES: tuple[str, ...] = (
    JOBS_READ,
    JOBS_WRITE,
    MODELS_READ,
    MODELS_WRITE,
    APPS_READ,
    APPS_WRITE,
    DATA_READ,
    DATA_WRITE,
    TENANTS_READ,
    TENANTS_WRITE,
    USERS_READ,
    USERS_WRITE,
    NOTICES_READ,
    NOTICES_WRITE,
)
"""Scopes of every user's role.

The relation bounds each: own jobs, own account, tenants that they administer.
"""

SERVER_SCOPES: tuple[str, ...] = (
    ACCESS,
    JOBS_READ,
    JOBS_WRITE,
    MODELS_READ,
    MODELS_WRITE,
    APPS_READ,
    APPS_WRITE,
    DATA_READ,
    DATA_WRITE,
    TENANTS_READ,
    NOTICES_READ,
)
"""Scopes of a notebook server's token."""

ADMIN_SCOPES: tuple[str, ...] = tuple(SCOPES)
"""Scopes of the platform admins' role."""

SPAWNER_SCOPES: tuple[str, ...] = (ACCESS, LEDGER_WRITE, TENANTS_READ)
"""Scopes of the spawner's service token."""

PART_SCOPES: dict[str, tuple[str, ...]] = {DATA: (ACCESS, STORED_WRITE), PROXY: (ACCESS, GATEWAY)}
"""Scopes of the tokens of the platform's other processes.

Each has the scopes of the routes that it asks, and none of the ledger.
"""


HUB_SCOPES: tuple[str, ...] = (
    "list:users",
    "read:users",
    "list:groups",
    "read:groups",
    "read:servers",
    "delete:servers",
    "tokens",
)
"""Scopes of JupyterHub that the service's own token needs at a hub that is another's."""


def custom_scopes() -> dict[str, dict[str, str]]:
    """Give the definitions for `c.JupyterHub.custom_scopes`; JupyterHub has its own scopes already."""
    return {name: {"description": text} for name, text in SCOPES.items() if name.startswith(PREFIX)}
