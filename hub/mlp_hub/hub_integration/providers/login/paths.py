"""Where the pages of the provider's login are."""

from __future__ import annotations

from tornado.httputil import url_concat

BEGIN, ARRIVE = "oauth_login", "oauth_callback"


def confirm_url(base_url: str, wanted: str) -> str:
    """Return where a person of the provider says again who they are."""
    return str(url_concat(f"{base_url}{BEGIN}", {"confirm": "1", "next": wanted}))
