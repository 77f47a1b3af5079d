"""Uses that keep a tenant from being deleted."""

from __future__ import annotations

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime.environment import EnvironmentPhase
from mlp_hub.service.quota.refusals import holder_of
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg, msgs


def check_unused(tx: Tx, name: str, now: float) -> None:
    """Raise `WrongState` with the uses of a tenant that is in use."""
    uses: list[Message] = []
    if members := tx.members.counts(name).get(name, 0):
        uses.append(msgs("1 member", "{n} members", n=members))
    if jobs := tx.jobs.count_active(tenant=name):
        uses.append(msgs("1 active job", "{n} active jobs", n=jobs))
    if held := tx.ledger.held(now, tenant=name):
        who = tuple(holder_of(r) for r in held)
        uses.append(msgs("1 held request ({who})", "{n} held requests ({who})", n=len(held), who=who))
    moving = (EnvironmentPhase.CREATING, EnvironmentPhase.DELETING)
    if made := tuple(each.name for each in tx.environments.of_tenant(name) if each.phase in moving):
        uses.append(
            msgs(
                "1 environment that is being made or deleted ({names})",
                "{n} environments that are being made or deleted ({names})",
                n=len(made),
                names=made,
            )
        )
    if booked := tx.bookings.of_tenant(name, now):
        names = tuple(w.name for w in booked)
        uses.append(
            msgs("1 booked window ({names})", "{n} booked windows ({names})", n=len(booked), names=names)
        )
    if children := tx.tenants.children(name):
        below = tuple(children)
        uses.append(
            msgs("1 team below it ({below})", "{n} teams below it ({below})", n=len(below), below=below)
        )
    if uses:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "team {name} has {uses} and cannot be deleted; remove them first, or let them end",
                name=name,
                uses=tuple(uses),
            ),
        )
