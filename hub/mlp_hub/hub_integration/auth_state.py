"""Keeps what the hub stores of a login at a provider inside the hub: JupyterHub's API would hand it to every platform admin.

It holds the person's live tokens of the company, which open the company's other services too.
"""

from __future__ import annotations

import json
from typing import Any

from jupyterhub.apihandlers.users import UserAPIHandler
from tornado.web import HTTPError

FIELD = "auth_state"
"""Given: its name in JupyterHub's API."""


def install() -> None:
    """Have JupyterHub's API of one user neither show it nor take it; its lists of users never have it."""
    check, write = UserAPIHandler._check_user_model, UserAPIHandler.write  # noqa: SLF001 - the hub has no public way

    def checked(self: Any, model: dict[str, Any]) -> None:
        if isinstance(model, dict) and FIELD in model:
            raise HTTPError(400, f"{FIELD} is kept by the hub alone; leave it out")
        check(self, model)

    def written(self: Any, chunk: Any) -> None:
        model = json.loads(chunk) if isinstance(chunk, str) else chunk
        if isinstance(model, dict) and FIELD in model:
            chunk = json.dumps({key: value for key, value in model.items() if key != FIELD})
        write(self, chunk)

    UserAPIHandler._check_user_model = checked  # noqa: SLF001
    UserAPIHandler.write = written
