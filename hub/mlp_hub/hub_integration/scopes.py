"""The platform's scopes as JupyterHub has to know them."""

from __future__ import annotations

from typing import Any

from jupyterhub import roles

from mlp_hub.api.auth.scopes import ACCESS, SCOPES
from mlp_hub.api.auth.scopes import SERVER_SCOPES as NOTEBOOK_SCOPES
from mlp_hub.api.auth.scopes import USER_SCOPES as PERSON_SCOPES

USER_SCOPES = (ACCESS, *PERSON_SCOPES)
"""Scopes that are added to the hub's `user` role."""

SERVER_SCOPES = ("users:activity!user", "access:servers!server", *NOTEBOOK_SCOPES)
"""Scopes that a notebook server's token asks for; it gets those that its owner holds."""

OAUTH_SCOPES = (*SCOPES, "read:users:name!user", "read:users:groups!user")
"""Scopes that a login to the platform's pages asks for; it gets those that its owner holds."""


def let_administrators_have(scopes: tuple[str, ...]) -> None:
    """Add to JupyterHub's `admin` role, which `load_roles` cannot change.

    A second role would have to be granted and taken in step with the hub's own admin flag.
    """
    defaults = roles.get_default_roles

    def with_ours() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = defaults()
        for role in found:
            if role["name"] == "admin":
                role["scopes"] = [*role["scopes"], *(s for s in scopes if s not in role["scopes"])]
        return found

    roles.get_default_roles = with_ours
