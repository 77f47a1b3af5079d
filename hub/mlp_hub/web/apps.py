"""The way of a browser to an app: from the hub's origin, where it is known, to the app's own, where it is not.

It begins at the app's own origin, where the gateway leaves a secret with the browser and sends it here with the digest (`way`); who
comes here first is sent there. The code that it gets is good with that secret alone, so nobody can be led into an app by another's.
"""

from __future__ import annotations

import re
from urllib.parse import urlencode

from mlp_hub.api.auth.authentication import Unauthorized, may_enter
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import APPS_READ
from mlp_hub.api.edge.call import BASE
from mlp_hub.domain.apps.app_gate import label_of
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.web.pages import Page
from mlp_language.message import msg

APP_PATH = rf"{BASE}/apps/([^/]+)/([^/]+)(/.*)?"
BY_LABEL = "~"
"""Value instead of a user where an app is named by its host label, followed by a `~` and the path.

It cannot be a user's name.
"""
WAY = re.compile(r"[A-Za-z0-9_-]{43}")
"""Given: a digest as the gateway writes it, SHA-256 in base64url."""


class AppPage(Page):
    """Leads who may open an app to its own origin, with a code that is good once; to the panel's page of a model that is served, which has none."""

    async def get(self, user: str, name: str, rest: str | None = None) -> None:
        """Go there; first to log in, where nobody knows the browser."""
        del rest
        service = self.service
        if self.request.headers.get("Sec-Fetch-Dest", "document") != "document":
            self.message(403, msg("Apps cannot be embedded"), msg("An app needs its own page."))
            return
        try:
            credential = await self.credential()
            principal = await service.auth.identify(credential)
        except Unauthorized:
            self.to_login()
            return
        gate = service.platform.app_gate
        label, _, way = name.partition("~") if user == BY_LABEL else ("", "", "")
        app = gate.by_label(label) if label else gate.find(user, name)
        known = principal.kind is CallerKind.USER and may_enter(principal) and APPS_READ in principal.scopes
        if app is None or not known or not await gate.may(app, principal.name):
            self.message(
                404,
                msg("Nothing here"),
                msg("This app does not exist, or it is not open to you."),
                label=msg("All pages"),
            )
            return
        rest = self._rest(app)
        if rest == "/" and await gate.serves_model(app):
            # what a model's server says there is for programs; people are shown how to ask it
            self.redirect(f"{service.config.pages}/app/{app.user}/{app.name}#ask")
            return
        if not service.config.app_origin:
            self.message(
                403,
                msg("No pages of apps here"),
                msg(
                    "An app's pages need their own host name, and this hub has one name for all: see MLP_USERS_DOMAIN. Programs can use the app with a key."
                ),
            )
            return
        asked = {"next": rest}
        if WAY.fullmatch(way):
            wait = service.limiter.take_token("app-visit", principal.key)
            if wait:
                self.message(
                    429, msg("Too often"), msg("Too many attempts to open apps. Try again in {n} s.", n=wait)
                )
                return
            asked["code"] = await service.visits.begin(app.uid, credential.session, way)
        origin = service.config.app_origin.replace("{label}", label_of(app.user, app.name))
        self.redirect(f"{origin}/_mlp/enter?{urlencode(asked)}")

    def _rest(self, app: Endpoint) -> str:
        """Return the path and query that are the app's, as they were asked for."""
        del app
        uri = self.request.uri or ""
        path, mark, query = uri.partition("?")
        rest = "/" + "/".join(path.split("/")[len(BASE.split("/")) + 3 :])
        return rest + mark + query
