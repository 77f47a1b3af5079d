"""Checks of a tenant's place among others: each refusal with the value, the limit and the way out."""

from __future__ import annotations

from typing import NoReturn, Protocol

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.service.support.units import check_no_parts
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg


class Sharer(Protocol):
    """Place of a tenant among others, as there is one: in the store, and in the scheduling core."""

    @property
    def name(self) -> str: ...
    @property
    def quota(self) -> Quota: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def cohort(self) -> str | None: ...
    @property
    def borrowing_limit(self) -> Quota | None: ...
    @property
    def lending_limit(self) -> Quota | None: ...
    @property
    def reserved(self) -> Quota | None: ...


def check_sharing(tx: Tx, tenant: Tenant) -> None:
    """Raise `Invalid` unless parent, cohort and limits fit together and the way up from the tenant exists and ends.

    A quota above what its parent has is allowed: the parent's total caps its children together.
    """
    check_one_place(tenant)
    _check_names(tx, tenant)
    _check_parents(tx, tenant)
    check_limits(tenant)
    _check_reserved(tx, tenant)


def check_one_place(tenant: Sharer) -> None:
    """Raise `Invalid` for a tenant with both a parent and a cohort."""
    if tenant.parent is not None and tenant.cohort is not None:
        _refuse(
            msg(
                "{name} has the parent {parent} and the cohort {cohort}; a team with a parent shares with its "
                "siblings, so name one of the two (the cohort belongs to the topmost parent)",
                name=tenant.name,
                parent=tenant.parent,
                cohort=tenant.cohort,
            )
        )


def no_cohort_like_a_tenant(tenant: Sharer) -> NoReturn:
    """Refuse a cohort that is a tenant's name."""
    _refuse(
        msg(
            "cohort {cohort} is the name of a team; use another name for the cohort, or parent {cohort} to be "
            "below that team",
            cohort=tenant.cohort or "",
        )
    )


def _check_names(tx: Tx, tenant: Tenant) -> None:
    name = tenant.name
    # one name for a cohort and a tenant would mix up their trees
    if tenant.cohort is not None and (tenant.cohort == name or tx.tenants.get(tenant.cohort) is not None):
        no_cohort_like_a_tenant(tenant)
    if tx.tenants.get(name) is None and tx.tenants.is_cohort(name):
        _refuse(msg("team {name} cannot have the name of an existing cohort; use another name", name=name))


def _check_parents(tx: Tx, tenant: Tenant) -> None:
    way, above = [tenant.name], tenant.parent
    while above is not None:
        if above in way:
            _refuse(
                msg(
                    "{parent} cannot be the parent of {name}: that would be a cycle ({way}); choose another parent, or none",
                    parent=tenant.parent or "",
                    name=tenant.name,
                    way=" > ".join([*way, above]),
                )
            )
        parent = tx.tenants.get(above)
        if parent is None:
            _refuse(msg("the parent {above} does not exist; create it first, or use none", above=above))
        way.append(above)
        above = parent.parent


def check_limits(tenant: Sharer) -> None:
    """Raise `Invalid` for a limit that has no meaning, or is above the tenant's own quota."""
    name = tenant.name
    shares = tenant.parent is not None or tenant.cohort is not None
    for field, limits, does in (
        ("borrowing_limit", tenant.borrowing_limit, msg("borrow from")),
        ("lending_limit", tenant.lending_limit, msg("lend to")),
    ):
        if _named(limits) and not shares:
            _refuse(
                msg(
                    "{field} has no meaning without a cohort or a parent: {name} has nobody to {does}; name one, or "
                    "leave {field} out",
                    field=field,
                    name=name,
                    does=does,
                )
            )
        for dimension, _ in _named(limits):
            if tenant.quota.part(dimension) is None:
                _refuse(
                    msg(
                        "{field}.{dimension} has no meaning without a quota of {kind}: {name} neither lends nor borrows there; give it a quota (0 for none), or leave {field}.{dimension} out",
                        field=field,
                        dimension=dimension,
                        kind=quantity(dimension, 0).unit,
                        name=name,
                    )
                )
    if tenant.reserved is not None and tenant.reserved.rom is not None:
        _refuse(
            msg(
                "reserved.rom is {value} GiB: reserved amounts are kept free on nodes, and storage does not belong to nodes; leave it out",
                value=number("rom", tenant.reserved.rom),
            )
        )
    if tenant.reserved is not None:
        check_no_parts("reserved", tenant.reserved)
    for field, limits, does in (
        ("lending_limit", tenant.lending_limit, msg("lend")),
        ("reserved", tenant.reserved, msg("reserve")),
    ):
        for dimension, value in _named(limits):
            own = tenant.quota.part(dimension)
            if own is not None and value > own:
                _refuse(
                    msg(
                        "{field}.{dimension} is {value} and the quota is {own}: {name} cannot {does} more than it has; give at most {own}, or raise the quota",
                        field=field,
                        dimension=dimension,
                        value=number(dimension, value),
                        own=quantity(dimension, own),
                        name=name,
                        does=does,
                    )
                )


def _check_reserved(tx: Tx, tenant: Tenant) -> None:
    """Refuse to reserve what a parent has not got: nobody could use it, the tenant itself no more than the others."""
    above = tenant.parent
    while above is not None:
        parent = tx.tenants.get(above)
        assert parent is not None  # noqa: S101 - the way up was checked
        _check_within(tenant, parent)
        above = parent.parent
    below = tx.tenants.children(tenant.name)
    while below:
        child = tx.tenants.get(below.pop())
        if child is not None:
            _check_within(child, tenant)
            below += tx.tenants.children(child.name)


def _check_within(tenant: Tenant, parent: Tenant) -> None:
    for dimension, value in _named(tenant.reserved):
        most = parent.quota.part(dimension)
        if most is not None and value > most:
            _refuse(
                msg(
                    "{name} reserves {value}, but {above} above it has a quota of {most}, so nobody could use the rest; have {name} reserve at most {most}, or raise the quota of {above}",
                    name=tenant.name,
                    value=quantity(dimension, value),
                    above=parent.name,
                    most=number(dimension, most),
                )
            )


def _named(limits: Quota | None) -> list[tuple[str, int]]:
    """List the dimensions that are limited."""
    if limits is None:
        return []
    return [*limits.items(), *((f"gpu:{k}", v) for k, v in limits.kinds.items())]


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
