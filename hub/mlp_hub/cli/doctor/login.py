"""The doctor's look at the provider whose accounts people log in with."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.service.tenants import groups
from mlp_hub.settings import Settings, variable_of
from mlp_language.render import say

MODULE = "mlp_hub.hub_integration.providers.examine"
_PATIENCE_S = 60.0
_STATUSES = {"ok": OK, "warn": WARN, "fail": FAIL}


def login(settings: Settings) -> list[Check]:
    """Tell how people log in, and whether the provider knows this hub: asked by a process of the hub's side, with its code."""
    if not settings.login_provider:
        return [Check("login", OK, say("accounts of this hub, which an administrator approves"))]
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("MLP_LOGIN")},
        **settings.to_environ(),
        variable_of("login_client_secret"): settings.login_client_secret,
    }
    environ.pop("MLP_CONFIG", None)  # all of it is among the variables
    try:
        done = subprocess.run(
            [sys.executable, "-m", MODULE],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=True,
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return [Check("login", FAIL, say("{title} does not answer", title=settings.login_name))]
    except (subprocess.CalledProcessError, ValueError) as error:
        output = getattr(error, "stderr", "") or str(error)
        return [Check("login", FAIL, " ".join(output.split())[-300:], say("This check itself failed."))]
    checks = [Check("login", _STATUSES[one["status"]], one["found"], one["remedy"]) for one in found]
    return [*checks, *_admins_as_tenants(settings)]


def _admins_as_tenants(settings: Settings) -> list[Check]:
    """Warn where the first login of a platform admin would make a tenant of the admins' group."""
    if settings.login_new_tenants != "make":
        return []
    given = groups.policy_as_set(settings).wanted(settings.login_admin_groups)
    return [
        Check(
            "login",
            WARN,
            say("the platform admins' group {group} makes a team {tenant}", group=place.group, tenant=tenant),
            say(
                "If you do not want that, narrow MLP_LOGIN_TENANTS: {rule}",
                rule="/teams/{tenant} -> {tenant}",
            ),
        )
        for tenant, place in sorted(given.places.items())
    ]
