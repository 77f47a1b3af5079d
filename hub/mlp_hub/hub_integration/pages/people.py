"""Single place for people: the panel; JupyterHub's other pages for making and deleting users lead there.

A user whom JupyterHub's own API or page makes has no account: cannot log in, cannot sign up, and is
not in the panel.
"""

from __future__ import annotations

import json
from typing import Any

from jupyterhub.apihandlers.users import UserAPIHandler, UserListAPIHandler
from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import needs_scope

from mlp_hub.hub_integration.configure import SERVICE_PREFIX
from mlp_hub.hub_integration.pages.language import said
from mlp_language.message import msg, to_data

_WAYS = msg(
    "people are managed in the panel: there they are approved, deactivated and made administrators; `mlp-hub user add` makes an account, and so does signing up"
)


class _LeadsToThePanel:
    """Refuses what would make, change or delete a user past their account. Looking stays as it is."""

    async def _refuse(self: Any, *_: str) -> None:
        self.set_status(403)
        text = said(self, _WAYS)
        self.finish(
            json.dumps(
                {"status": 403, "message": text, "msg": text, "detail": to_data(_WAYS), "reason": "Forbidden"}
            )
        )

    post = delete = patch = needs_scope("admin:users")(_refuse)


class UserList(_LeadsToThePanel, UserListAPIHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """JupyterHub's users."""


class UserItem(_LeadsToThePanel, UserAPIHandler):  # type: ignore[misc]
    """One of them."""


class AdminPage(BaseHandler):  # type: ignore[misc]
    """JupyterHub's own page for administrators."""

    @needs_scope("admin-ui")  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Go to the panel."""
        self.redirect(f"{SERVICE_PREFIX}admin/users")


def handlers() -> list[tuple[Any, ...]]:
    """List the routes below the hub's prefix."""
    return [(r"/admin", AdminPage), (r"/api/users", UserList), (r"/api/users/([^/]+)", UserItem)]
