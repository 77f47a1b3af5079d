"""Logins that browsers have begun with the provider: each is a cookie of the browser that began it, and ends with its first use.

Whoever gets hold of the address that the provider leads back to can do nothing with it in another browser, and nobody can
have somebody else's browser finish a login that they began.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from mlp_hub.hub_integration.providers.protocols.provider import PendingLogin
from mlp_hub.settings.origins import Origins

COOKIE = "mlp-login"
KEPT_S = 900.0
"""Time that somebody has to log in there."""
NEXT_MAX = 1000
_SLOTS = 4
"""So many tabs may be at it at once: a page that begins thousands sends no browser away with more cookies than proxies take."""
_USED_MAX = 100_000


class States:
    """Begins logins and finds them again."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._used: OrderedDict[str, float] = OrderedDict()

    def begin(
        self, handler: Any, issuer: str, redirect_uri: str, wanted: str, *, confirms: str = ""
    ) -> PendingLogin:
        """Begin one and note it in the browser."""
        pending = PendingLogin(
            issuer=issuer,
            redirect_uri=redirect_uri,
            state=secrets.token_hex(16),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            next=wanted if len(wanted) <= NEXT_MAX else "",
            at=time.time(),
            confirms=confirms,
        )
        handler._set_cookie(  # noqa: SLF001 - JupyterHub's way to set one as it is configured
            self._cookie(pending.state),
            json.dumps(asdict(pending)),
            path=self._path(handler),
            max_age=int(KEPT_S),
        )
        return pending

    def take_pending(self, handler: Any, state: str) -> PendingLogin | None:
        """Return the login that this browser began under this state and end it; None where it began none, or it is over."""
        name = self._cookie(state)
        held = handler.get_secure_cookie(name, max_age_days=KEPT_S / 86_400)
        handler.clear_cookie(name, path=self._path(handler), secure=self._origins.guarded_cookies)
        try:
            pending = PendingLogin(**json.loads(held or b"null"))
        except (TypeError, ValueError):
            return None
        if (
            not hmac.compare_digest(pending.state.encode(), state.encode())
            or time.time() - pending.at > KEPT_S
        ):
            return None
        return pending if self._first_use(pending.state) else None

    def _first_use(self, state: str) -> bool:
        """Note it as used: a copy of the cookie is worth nothing after that."""
        now = time.time()
        while self._used and (next(iter(self._used.values())) < now - KEPT_S or len(self._used) > _USED_MAX):
            self._used.popitem(last=False)
        first = state not in self._used
        self._used[state] = now
        return first

    def _cookie(self, state: str) -> str:
        return self._origins.cookie(f"{COOKIE}-{sum(state.encode()) % _SLOTS}")

    def _path(self, handler: Any) -> str:
        return "/" if self._origins.guarded_cookies else str(handler.hub.base_url)
