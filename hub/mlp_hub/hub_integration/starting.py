"""Start of notebook servers by the form alone: a link with options only shows the form.

JupyterHub starts one for anyone who follows such a link (`/hub/spawn?cpu=8`), on any page. So a
page elsewhere could use up a quota.
"""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers.pages import SpawnHandler


def install() -> None:
    """Have the page take no options of its address."""
    SpawnHandler._get_user_options = _none  # noqa: SLF001 - the hub has no public way


def _none(self: Any, query_options: Any) -> dict[str, Any]:  # noqa: ARG001
    return {}
