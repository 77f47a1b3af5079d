"""Places in tenants that people request themselves, if a tenant allows it; its admins decide.

A request gives nothing by itself. A user who may not know of a tenant learns nothing by a request:
a closed tenant answers as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable

from mlp_api.teams import teams as api
from mlp_api.types import Member as ApiMember
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.domain.tenants.requests import AskedPlace
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Role, Tenant
from mlp_hub.service.support.people_notices import PeopleNotices
from mlp_hub.service.support.units import when
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.store import Database, Tx
from mlp_language.message import msg

MOST_ASKED = 10
"""Limit of teams: teams that one person can ask to join at a time."""
MOST_ASKING = 1000
"""Limit of teams: people who can ask one team at a time."""
ASKED = "asked"


class Joining:
    """The requests for places. `provider` is who manages the groups of people, empty where nobody does: then nobody asks here."""

    def __init__(
        self,
        db: Database,
        tenants: TenantService,
        clock: Callable[[], float],
        notices: PeopleNotices,
        provider: str = "",
    ) -> None:
        self._db = db
        self._tenants = tenants
        self._clock = clock
        self._provider = provider
        self._notices = notices

    async def teams(self, user: str) -> api.Teams:
        """Return the tenants that somebody may ask for a place, and where they have."""
        if self._provider or is_service(user):
            return api.Teams(teams=[], managed_by=self._provider)

        def work(tx: Tx) -> list[api.Team]:
            mine = {m.tenant for m in tx.members.of_user(user)}
            asked = {one.tenant: one for one in tx.asking.places_of(user)}
            return [
                api.Team(
                    tenant=one.name,
                    description=one.description,
                    asked_at=when(asked[one.name].asked_at) if one.name in asked else None,
                )
                for one in tx.tenants.all()
                if _may_be_asked(one) and one.name not in mine
            ]

        return api.Teams(teams=await self._db.read(work), managed_by="")

    async def ask(self, user: str, asked: api.JoinAsk) -> api.JoinRequest:
        """Ask for a place; asking again changes nothing. Raises `NotFound`, `Conflict`, `Forbidden`."""
        if is_service(user):
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "{user} is an account of one team: it cannot join another team or administer one",
                    user=user,
                ),
            )
        if self._provider:
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "the groups of {provider} decide who is in which team: ask there",
                    provider=self._provider,
                ),
            )
        now, tenant = self._clock(), asked.tenant

        def work(tx: Tx) -> tuple[AskedPlace, set[str]]:
            found = tx.tenants.get(tenant)
            if found is None or not _may_be_asked(found):
                raise not_found("tenant", tenant)
            if tx.members.get(tenant, user) is not None:
                raise Refused(Reason.CONFLICT, msg("you are a member of {tenant} already", tenant=tenant))
            known = tx.asking.place(tenant, user)
            if known is not None:
                return known, set()
            if len(tx.asking.places_of(user)) >= MOST_ASKED or tx.asking.count_in(tenant) >= MOST_ASKING:
                raise Refused(
                    Reason.CONFLICT,
                    msg("too many requests wait for an answer; take one of yours back, or wait"),
                )
            new = AskedPlace(tenant, user, now, asked.note)
            tx.asking.ask_place(new)
            tx.audit.add(
                now,
                user,
                "join.ask",
                user,
                tenant=tenant,
                detail={"note": asked.note} if asked.note else None,
            )
            admins = [one.user for one in tx.members.of_tenant(tenant) if one.role is Role.ADMIN]
            text = (
                msg("{user} asks to join {tenant}: {note}", user=user, tenant=tenant, note=asked.note)
                if asked.note
                else msg("{user} asks to join {tenant}.", user=user, tenant=tenant)
            )
            return new, self._notices.asked(tx, admins, (NoticeKind.ASKED, AskedFor.PLACE), tenant, text)

        found, who = await self._db.write(work)
        self._notices.notify(who)
        return _to_wire(found)

    async def take_back(self, user: str, tenant: str) -> api.JoinRequest:
        """Ask no more. Raises `NotFound`."""
        return _to_wire(await self._db.write(lambda tx: self._gone(tx, tenant, user, user, "join.take_back")))

    async def waiting(self, tenant: str) -> list[api.JoinRequest]:
        """Return who asks for a place in a tenant. Raises `NotFound`."""
        await self._tenants.get(tenant)
        return [
            _to_wire(one) for one in await self._db.read(lambda tx: tx.asking.places_in(tenant, MOST_ASKING))
        ]

    async def decline(self, tenant: str, user: str, *, actor: str) -> api.JoinRequest:
        """Say no. Raises `NotFound`."""

        def work(tx: Tx) -> tuple[AskedPlace, set[str]]:
            gone = self._gone(tx, tenant, user, actor, "join.decline")
            text = msg("{who} declined your request to join {tenant}.", who=actor, tenant=tenant)
            return gone, self._notices.asked(tx, [user], (NoticeKind.ANSWERED, AskedFor.PLACE), tenant, text)

        found, who = await self._db.write(work)
        self._notices.notify(who)
        return _to_wire(found)

    async def approve(self, tenant: str, user: str, *, actor: str) -> ApiMember:
        """Accept a person who asks. Raises `NotFound`; changes of the place in the meantime stay."""

        def work(tx: Tx) -> tuple[ApiMember, set[str]]:
            self._gone(tx, tenant, user, actor, "join.approve")
            text = msg("{who} accepted you: you are a member of {tenant} now.", who=actor, tenant=tenant)
            who = self._notices.asked(tx, [user], (NoticeKind.ANSWERED, AskedFor.PLACE), tenant, text)
            return self._tenants.put_member(tx, tenant, user, actor), who

        found, who = await self._tenants.in_transaction(work)
        self._notices.notify(who)
        return found

    async def forget(self, user: str) -> None:
        """Forget what somebody asked who is nobody any more."""
        await self._db.write(lambda tx: tx.asking.forget_person(user))

    def _gone(self, tx: Tx, tenant: str, user: str, actor: str, action: str) -> AskedPlace:
        found = tx.asking.place(tenant, user)
        if found is None:
            raise Refused(
                Reason.NOT_FOUND, msg("{user} does not ask to join {tenant}", user=user, tenant=tenant)
            )
        tx.asking.forget_place(tenant, user)
        tx.audit.add(self._clock(), actor, action, user, tenant=tenant)
        return found


def _may_be_asked(tenant: Tenant) -> bool:
    return tenant.joining == ASKED and tenant.name != DEFAULT_TENANT


def _to_wire(asked: AskedPlace) -> api.JoinRequest:
    return api.JoinRequest(
        tenant=asked.tenant, user=asked.user, asked_at=when(asked.asked_at), note=asked.note
    )
