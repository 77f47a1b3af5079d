"""Apps."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from mlp_hub.domain.apps.app import PORTS, App, AppPhase
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.repos.base import OwnedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import app as a
from mlp_hub.store.tables import app_use as u
from mlp_language.message import msg


class Apps(OwnedRepo[App]):
    """The apps of all users. One is here from its deployment until the last of its replicas has gone."""

    __slots__ = ()
    rows = Rows(App, a, converted={"tail": codec.PRINTABLE})
    found_in = select(a)
    owners = a

    def find(self, context: TenantContext, user: str, name: str) -> App | None:
        """Return the user's app of this name."""
        return self._first(context, self._of_user(user, (a.c.name, name)))

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
        query = self._of_user(user, (a.c.tenant, tenant))
        if phases is not None:
            query = query.where(a.c.phase.in_([p.value for p in phases]))
        return self._newest(context, query, before, limit)

    def all(self, context: TenantContext, phase: AppPhase | None = None) -> list[App]:
        """Return all of all users, or those in this phase, the oldest first."""
        query = select(a) if phase is None else select(a).where(a.c.phase == phase.value)
        return self._listed(context, query.order_by(a.c.uid))

    def count(self, user: str) -> int:
        """Count a user's."""
        return self._count(a, a.c.user == user)

    def using(self, context: TenantContext, user: str, model: str, version: int) -> str | None:
        """Return the name of an app of the user's that serves this version of a model."""
        mine = self._listed(context, self._of_user(user))
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

    def remove(self, uid: str) -> None:
        """Forget one; its name and its port are free again."""
        super().remove(uid)
        self._delete(u, u.c.kind == "app", u.c.name == uid)
