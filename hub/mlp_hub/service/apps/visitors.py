"""Apps of others that a user may open, and their public data, without anything that an app runs with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from mlp_api.apps import apps as api
from mlp_api.localized import Detail, Text
from mlp_hub.domain.apps.app import App
from mlp_hub.domain.apps.app_gate import may_open
from mlp_hub.domain.errors import not_found
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg


class AppVisitors:
    """Visitors' view of apps, by the gateway's rule `may_open` on stored data; `shown` is the owner's view."""

    def __init__(self, db: Database, shown: Callable[[App], Awaitable[api.Application]]) -> None:
        self._db, self._shown = db, shown

    async def may(self, visitor: str, user: str, name: str) -> bool:
        """Tell whether somebody with an account may open a user's app; not where there is none."""

        def look(tx: Tx) -> bool:
            found = tx.apps.find(SYSTEM, user, name)
            return found is not None and opens(tx, found, visitor)

        return await self._db.read(look)

    async def get(self, context: TenantContext, user: str, name: str) -> api.SharedApp:
        """Return an app that may be opened. Raises NotFound, where it is there and not open too."""

        def look(tx: Tx) -> App | None:
            found = tx.apps.find(SYSTEM, user, name)
            if found is None or context.sees(found.user, found.tenant):
                return found
            return found if opens(tx, found, context.user) else None

        app = await self._db.read(look)
        if app is None:
            raise not_found("app", name)
        return _shared(await self._shown(app))

    async def list(
        self, visitor: str, *, limit: int = 100, cursor: str | None = None
    ) -> tuple[Sequence[api.SharedApp], str | None]:
        """Return the apps of others that somebody may open, the newest first, and the cursor of the next page."""

        def look(tx: Tx) -> list[App]:
            places = _places(tx, visitor)
            found = sorted(tx.apps.all(SYSTEM), key=lambda app: app.uid, reverse=True)
            return [
                app
                for app in found
                if app.user != visitor
                and (cursor is None or app.uid < cursor)
                and may_open(app, visitor, places)
            ][: limit + 1]

        found = await self._db.read(look)
        following = found[limit - 1].uid if len(found) > limit else None
        return [_shared(await self._shown(app)) for app in found[:limit]], following


def opens(tx: Tx, app: App, visitor: str) -> bool:
    """Whether somebody with an account may open an app now."""
    return may_open(app, visitor, _places(tx, visitor))


def _places(tx: Tx, visitor: str) -> frozenset[str]:
    return frozenset(member.tenant for member in tx.members.of_user(visitor))


def text_for_visitors(app: api.Application) -> Text:
    """Return why an app does not answer, without what its program said when it ended: that may be anything, credentials too."""
    if app.failures and app.phase != "waiting" and app.message.message:
        return Text(
            msg("it failed, and is tried again; its owner, {user}, can see the reason", user=app.user)
        )
    return app.message


def _shared(app: api.Application) -> api.SharedApp:
    shown = text_for_visitors(app)
    return api.SharedApp(
        name=app.name,
        user=app.user,
        tenant=app.tenant,
        uid=app.uid,
        url=app.url,
        address=app.address,
        state=app.state,
        phase=app.phase,
        access=app.access,
        serves="model" if app.command is None else "command",
        model_name=app.model_name,
        wanted=app.wanted,
        ready=app.ready,
        message=shown,
        detail=Detail(shown.message),
        created_at=app.created_at,
    )
