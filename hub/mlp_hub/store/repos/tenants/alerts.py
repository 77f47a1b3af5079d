"""Alerts of the service's own evaluation, and silences of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import not_, or_, select, update

from mlp_hub.domain.notices.alert import Alert, AlertSilence, AlertState
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import alert as a
from mlp_hub.store.tables import alert_silence as s

_alerts = Rows(Alert, a, numbered="id")
_silences = Rows(AlertSilence, s, numbered="id")
_OWED = or_(a.c.told_platform, a.c.told_tenant)


class Alerts(Repo):
    """The alerts that are not over, and the last ones that are."""

    __slots__ = ()

    def open_ones(self) -> list[Alert]:
        """Return those that are pending or fire, the oldest first."""
        return self._list(_alerts, select(a).where(a.c.state != AlertState.RESOLVED.value).order_by(a.c.id))

    def owed_ones(self) -> list[Alert]:
        """Return those that are over, and whose notice of the end still waits, the oldest first."""
        return self._list(_alerts, select(a).where(a.c.resolved_at.is_not(None), _OWED).order_by(a.c.id))

    def resolved(self, tenant: str | None, limit: int) -> list[Alert]:
        """Return those that are over, of a tenant or of all, the newest first."""
        query = select(a).where(a.c.resolved_at.is_not(None))
        if tenant is not None:
            query = query.where(a.c.tenant == tenant)
        return self._list(_alerts, query.order_by(a.c.resolved_at.desc(), a.c.id.desc()).limit(limit))

    def add(self, new: Alert) -> Alert:
        """Store a new one, and return it with its number."""
        number = self._c.execute(a.insert().values(_alerts.row(new)).returning(a.c.id)).scalar_one()
        return replace(new, id=int(number))

    def change(self, new: Alert) -> None:
        """Store what became of one."""
        self._c.execute(update(a).where(a.c.id == new.id).values(_alerts.row(new)))

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget some."""
        for number in numbers:
            self._delete(a, a.c.id == number)

    def remove_all(self, tenant: str) -> None:
        """Forget those of a tenant, and its silences."""
        self._delete(a, a.c.tenant == tenant)
        self._delete(s, s.c.tenant == tenant)

    def delete_before(self, before: float) -> int:
        """Delete those that were over by then, and whose notices were all sent; return their number."""
        return self._delete(a, a.c.resolved_at < before, not_(_OWED))

    def silences(self, now: float) -> list[AlertSilence]:
        """Return the silences that are not over, the oldest first."""
        return self._list(_silences, select(s).where(s.c.ends_at > now).order_by(s.c.id))

    def add_silence(self, new: AlertSilence) -> AlertSilence:
        """Store a new silence, and return it with its number."""
        number = self._c.execute(s.insert().values(_silences.row(new)).returning(s.c.id)).scalar_one()
        return replace(new, id=int(number))

    def remove_silence(self, number: int) -> bool:
        """End a silence; False where it is not there."""
        return bool(self._delete(s, s.c.id == number))

    def delete_expired_silences(self, now: float) -> int:
        """Delete the silences that are over; return their number."""
        return self._delete(s, s.c.ends_at <= now)
