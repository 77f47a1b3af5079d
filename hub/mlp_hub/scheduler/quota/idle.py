"""Guarantees of tenants that are idle for long: lowered by policy, restored as soon as they are wanted.

An idle tenant keeps its nominal quota and may take it back from its borrowers. Only the part
shrinks that others may not touch in the meantime: the amount kept back by its lending limit, and
its reserved capacity. Decisions are computed from the configured values, never from those in force,
so that lowering twice lowers once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.resources import Quota, quota_of
from mlp_hub.scheduler.model.resources import limits_of
from mlp_language.message import Message, Quantity, Span, TenantRef, msg

KEEPS, RESERVES = "keeps back", "reserves"
"""Kinds of guarantees: the amount kept back by a lending limit, and the reserved amount."""


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """After how many seconds of idleness (None: never) guarantees shrink, and to which share of themselves.

    ValueError for a time below zero and for a share outside of 0 to 1.
    """

    after_s: float | None = None
    floor: float = 0.5

    def __post_init__(self) -> None:
        if self.after_s is not None and not self.after_s >= 0:
            raise ValueError(f"after_s is {self.after_s:g} seconds; use 0 or more, or None for never")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor:g}; use a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class Lowered:
    """This tenant's guarantee shrinks: the lending limit and the reserved capacity that hold from now on."""

    tenant: str
    share: float
    lending_limit: Quota | None
    reserved: Quota | None
    message: Message


@dataclass(frozen=True, slots=True)
class Restored:
    """Restored guarantee of a tenant: the configured values hold again."""

    tenant: str
    lending_limit: Quota | None
    reserved: Quota | None
    message: Message


@dataclass(frozen=True, slots=True)
class IdleTenant:
    """A tenant as it is configured, since when it is idle, and what was decided about it before.

    `idle_since` is None while it, or a tenant below it, holds something or has something waiting. `lowered` is
    the last decision when that lowered it, and is still in force.
    """

    name: str
    quota: Quota
    lending_limit: Quota | None = None
    reserved: Quota | None = None
    idle_since: float | None = None
    lowered: Lowered | None = None


def idle_quota(tenants: Sequence[IdleTenant], now: float, policy: IdlePolicy) -> list[Lowered | Restored]:
    """Return the guarantees that shrink now and those that are restored, in the order of `tenants`.

    Unchanged ones are left out. A decision in force is made again, with other numbers, when the policy
    or the configuration has changed.
    """
    decisions: list[Lowered | Restored] = []
    for tenant in tenants:
        due = _due(tenant, now, policy)
        if due is None:
            if tenant.lowered is not None:
                decisions.append(_restored(tenant, policy))
        elif tenant.lowered is None or _in_force(tenant.lowered) != _in_force(due):
            decisions.append(due)
    return decisions


def next_idle(tenants: Sequence[IdleTenant], policy: IdlePolicy) -> float | None:
    """Return when the next guarantee will shrink if nothing happens before, None when none will.

    A time that has passed tells that one is due: call `idle_quota`.
    """
    if policy.after_s is None:
        return None
    times = [
        t.idle_since + policy.after_s
        for t in tenants
        if t.idle_since is not None and t.lowered is None and any(_shrinking(t, policy.floor))
    ]
    return min(times, default=None)


def _due(tenant: IdleTenant, now: float, policy: IdlePolicy) -> Lowered | None:
    """Return the tenant's present guarantee if it is less than the configured one."""
    if policy.after_s is None or tenant.idle_since is None or now < tenant.idle_since + policy.after_s:
        return None
    changes = list(_shrinking(tenant, policy.floor))
    if not changes:
        return None
    kept = {d: after for what, d, _, after in changes if what == KEEPS}
    reserved = {d: after for what, d, _, after in changes if what == RESERVES}
    quota = limits_of(tenant.quota)
    notes = tuple(
        [_instead(what, number(d, after), quantity(d, before)) for what, d, before, after in changes]
    )
    return Lowered(
        tenant.name,
        policy.floor,
        _but(tenant.lending_limit, {d: quota[d] - after for d, after in kept.items()}),
        _but(tenant.reserved, reserved),
        msg(
            "{tenant} has been idle for {span}, the limit is {limit}: its guarantee is lowered to {percent} %, {told}; it is restored as soon as one of its jobs waits",
            tenant=TenantRef(tenant.name),
            span=Span(now - tenant.idle_since),
            limit=Span(policy.after_s),
            percent=round(policy.floor * 100),
            told=notes,
        ),
    )


def _instead(what: str, after: float, before: Quantity) -> Message:
    if what == KEEPS:
        return msg("it keeps back {after} instead of {before}", after=after, before=before)
    return msg("it reserves {after} instead of {before}", after=after, before=before)


def _restored(tenant: IdleTenant, policy: IdlePolicy) -> Restored:
    if tenant.idle_since is None:
        why = msg("is no longer idle")
    elif policy.after_s is None:
        why = msg("is idle, but guarantees of idle teams are not lowered any more")
    elif any(_shrinking(tenant, policy.floor)):
        why = msg("has not been idle for {limit} yet", limit=Span(policy.after_s))
    else:
        why = msg("has no guarantee left that could be lowered")
    held = [
        msg("it keeps back {amount}", amount=quantity(d, kept)) for d, kept in _kept(tenant).items() if kept
    ]
    held += [
        msg("it reserves {amount}", amount=quantity(d, v)) for d, v in limits_of(tenant.reserved).items() if v
    ]
    return Restored(
        tenant.name,
        tenant.lending_limit,
        tenant.reserved,
        msg(
            "{tenant} {why}: its guarantee is restored to 100 %, {held}",
            tenant=TenantRef(tenant.name),
            why=why,
            held=tuple(held) or msg("it keeps back and reserves nothing"),
        ),
    )


def _shrinking(tenant: IdleTenant, floor: float) -> Iterator[tuple[str, str, int, int]]:
    """Yield what shrinks: which guarantee, dimension, before and after."""
    for what, amounts in ((KEEPS, _kept(tenant)), (RESERVES, limits_of(tenant.reserved))):
        for dimension, before in amounts.items():
            # rounded up, for the floor is a promise; the little less is for shares like 0.7 that are not exact
            after = math.ceil(before * floor - 1e-6)
            if after < before:
                yield what, dimension, before, after


def _kept(tenant: IdleTenant) -> dict[str, int]:
    """Return what the lending limit keeps back, by dimension."""
    lent, quota = limits_of(tenant.lending_limit), limits_of(tenant.quota)
    return {d: max(0, quota[d] - lent[d]) for d in quota if d in lent}


def _in_force(decision: Lowered) -> tuple[object, ...]:
    return decision.share, decision.lending_limit, decision.reserved


def _but(quota: Quota | None, changes: Mapping[str, int]) -> Quota | None:
    """Return the quota with some dimensions changed."""
    if quota is None:
        return None
    limits = {**limits_of(quota), **changes}
    return quota_of(limits)
