"""Page where people choose the language of the hub's pages, and the way each page learns it.

Each page also gets the announcements for its reader.
"""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers import BaseHandler, default_handlers
from tornado import web

from mlp_hub.hub_integration.pages.language import SETTING, language, texts
from mlp_hub.logs.concern import current
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_language.catalogue import COOKIE, LANGUAGES
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.service_client import ServiceClient

PAGE = "language"
KEPT_DAYS = 365


class LanguagePage(BaseHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Where the form of every page's foot leads: it notes the language, and shows the page again."""

    service: ServiceClient

    async def post(self) -> None:
        """Set the cookie, and the setting of a logged-in user.

        The cookie holds no secret, because the front end's scripts read it.
        """
        tag = self.get_body_argument("language", "")
        if tag not in LANGUAGES:
            raise web.HTTPError(400)
        self.set_cookie(COOKIE, tag, path="/", expires_days=KEPT_DAYS, samesite="Lax")
        if _person(self):
            try:
                await self.service.choose_language(self.current_user.name, tag)
            except (ServiceUnreachable, ServiceRefused) as error:
                self.log.warning(
                    "The language of %s is kept in this browser only: %s", self.current_user.name, error
                )
        self.redirect(self._validate_next_url(self.get_body_argument("next", "")) or self.hub.base_url)


def _person(handler: Any) -> bool:
    asks = handler.current_user
    return asks is not None and asks.kind == "user"


def install(settings: Settings) -> None:
    """Make every page know its reader's language, and the way to choose another one."""
    LanguagePage.service = ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))
    prepare = BaseHandler.prepare

    @wraps(prepare)
    async def knowing(self: Any) -> None:
        await prepare(self)
        if not isinstance(self, APIHandler | LanguagePage) and _person(self):
            name = self.current_user.name
            tag, notices = await asyncio.gather(
                LanguagePage.service.language_of(name), LanguagePage.service.announced(name)
            )
            setattr(self, SETTING, tag)
            self.mlp_announced = notices

    BaseHandler.prepare = knowing
    plain = BaseHandler.template_namespace.fget

    def with_language(self: Any) -> dict[str, Any]:
        tag = language(self)
        here = self.request.uri if self.request.method == "GET" else ""
        return {
            **plain(self),
            "_": texts(tag),
            "language": tag,
            "languages": LANGUAGES,
            "language_page": f"{self.hub.base_url}{PAGE}",
            "this_page": here,
            "request_id": current().request_id,
            "announced": getattr(self, "mlp_announced", []),
        }

    setattr(BaseHandler, "template_namespace", property(with_language))  # noqa: B010 - untyped
    default_handlers.append((f"/{PAGE}", LanguagePage))
