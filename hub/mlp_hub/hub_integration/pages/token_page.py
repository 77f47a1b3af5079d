"""Page of a person's tokens: the rights of each, its expiry, its last use and the address of that.

JupyterHub's own handler and script work on a template of the platform. The platform's service knows
the addresses.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from ipaddress import ip_address
from typing import Any

from jupyterhub.handlers.pages import TokenPageHandler

from mlp_hub.api.auth.scopes import ACCESS, JOBS_READ, JOBS_WRITE, PREFIX, TENANTS_READ, USER_SCOPES
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_language.message import NOTHING, Message, Span, msg
from mlp_spawner.quota.service_client import ServiceClient

PAGE = "token.html"
DAY_S = 86_400
SOON_S = 5 * DAY_S
LIFETIMES = (
    (DAY_S, msg("1 day")),
    (7 * DAY_S, msg("1 week")),
    (30 * DAY_S, msg("1 month")),
    (90 * DAY_S, msg("3 months")),
    (365 * DAY_S, msg("1 year")),
)
"""How long a new token may hold."""
USUAL_S = 30 * DAY_S
PERMISSIONS = (
    ((ACCESS, *USER_SCOPES), msg("work with the platform, like a token of `mlp login`")),
    ((ACCESS, JOBS_READ, JOBS_WRITE, TENANTS_READ), msg("submit, watch and stop jobs")),
    ((ACCESS, JOBS_READ), msg("see jobs, their logs and metrics")),
    ((), msg("everything that you may do, also at JupyterHub")),
)
"""Rights of a new token; further restrictions are requested on a terminal."""


@dataclass(frozen=True, slots=True)
class Row:
    """A token, or what an application holds, as the page shows it."""

    id: str
    note: str
    scopes: tuple[str, ...]
    used: Message
    address: str
    made: Message
    ends: Message
    ends_soon: bool = False


def install(settings: Settings) -> None:
    """Have JupyterHub's page of tokens show ours."""
    service = ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))
    render = TokenPageHandler.render_template

    @wraps(render)
    def rendered(self: Any, name: str, sync: bool = False, **shown: Any) -> Any:
        return tokens(self, **shown) if name == PAGE else render(self, name, sync, **shown)

    async def tokens(self: Any, **shown: Any) -> Any:
        uses = await service.token_uses(self.current_user.name)
        most = self.settings.get("token_expires_in_max_seconds") or 0
        return await render(self, PAGE, **{**shown, **page(shown, uses, time.time(), most)})

    TokenPageHandler.render_template = rendered


def page(
    given: Mapping[str, Any], uses: Mapping[str, tuple[str, float]] | None, now: float, most: int
) -> dict[str, Any]:
    """Return the template's data from JupyterHub's data; `uses` is None if the service did not report them."""
    tokens = [_row(token, (uses or {}).get(token.api_id), now) for token in given["api_tokens"]]
    return {
        "api_tokens": tokens,
        "oauth_clients": [_application(client, now) for client in given["oauth_clients"]],
        "addresses_told": uses is not None,
        "lifetimes": [(s, text, s == USUAL_S) for s, text in LIFETIMES if not most or s <= most],
        "most": most,
        "permissions": [(" ".join(scopes), text) for scopes, text in PERMISSIONS],
    }


def _row(token: Any, use: tuple[str, float] | None, now: float) -> Row:
    ends = _seconds(token.expires_at)
    # the hub gives ids again: what was noted before this token was made is of another one
    address, since = use if use is not None and use[1] >= (_seconds(token.created) or 0.0) else ("", 0.0)
    used = max(_seconds(token.last_activity) or 0.0, since)  # the hub notes a use some minutes apart
    return Row(
        token.api_id,
        token.note or "",
        _short(token.scopes),
        _ago(used or None, now),
        _from(address),
        _ago(_seconds(token.created), now, msg("not known")),
        msg("never") if ends is None else msg("in {span}", span=Span(max(0.0, ends - now))),
        ends is not None and ends - now < SOON_S,
    )


def _from(address: str) -> str:
    """Return an address as it is shown; callers on the machine's own socket, such as a notebook, have none."""
    try:
        return str(ip_address(address))
    except ValueError:
        return ""


def _application(client: Mapping[str, Any], now: float) -> Row:
    scopes = _short({scope for token in client["tokens"] for scope in token.scopes})
    used = _ago(_seconds(client["last_activity"]), now)
    made = _ago(_seconds(client["created"]), now, msg("not known"))
    return Row(client["token_id"], client["description"], scopes, used, "", made, NOTHING)


def _short(scopes: Any) -> tuple[str, ...]:
    """Return the platform's scopes as `mlp token` calls them, others as JupyterHub does."""
    return tuple(
        sorted(s.removeprefix(PREFIX).partition("!")[0] if s.startswith(PREFIX) else s for s in scopes)
    )


def _ago(at: float | None, now: float, otherwise: Message = msg("never")) -> Message:  # noqa: B008 - it is a value
    return otherwise if at is None else msg("{span} ago", span=Span(max(0.0, now - at)))


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.replace(tzinfo=UTC).timestamp()
