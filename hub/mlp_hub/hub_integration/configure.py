"""The embedded hub's settings as JupyterHub's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jupyterhub.handlers import base

from mlp_hub.api.auth.scopes import (
    ACCESS,
    ADMIN_SCOPES,
    DATA,
    OPERATOR,
    PART_SCOPES,
    PROXY,
    SPAWNER,
    SPAWNER_SCOPES,
    custom_scopes,
)
from mlp_hub.api.edge.limits import rates
from mlp_hub.hub_integration.pages.language import language
from mlp_hub.hub_integration.scopes import OAUTH_SCOPES, SERVER_SCOPES, USER_SCOPES, let_administrators_have
from mlp_hub.settings import Settings
from mlp_hub.settings.executor_kinds import Ground
from mlp_hub.settings.origins import Origins
from mlp_hub.unix_sockets import url_of

HERE = Path(__file__).parent
SERVICE = "mlp"
SERVICE_PREFIX = "/services/mlp/"
REMEMBERED_S = 15
CULLER = "mlp-culler"
CULL_EVERY_S = 300
"""Tuning: seconds between two looks for idle servers, at most: sooner with less, cheaper with more."""
NEVER_S = 10 * 365 * 86_400


def landing(prefix: str, handler: Any) -> str:
    """Say where a person arrives who names no page: without a notebook server an administrator at the panel, below `prefix`.

    Whoever never had a server arrives there too, at the first steps. Empty: where JupyterHub sends people, to their
    notebook server or to its options.
    """
    user = handler.current_user
    if user is None or user.active:
        return ""
    if user.admin:
        return f"{prefix}admin"
    return "" if any(server.last_activity for server in user.orm_spawners.values()) else prefix


def configure(c: Any, settings: Settings) -> None:
    """Set all that the embedded hub needs."""
    _hub(c, settings)
    _proxy(c, settings)
    _identities(c, settings)
    _accounts(c, settings)
    _servers(c, settings)
    _culling(c, settings)


def _hub(c: Any, settings: Settings) -> None:
    hub = c.JupyterHub
    hub.bind_url = f"http://:{settings.port}{settings.base}/"  # the proxy's; it is not the hub that starts it
    hub.hub_bind_url = url_of(settings.hub_socket)
    hub.hub_connect_url = url_of(settings.hub_at)
    # sandboxes have a socket of their own (`server.HubServer`), so that no crowd of them is in others' way
    hub.hub_socket_mode = 0o600
    hub.db_url = _database(settings.hub_db_url)
    hub.cookie_secret_file = str(settings.secret_file("cookie_secret"))
    hub.cookie_max_age_days = (
        settings.session_days
    )  # of the hub's own login, and of the tokens behind sessions
    _names(hub, settings.origins, settings.base)
    # a hub that ends or dies leaves servers and proxy running and finds them again
    hub.cleanup_servers = False
    hub.cleanup_proxy = False
    hub.template_paths = [str(HERE / "templates")]
    prefix = settings.base + SERVICE_PREFIX
    hub.template_vars = {"mlp_prefix": prefix}
    hub.jinja_environment_options = {"extensions": ["mlp_hub.hub_integration.pages.language.Translated"]}
    hub.default_url = partial(landing, prefix)
    hub.logo_file = str(HERE / "static" / "logo.svg")


def _database(url: str) -> str:
    """Return the URL of JupyterHub's database; on PostgreSQL nothing keeps it waiting for ever."""
    if url.startswith("sqlite:"):
        return url
    from mlp_hub.store import bounds, engine  # noqa: PLC0415 - only where it is not SQLite

    bounds.bind_all(bounds.HUB)
    return bounds.bounded(engine.parse(url)).render_as_string(hide_password=False)


def _names(hub: Any, origins: Origins, base_path: str) -> None:
    """Give each user's servers a separate name, and cookies that no other name gets or can plant."""
    cookies: dict[str, Any] = {"SameSite": "Lax"}
    hub.tornado_settings = {"cookie_options": cookies}
    if not origins.apart:
        if origins.platform.startswith("https:"):
            hub.public_url = f"{origins.platform}{base_path}/"
        return
    hub.subdomain_host = origins.platform
    hub.subdomain_hook = lambda name, _, kind: origins.host if kind == "service" else origins.of_user(name)
    # the hub's session cookie is otherwise set for all names below the hub's
    hub.tornado_settings["domain"] = ""
    if origins.guarded_cookies:
        cookies["secure"] = True
        hub.cookie_host_prefix_enabled = True
        base.SESSION_COOKIE_NAME = origins.cookie("jupyterhub-session-id")


def _proxy(c: Any, settings: Settings) -> None:
    c.JupyterHub.proxy_class = "mlp_hub.hub_integration.proxy.SocketProxy"
    c.SocketProxy.should_start = False
    c.SocketProxy.api_url = url_of(settings.proxy_at)
    c.SocketProxy.auth_token = settings.secret("proxy_token")
    service, data = url_of(settings.service_at), url_of(settings.data_at)
    host = settings.origins.host if settings.origins.apart else ""
    routes = {SERVICE_PREFIX: service, "/api/v1/": service, f"{SERVICE_PREFIX}data/": data, "/data/": data}
    c.SocketProxy.extra_routes = {f"{host}{settings.base}{path}": to for path, to in routes.items()}


def _identities(c: Any, settings: Settings) -> None:
    """Set the rights of the service, the spawner at the ledger, the operator's command, and people."""
    let_administrators_have(ADMIN_SCOPES)
    hub = c.JupyterHub
    hub.custom_scopes = custom_scopes()
    hub.extra_user_scopes = set(USER_SCOPES)
    hub.services = [
        {
            # without a URL: the hub never waits for it, and the proxy has its routes from `extra_routes`
            "name": SERVICE,
            "api_token": settings.secret("service_token"),
            "oauth_client_id": f"service-{SERVICE}",
            "oauth_redirect_uri": f"{settings.base}{SERVICE_PREFIX}oauth_callback",
            "oauth_no_confirm": True,
            "oauth_client_allowed_scopes": list(OAUTH_SCOPES),
            "display": False,
        },
        {"name": SPAWNER, "api_token": settings.secret("spawner_token"), "display": False},
        {"name": DATA, "api_token": settings.secret("data_token"), "display": False},
        {"name": PROXY, "api_token": settings.secret("gateway_token"), "display": False},
        {"name": OPERATOR, "api_token": settings.secret("operator_token"), "display": False},
    ]
    hub.load_roles = [
        {
            "name": "mlp-service",
            "description": "The platform's service: accounts, groups, and tokens for their owners",
            "scopes": [
                "admin:users",
                "admin:groups",
                "list:users",
                "read:users",
                "read:groups",
                "list:groups",
                "read:servers",
                "delete:servers",
                "tokens",
            ],
            "services": [SERVICE],
        },
        {
            "name": "mlp-spawner",
            "description": "The spawner's entries in the quota ledger",
            "scopes": list(SPAWNER_SCOPES),
            "services": [SPAWNER],
        },
        {
            "name": "mlp-data",
            "description": "What holds files of datasets: the room that they take",
            "scopes": list(PART_SCOPES[DATA]),
            "services": [DATA],
        },
        {
            "name": "mlp-gateway",
            "description": "The gateway to apps: who may open which, and what was asked of them",
            "scopes": list(PART_SCOPES[PROXY]),
            "services": [PROXY],
        },
        {
            "name": "mlp-operator",
            "description": "The operator's command on the hub's machine",
            "scopes": [
                "admin:users",
                "admin:servers",
                "list:users",
                "read:hub",
                "tokens",
                ACCESS,
                *ADMIN_SCOPES,
            ],
            "services": [OPERATOR],
        },
    ]


def _accounts(c: Any, settings: Settings) -> None:
    c.JupyterHub.authenticator_class = "mlp_hub.hub_integration.accounts.authenticator.NativeAccounts"
    if settings.login_kind.title:
        c.JupyterHub.authenticator_class = (
            "mlp_hub.hub_integration.providers.login.authenticator.CompanyAccounts"
        )
        company = c.CompanyAccounts
        company.settings_of = lambda: settings
        company.enable_auth_state = company.manage_groups = True
        company.auth_refresh_age = max(1, int(settings.login_refresh_s))
        company.refresh_pre_spawn = True
        company.auth_refresh_strict = True  # whose account was taken away gets nowhere by a token either
        c.CryptKeeper.keys = [settings.secret("crypt_key")]
    # the administrator is made by `mlp-hub up`, never by who signs up first under that name
    c.NativeAccounts.reserved_names = {settings.admin_name}
    signups = rates(signup=settings.rate_signups)["signup"]
    c.NativeAccounts.signup_every_s, c.NativeAccounts.signup_burst = (
        1 / signups.per_second,
        int(signups.burst),
    )


def _servers(c: Any, settings: Settings) -> None:
    spawner = SPAWNERS[settings.runs.ground](c, settings)
    spawner.service_url = url_of(settings.service_at)
    spawner.service_token = settings.secret("spawner_token")
    spawner.first_uid = settings.uid_base
    spawner.default_cpu = settings.notebook_cpu
    spawner.default_ram = settings.notebook_ram
    spawner.network = settings.notebook_network
    spawner.idle_s = settings.cull_idle_s
    spawner.server_token_scopes = list(SERVER_SCOPES)
    spawner.language_of = language
    # a server on another host name hears nothing of a logout: it asks the hub again after this, in place of 5 minutes
    spawner.args = [f"--HubOAuth.cache_max_age={REMEMBERED_S}"]


def _culling(c: Any, settings: Settings) -> None:
    """Have the hub run what ends idle notebook servers, where that is wanted; homes and jobs are nothing of its concern."""
    idle, age = settings.cull_idle_s, settings.cull_max_age_s
    if not idle and not age:
        return
    hub = c.JupyterHub
    least = min(one for one in (idle, age) if one)
    options = [
        f"--url=http://hub{settings.base}/hub/api",
        f"--timeout={idle or NEVER_S}",
        f"--cull-every={max(1, min(CULL_EVERY_S, least // 2))}",
        f"--max-age={age}",
    ]
    hub.services.append(
        {
            "name": CULLER,
            "command": [
                *(sys.executable, "-m", "mlp_hub.hub_integration.culler"),
                *(str(os.getpid()), str(settings.hub_socket), *options),
            ],
            "environment": {"MLP_INSTANCE": os.environ.get("MLP_INSTANCE", "")},
            "display": False,
        }
    )
    hub.load_roles.append(
        {
            "name": CULLER,
            "description": "Ends idle notebook servers",
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
            "services": [CULLER],
        }
    )


def _sandboxes(c: Any, settings: Settings) -> Any:
    c.JupyterHub.spawner_class = "mlp_spawner.LocalSpawner"
    spawner = c.LocalSpawner
    spawner.python = sys.executable
    spawner.state_dir = str(settings.servers_run_dir)
    spawner.socket_dir = str(settings.private_dir)
    spawner.hub_connect_url = url_of(settings.tenant_hub_socket)
    spawner.tenant_socket_dir = str(settings.tenant_dir)
    spawner.homes_dir = str(settings.homes_dir)
    spawner.storage_dir = str(settings.data_dir)
    spawner.isolation_dir = str(settings.isolation_dir)
    spawner.processes = settings.notebook_processes
    spawner.tmp_mib = settings.notebook_tmp
    spawner.master_key_file = str(settings.master_key_file)
    return spawner


def _pods(c: Any, settings: Settings) -> Any:
    from mlp_hub.hub_integration.pods import configure_pods  # noqa: PLC0415 - loads the cluster's client

    return configure_pods(c, settings)


SPAWNERS: Mapping[Ground, Callable[[Any, Settings], Any]] = {
    Ground.SANDBOX: _sandboxes,
    Ground.CLUSTER: _pods,
}
"""Function that configures the spawner of each ground, and returns its section."""
