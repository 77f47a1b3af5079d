"""Silences of alerts: stored, and in memory as they are stored, because each evaluation asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from mlp_api.platform import alerts as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.notices.alert import AlertSilence, AlertState
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.text import one_line
from mlp_hub.service.alerts.wire import silence_to
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.support import limits
from mlp_hub.service.support.ends import check_end
from mlp_hub.service.support.units import when
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg


class Silences:
    """Use cases of silences. Whether who asks may is for the caller to say."""

    def __init__(self, db: Database, clock: Callable[[], float], rules: Mapping[str, AlertRule]) -> None:
        self._db, self._clock, self._rules = db, clock, rules
        self._known: tuple[AlertSilence, ...] = ()
        self.on_made: Callable[[AlertSilence], None] = lambda _: None
        """Called with each new silence, which is stored."""
        self.turn = asyncio.Lock()
        """Held while alerts are stored: by an evaluation too, so that neither replaces the other's marks with older ones."""

    def load(self, stored: Sequence[AlertSilence]) -> None:
        """Take what is stored."""
        self._known = tuple(stored)

    def current(self, tenant: str | None) -> Sequence[AlertSilence]:
        """Return the silences that are not over; of a tenant: its own, and those of rules about tenants."""
        now = self._clock()
        return [
            one
            for one in self._known
            if one.ends_at > now and (tenant is None or self._concerns(one, tenant))
        ]

    def _concerns(self, one: AlertSilence, tenant: str) -> bool:
        rule = self._rules.get(one.rule)
        return one.tenant == tenant or (not one.tenant and rule is not None and rule.of_tenant)

    async def make(
        self, asked: api.TeamSilenceCreate, *, tenant: str, of_team: bool, actor: str
    ) -> api.AlertSilence:
        """Silence alerts; `of_team`: by an administrator of the tenant. Raises `Invalid`, `NotFound` for a tenant that is not there."""
        now = self._clock()
        new = AlertSilence(
            0, asked.rule, tenant, of_team, one_line(asked.reason), actor, now, asked.until.timestamp()
        )
        self._check(new, now)

        def work(tx: Tx) -> AlertSilence:
            if tenant and tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            tx.alerts.delete_expired_silences(now)
            there = [
                one
                for one in tx.alerts.silences(now)
                if one.of_team is of_team and (not of_team or one.tenant == tenant)
            ]
            if len(there) >= limits.SILENCES:
                raise Refused(
                    Reason.INVALID,
                    msg("there are {n} silences; end one that nobody needs", n=limits.SILENCES),
                )
            made = tx.alerts.add_silence(new)
            for alert in tx.alerts.open_ones():
                if alert.state is AlertState.FIRING and made.covers(alert, now):
                    tx.alerts.change(made.repeated(alert))
            detail = {"rule": new.rule, "reason": new.reason, "until": when(new.ends_at).isoformat()}
            tx.audit.add(now, actor, "silence.make", str(made.id), tenant=tenant or None, detail=detail)
            return made

        async with self.turn:
            made = await self._db.write(work)
            self._known = (*(one for one in self._known if one.ends_at > now), made)
            self.on_made(made)
        return silence_to(made)

    async def end(
        self, number: str, *, tenant: str | None = None, of_any: bool = True, actor: str
    ) -> api.AlertSilence:
        """End a silence early. The next evaluation notifies people of its alerts that still fire.

        With a `tenant` only silences of that tenant can be ended; without `of_any` only those that its own administrators made.
        Raises `NotFound`.
        """
        one = next(
            (
                one
                for one in self.current(None)
                if str(one.id) == number and (of_any or one.of_team) and tenant in (None, one.tenant)
            ),
            None,
        )
        if one is None:
            raise not_found("silence", number)

        def work(tx: Tx) -> None:
            if tx.alerts.remove_silence(one.id):
                detail = {"rule": one.rule, "reason": one.reason}
                tx.audit.add(
                    self._clock(), actor, "silence.end", number, tenant=one.tenant or None, detail=detail
                )

        await self._db.write(work)
        self._known = tuple(each for each in self._known if each.id != one.id)
        return silence_to(one)

    def forget_tenant(self, tenant: str) -> None:
        """Forget those of a tenant that is gone."""
        self._known = tuple(one for one in self._known if one.tenant != tenant)

    def _check(self, new: AlertSilence, now: float) -> None:
        rule = self._rules.get(new.rule)
        if not new.reason:
            raise Refused(
                Reason.INVALID, msg("a silence needs a reason, which others read; its reason is empty")
            )
        check_end(msg("a silence"), new.ends_at, now, days=limits.SILENCE_DAYS)
        if not new.rule and not new.tenant:
            raise Refused(
                Reason.INVALID,
                msg("a silence of all alerts would hide any fault; name a rule, a team or both"),
            )
        if new.rule and rule is None:
            raise Refused(
                Reason.INVALID,
                msg("there is no rule {rule}; the page of the alerts has the names of all", rule=new.rule),
            )
        if new.tenant and rule is not None and not rule.of_tenant:
            raise Refused(
                Reason.INVALID,
                msg("the alerts of {rule} are not about teams; leave the team out", rule=new.rule),
            )
