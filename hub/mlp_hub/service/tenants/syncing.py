"""Memberships that follow a person's groups: the changes, and the tenants made for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import Member, Tenant
from mlp_hub.service.tenants import wire
from mlp_hub.service.tenants.groups import GrantedRole, GroupPolicy, GroupsGive, no_tenant
from mlp_hub.service.tenants.validation import check_sharing
from mlp_hub.store import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import Message

LOCAL, GROUP = "local", "group"
FEW = 8
"""Tuning: tenants up to which each is looked up by its name; above, one query reads all names."""
TOLD = 10_000
"""Safety: sentences on groups that were left out of which it is remembered that they were told; bounds memory."""


@dataclass(frozen=True, slots=True)
class Sync:
    """Changes by a person's groups: members to put, with the group that gives it, and those to remove."""

    put: tuple[tuple[Member, str], ...]
    gone: tuple[Member, ...]
    new: tuple[Tenant, ...]
    """Tenants that have to be made for it."""
    left_out: tuple[Message, ...]

    @property
    def changes(self) -> bool:
        """Whether anything has to be written of members."""
        return bool(self.put or self.gone or self.new)


def sync_of(tx: Tx, user: str, wanted: GroupsGive, policy: GroupPolicy) -> Sync:
    """Compare the groups' grants with the stored ones; places that were given by hand are left alone."""
    mine = {m.tenant: m for m in tx.members.of_user(user)}
    there = _there(tx, wanted.places)
    put: list[tuple[Member, str]] = []
    new: list[Tenant] = []
    left_out = list(wanted.left_out)
    for name, place in sorted(wanted.places.items()):
        known = mine.get(name)
        if known is not None and (known.source != GROUP or known.role is place.role):
            continue
        if known is None and name not in there:
            asked = policy.new_tenant(name)
            if asked is None:
                if policy.rules:  # else the group is about something else
                    left_out.append(no_tenant(place.group, name))
                continue
            try:
                tenant = wire.tenant_from(asked, name)
                check_sharing(tx, tenant)
            except Refused as refused:  # a login must not fail for it
                left_out.append(refused.message)
                continue
            new.append(tenant)
        put.append((Member(name, user, place.role, GROUP), place.group))
    gone = tuple(m for m in mine.values() if m.source == GROUP and m.tenant not in wanted.places)
    return Sync(tuple(put), gone, tuple(new), tuple(left_out))


def _there(tx: Tx, places: Mapping[str, GrantedRole]) -> set[str]:
    """Return those of the tenants that are there."""
    if len(places) > FEW:
        return tx.tenants.names()
    return {name for name in places if tx.tenants.get(name) is not None}


class LeftOut:
    """Writes down which groups of people give nothing although they should."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._reported: dict[tuple[str, str], None] = {}

    async def report(self, user: str, why: Iterable[Message]) -> None:
        """Write down these sentences on a user's groups, each once for as long as the service runs."""
        new = [one for one in why if (user, str(one)) not in self._reported]
        if not new:
            return

        def work(tx: Tx) -> None:
            for one in new:
                tx.audit.add(self._clock(), THE_HUB, "group.left_out", user, detail={"message": one})

        await self._db.write(work)
        if len(self._reported) + len(new) > TOLD:
            self._reported.clear()
        self._reported.update(dict.fromkeys((user, str(one)) for one in new))
