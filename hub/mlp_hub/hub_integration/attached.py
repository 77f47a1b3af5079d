"""Attaches the platform to a JupyterHub that somebody else configured: one call at the end of that hub's configuration.

    from mlp_hub.hub_integration.attached import attach
    attach(c, service="http://hub-mlp-hub-service.jhub.svc:8084")

The hub keeps its authenticator, its spawner with profiles, hooks and volumes, and its roles. It gets the platform's scopes,
roles of three services that its own values name, and quota around its spawner. This module needs JupyterHub and KubeSpawner
only, so that it runs in the hub's image as it is.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jupyterhub.app import JupyterHub
from traitlets.config.loader import LazyConfigValue

from mlp_hub.api.auth.scopes import (
    ADMIN_SCOPES,
    DATA,
    HUB_SCOPES,
    PART_SCOPES,
    SPAWNER,
    SPAWNER_SCOPES,
    custom_scopes,
)
from mlp_hub.hub_integration.scopes import OAUTH_SCOPES, SERVER_SCOPES, USER_SCOPES, let_administrators_have

SERVICE = "mlp"
BASE = "/services/mlp/api/v1"
THEIRS = "kubespawner.KubeSpawner"
"""Given: spawner of a Zero-to-JupyterHub."""


def attach(
    c: Any, *, service: str, data: str = "", installation: str = "mlp", by_limits: bool = True, team: str = ""
) -> None:
    """Configure a hub for the platform; raise ValueError with the way out where its other configuration does not fit.

    `service` is the URL of the platform's service, `data` that of its files, as pods of the hub's namespace reach
    them. `installation` is that value of the chart. `by_limits`: the quota counts limits of servers, otherwise
    requests. `team` is charged for all servers; empty, each user's own.
    """
    hub = c.JupyterHub
    tokens = _register(hub)
    _roles(hub)
    spawner = _spawner(hub)
    mixed = getattr(c, spawner.__name__)
    mixed.service_url = service.rstrip("/")
    mixed.service_token = tokens[SPAWNER]
    mixed.mlp_api_url = service.rstrip("/") + BASE
    if data:
        mixed.mlp_data_url = data.rstrip("/") + "/data"
    mixed.mlp_installation = installation
    mixed.mlp_by_limits = by_limits
    mixed.mlp_team = team
    _server_scopes(c)


def _register(hub: Any) -> dict[str, str]:
    """Complete the services that the hub's values name; return their tokens."""
    there = {one.get("name"): one for one in _listed(hub, "services")}
    found = {}
    for name in (SERVICE, SPAWNER, DATA):
        one = there.get(name)
        if one is None:
            raise ValueError(
                f"hub.services has no {name}: add `{name}: {{}}` there, so that the hub's chart makes its token"
            )
        token = one.get("api_token") or one.get("apiToken")
        if not token:
            raise ValueError(
                f"hub.services.{name} has no token: leave out its `command`, and set `api_token`"
            )
        found[name] = str(token)
        one.setdefault("display", name == SERVICE)
    pages = there[SERVICE]
    if not pages.get("url"):
        raise ValueError(
            f"hub.services.{SERVICE} has no url: it is where the hub's proxy finds the pages, such as http://hub-mlp-hub-service:8083"
        )
    pages["oauth_client_allowed_scopes"] = [
        *pages.get("oauth_client_allowed_scopes", ()),
        *(one for one in OAUTH_SCOPES if one not in pages.get("oauth_client_allowed_scopes", ())),
    ]
    pages.setdefault("oauth_no_confirm", True)
    return found


def _roles(hub: Any) -> None:
    """Define the scopes, and give them to the services, to everybody and to the hub's administrators."""
    hub.custom_scopes = {**(hub.get("custom_scopes") or {}), **custom_scopes()}
    roles = _listed(hub, "load_roles")
    for name, scopes in ((SERVICE, HUB_SCOPES), (SPAWNER, SPAWNER_SCOPES), (DATA, PART_SCOPES[DATA])):
        role = name if name.startswith("mlp-") else f"{name}-service"
        if all(one.get("name") != role for one in roles):
            roles.append({"name": role, "scopes": list(scopes), "services": [name]})
    people = next((one for one in roles if one.get("name") == "user" and "scopes" in one), None)
    if people is not None:
        people["scopes"] = [*people["scopes"], *(one for one in USER_SCOPES if one not in people["scopes"])]
    elif "extra_user_scopes" in JupyterHub.class_trait_names():
        hub.extra_user_scopes = {*(hub.get("extra_user_scopes") or ()), *USER_SCOPES}
    else:
        roles.append({"name": "user", "scopes": ["self", *USER_SCOPES]})
    let_administrators_have(ADMIN_SCOPES)


def _spawner(hub: Any) -> type[Any]:
    """Put the quota around the hub's spawner, whichever it is; return the class."""
    from mlp_spawner.attached.pod_quota import PodQuota  # noqa: PLC0415 - the hub has what it needs

    theirs = hub.get("spawner_class") or THEIRS
    if isinstance(theirs, str):
        module, _, name = theirs.rpartition(".")
        if not module:
            raise ValueError(f"spawner_class is {theirs!r}: write it with its module, such as {THEIRS}")
        theirs = getattr(import_module(module), name)
    from kubespawner import KubeSpawner  # noqa: PLC0415 - only a hub that has it can be attached to

    if not issubclass(theirs, KubeSpawner):
        raise ValueError(  # noqa: TRY004 - of the configuration
            f"spawner_class is {theirs.__name__}, which is not a KubeSpawner: the platform cannot read what its servers ask for"
        )
    if issubclass(theirs, PodQuota):
        raise ValueError(  # noqa: TRY004 - of the configuration
            "attach was called twice: remove one of the calls in hub.extraConfig"
        )
    # the sections of the site's own classes hold for this one too
    mixed = type("QuotaSpawner", (PodQuota, theirs), {"__module__": __name__})
    hub.spawner_class = mixed
    return mixed


def _server_scopes(c: Any) -> None:
    """Let servers' tokens carry the platform's scopes, beside those that the site asked for."""
    for section in ("QuotaSpawner", "KubeSpawner", "Spawner"):
        asked = c.get(section, {}).get("server_token_scopes")
        if callable(asked):
            raise ValueError(  # noqa: TRY004 - of the configuration
                f"{section}.server_token_scopes is a function: return the scopes of mlp_hub.hub_integration.scopes.SERVER_SCOPES too, and set it after attach()"
            )
        if asked:
            c.QuotaSpawner.server_token_scopes = [*asked, *(one for one in SERVER_SCOPES if one not in asked)]
            return
    c.QuotaSpawner.server_token_scopes = list(SERVER_SCOPES)


def _listed(hub: Any, name: str) -> list[Any]:
    """Return a list of the configuration itself, to change it."""
    found = hub.get(name) or []
    if isinstance(found, LazyConfigValue):  # a site's file said `append`
        found = found.get_value([])
    setattr(hub, name, found)
    return getattr(hub, name)  # type: ignore[no-any-return]
