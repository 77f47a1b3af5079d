"""Ways into an app: its access, its keys, and browsers that have opened it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field

from mlp_hub.domain.apps.app import App, AppAccess

KEY_PREFIX = "mlpk_"
"""How the key of an app begins, so that it is told from all other tokens, by people and by scanners of leaked secrets."""
KEY = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{20,100}}")


@dataclass(frozen=True, slots=True)
class AppKey:
    """A key of an app, never the key itself: that was shown once. `used_at` is not kept to the second."""

    id: str
    app: str  # its uid
    name: str
    made_by: str
    made_at: float
    used_at: float | None = None


@dataclass(frozen=True, slots=True)
class AppVisit:
    """A browser on its way to an app's origin (`is_code`), or there.

    `masked` is its session of the hub, which only its code or cookie gives.
    """

    app: str
    is_code: bool
    masked: bytes = field(repr=False)
    expires_at: float = 0.0


def label_of(user: str, app: str) -> str:
    """Name the host of a user's app, as a label of a host name: no user's is such, and no two apps have the same."""
    digest = base64.b32encode(hashlib.sha256(f"{user}/{app}".encode("utf-8", "surrogatepass")).digest())
    hint = re.sub(r"[^a-z0-9]", "", app)[:20] or "x"
    return f"a-{hint}--{digest[:26].decode().lower()}"


def may_open(app: App, visitor: str, places: frozenset[str]) -> bool:
    """Whether somebody with an account, a member of the tenants `places`, may open an app."""
    access = app.spec.access
    if visitor == app.user or access is AppAccess.HUB:
        return True
    return access is AppAccess.TENANT and app.tenant in places
