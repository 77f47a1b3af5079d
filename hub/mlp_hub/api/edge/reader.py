"""For whom an answer's text is made: the language and the time zone that a request names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tornado.httputil import HTTPHeaders, parse_cookie

from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.edge.answers import STRANGER
from mlp_hub.domain.errors import Unavailable
from mlp_hub.pools import WorkKind, run_in
from mlp_language.catalogue import COOKIE, LANGUAGES, catalogue, chosen, language_of
from mlp_language.message import ALL, Viewer
from mlp_language.render import Reader

if TYPE_CHECKING:
    from mlp_hub.service.platform import Platform

_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
_ZONES_KEPT = 1000
"""Safety: zones that are remembered: bounds memory; there are 600, and names of none are remembered too."""
_zones: dict[str, ZoneInfo | None] = {}

for _tag in LANGUAGES:
    catalogue(_tag)  # read now: no file is read while requests are served


def language_asked(headers: HTTPHeaders) -> str:
    """Return the language of a request: the chosen one before the browser's."""
    cookies = headers.get("Cookie", "")
    cookie = parse_cookie(cookies).get(COOKIE, "") if COOKIE in cookies else ""
    return _chosen(cookie, headers.get("Accept-Language", ""))


async def reader_of(headers: HTTPHeaders, zone: str = "", language: str = "", setting: str = "") -> Reader:
    """Return the reader of a request.

    `zone` and `language` are those of its query, and have the first priority: all parts of a page are
    in one language. `setting` is the user's permanent choice. It has priority over the language that
    the browser or terminal asks for.
    """
    name = (zone or headers.get("Time-Zone", ""))[:100]
    if name not in _zones:
        if len(_zones) >= _ZONES_KEPT:
            _zones.clear()
        _zones[name] = await run_in(WorkKind.ZONES, _zone, name) if _ZONE.fullmatch(name) else None
    tag = language_of(language) or language_of(setting) or language_asked(headers)
    return Reader(tag, _zones[name])


async def setting_of(platform: Platform, principal: Principal) -> str:
    """Return the language that who asks chose for good, or nothing."""
    if principal.kind is CallerKind.SERVICE or not principal.name:
        return ""  # a service says in its headers for whom it asks
    try:
        return await platform.users.language_of(principal.name)
    except Unavailable:
        return ""


async def viewer_of(platform: Platform, principal: Principal) -> Viewer:
    """Return what who asks may see of others' work; a job with its own token sees what its user does."""
    if principal.is_platform_admin:
        return ALL
    return await platform.visibility.viewer_of(principal.name) if principal.name else STRANGER


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # what no zone is called: the reader gets UTC
        return None


_chosen = lru_cache(maxsize=1000)(chosen)
