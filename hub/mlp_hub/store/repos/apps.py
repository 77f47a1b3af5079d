"""Apps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import Select, delete, func, select

from mlp_hub.domain.apps.app import PORTS, App, AppPhase, AppSpec
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, within
from mlp_hub.store.tables import app as a
from mlp_hub.store.tables import app_use as u
from mlp_language.message import msg

_spec = msgspec.json.Decoder(AppSpec)


class Apps(Repo):
    """The apps of all users. One is here from its deployment until the last of its replicas has gone."""

    __slots__ = ()

    def get(self, context: TenantContext, uid: str) -> App | None:
        """Return one."""
        return self._first(context, select(a).where(a.c.uid == uid))

    def find(self, context: TenantContext, user: str, name: str) -> App | None:
        """Return the user's app of this name."""
        return self._first(context, select(a).where(a.c.user == user, a.c.name == name))

    def page(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        phases: Collection[AppPhase] | None = None,
        before: str | None = None,
        limit: int,
    ) -> list[App]:
        """Return a user's, the newest first, those older than `before`, a uid."""
        query = within(select(a), context, a.c.user, a.c.tenant).where(a.c.user == user)
        if tenant is not None:
            query = query.where(a.c.tenant == tenant)
        if phases is not None:
            query = query.where(a.c.phase.in_([p.value for p in phases]))
        if before is not None:
            query = query.where(a.c.uid < before)
        return [_app_of(row) for row in self._c.execute(query.order_by(a.c.uid.desc()).limit(limit))]

    def all(self, context: TenantContext, phase: AppPhase | None = None) -> list[App]:
        """Return all of all users, or those in this phase, the oldest first."""
        query = within(select(a), context, a.c.user, a.c.tenant)
        if phase is not None:
            query = query.where(a.c.phase == phase.value)
        return [_app_of(row) for row in self._c.execute(query.order_by(a.c.uid))]

    def count(self, user: str) -> int:
        """Count a user's."""
        return int(self._c.scalar(select(func.count()).select_from(a).where(a.c.user == user)) or 0)

    def using(self, context: TenantContext, user: str, model: str, version: int) -> str | None:
        """Return the name of an app of the user's that serves this version of a model."""
        query = within(select(a), context, a.c.user, a.c.tenant).where(a.c.user == user)
        mine = (_app_of(row) for row in self._c.execute(query))
        return next(
            (app.name for app in mine if (app.spec.model, app.spec.version) == (model, version)), None
        )

    def free_port(self) -> int:
        """Return a port that no app has; raises `Refused` when all are given."""
        given = set(self._c.scalars(select(a.c.port)))
        for port in PORTS:
            if port not in given:
                return port
        raise Refused(
            Reason.CONFLICT,
            msg(
                "all {n} ports of apps are in use; delete an app that nobody needs, then deploy again",
                n=len(PORTS),
            ),
        )

    def put(self, app: App) -> None:
        """Store one, new or changed."""
        self._c.execute(
            self._upsert(a, ("uid",)),
            {
                "uid": app.uid,
                "user": app.user,
                "name": app.name,
                "tenant": app.tenant,
                "spec": codec.dumps(app.spec),
                "port": app.port,
                "phase": app.phase.value,
                "made_at": app.made_at,
                "generation": app.generation,
                "wanted": app.wanted,
                "failures": app.failures,
                "not_before": app.not_before,
                "message": codec.message_text(app.message),
                "tail": codec.text(app.tail),
            },
        )

    def remove(self, uid: str) -> None:
        """Forget one; its name and its port are free again."""
        self._c.execute(delete(a).where(a.c.uid == uid))
        self._c.execute(delete(u).where(u.c.kind == "app", u.c.name == uid))

    def _first(self, context: TenantContext, query: Select[Any]) -> App | None:
        row = self._c.execute(within(query, context, a.c.user, a.c.tenant)).first()
        return None if row is None else _app_of(row)


def _app_of(row: Any) -> App:
    return App(
        uid=row.uid,
        user=row.user,
        name=row.name,
        tenant=row.tenant,
        spec=_spec.decode(row.spec),
        port=row.port,
        phase=AppPhase(row.phase),
        made_at=row.made_at,
        generation=row.generation,
        wanted=row.wanted,
        failures=row.failures,
        not_before=row.not_before,
        message=codec.message_of(row.message),
        tail=row.tail,
    )
