"""Caps of members: an admin of the tenant limits the holdings of one member. Running work continues."""

from __future__ import annotations

from collections.abc import Callable

from mlp_api.teams import teams as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import units
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.workload.caps import EVERYBODY, Cap, CapOfMember
from mlp_hub.service.support.units import maybe_thousandths
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.store import Database, Tx
from mlp_language.message import msg


class MemberCaps:
    """The caps. `actor` is who sets one; whether they may is for the caller to say."""

    def __init__(self, db: Database, tenants: TenantService, clock: Callable[[], float]) -> None:
        self._db = db
        self._tenants = tenants
        self._clock = clock

    async def of_tenant(self, tenant: str) -> list[api.MemberCap]:
        """Return those of a tenant, that of everybody first. Raises `NotFound`."""
        await self._tenants.get(tenant)
        return [_to_wire(one) for one in await self._db.read(lambda tx: tx.caps.of_tenant(tenant))]

    async def set_cap(self, tenant: str, asked: api.MemberCapSet, *, actor: str) -> list[api.MemberCap]:
        """Set the cap of a member, or of everybody; one that names nothing is taken away. Raises `NotFound`."""
        user = asked.user or EVERYBODY
        cap = Cap(
            maybe_thousandths("cpu", asked.cpu),
            maybe_thousandths("gpu", asked.gpu),
            asked.jobs,
        )

        def work(tx: Tx) -> list[CapOfMember]:
            if tx.tenants.get(tenant) is None:
                raise not_found("tenant", tenant)
            known = tenant == DEFAULT_TENANT or tx.members.get(tenant, user) is not None
            if user != EVERYBODY and not known and cap != Cap():
                raise Refused(
                    Reason.NOT_FOUND,
                    msg("team {tenant} has no member {user}", user=user, tenant=tenant),
                )
            before = next((one.cap for one in tx.caps.of_tenant(tenant) if one.user == user), Cap())
            if cap != before:
                tx.caps.put(CapOfMember(tenant, user, cap))
                detail = {"before": _amounts(before), "after": _amounts(cap)}
                tx.audit.add(self._clock(), actor, "member.cap", user or tenant, tenant=tenant, detail=detail)
            return tx.caps.of_tenant(tenant)

        return [_to_wire(one) for one in await self._tenants.in_transaction(work)]


def _amounts(cap: Cap) -> dict[str, float | None]:
    return {
        "cpu": None if cap.cpu is None else units(cap.cpu),
        "gpu": None if cap.gpu is None else units(cap.gpu),
        "jobs_at_once": cap.jobs,
    }


def _to_wire(one: CapOfMember) -> api.MemberCap:
    cap = one.cap
    return api.MemberCap(
        user=one.user or None,
        cpu=None if cap.cpu is None else units(cap.cpu),
        gpu=None if cap.gpu is None else units(cap.gpu),
        jobs=cap.jobs,
    )
