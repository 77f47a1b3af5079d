"""Logging out by a person's own word: a page elsewhere that leads a browser here, or has it load the address, ends nothing.

Browsers say where a request began (`Sec-Fetch-Site`); of one that does not, as over plain HTTP, nothing is known.
"""

from __future__ import annotations

from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.handlers.login import LogoutHandler

from mlp_hub.settings.origins import Origins

OURS = ("none", "same-origin")
"""Given: how a browser says that the person typed the address, or went on from a page of ours."""


def install(origins: Origins) -> None:
    """Have the page ask first where another page led there."""
    leave = LogoutHandler.get

    @wraps(leave)
    async def asked(self: Any) -> None:
        user = self.current_user
        if user is None or is_own_word(self.request.headers, origins, user.name):
            await leave(self)
        else:
            self.set_header("Cache-Control", "no-store")
            self.finish(await self.render_template("log-out.html", for_name=user.name))

    LogoutHandler.get = asked


def is_own_word(headers: Any, origins: Origins, name: str) -> bool:
    """Whether a request to log out began on a page of the hub's, in the address line, or in the person's own notebooks."""
    if headers.get("Sec-Fetch-Site", OURS[0]) in OURS:
        return True
    try:
        began = urlsplit(headers.get("Referer", "")).hostname
    except ValueError:
        return False
    return (
        origins.apart
        and began == origins.of_user(name)
        and headers.get("Sec-Fetch-Dest", "")
        == "document"  # JupyterLab's own menu, and no picture in a notebook
    )
