"""Amounts that tenants may still take, as of one transaction, and whether an amount fits a node.

The rule is the scheduling core's own (`scheduler.quota`), for the ledger and for admissions alike: here its tree is
made of the tenants and rows that the transaction sees. The sentences of a refusal are in `refusals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.dimensions import ON_NODES
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.quantities import quantities
from mlp_hub.domain.resources import ZERO, Quota, Resources, amount_of
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import vector_of
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.service.quota import refusals
from mlp_hub.service.quota.lending import Share, kinds_in, shares_in
from mlp_hub.service.quota.reserved import KeptFree, at_most, capacity_of, kept_free, total_of
from mlp_hub.store.tx import Tx
from mlp_language.message import msg


def owner_of(tenant: Tenant) -> TenantQueue:
    """Return a tenant as the rule of quotas knows it, with nothing in use.

    It is the only function that makes one, for the core, the ledger, admissions and all displays. A
    lowered guarantee counts as lowered. Storage, which is not on nodes, cannot be reserved on them.
    """
    held = tenant.in_force
    reserved = held.reserved
    return TenantQueue(
        tenant.name,
        tenant.quota,
        tenant.weight,
        parent=tenant.parent,
        cohort=tenant.cohort,
        borrowing_limit=tenant.borrowing_limit,
        lending_limit=held.lending_limit,
        reserved=None if reserved is None else reserved.on_nodes,
        queue_order=tenant.queue_order,
    )


def tree_of(
    tenants: Iterable[Tenant], used: Mapping[str, Resources], kept: KeptFree | None = None
) -> QuotaTree:
    """Return the tree of these tenants, charged with their use; `kept`: the amounts kept free, if any."""
    tree = QuotaTree(owner_of(t) for t in tenants)
    for name, amount in used.items():
        if name in tree:
            tree.charge(name, vector_of(amount))
    if kept is not None:
        kept.apply_to(tree)
    return tree


@dataclass(slots=True)
class _Families:
    """Tenants with their empty trees, as of one revision of the tenants; kept with a connection.

    The arrangement of a tree costs milliseconds, and tenants change seldom. Their use is read in each
    transaction.
    """

    revision: str | None
    of: dict[str, tuple[list[Tenant], QuotaTree]] = field(default_factory=dict)  # by tenant


_KEPT = "mlp-quota-families"


def _families(tx: Tx) -> _Families:
    """Return what was arranged before by transactions of this connection, if the tenants are still the same."""
    revision = tx.tenants.revision()
    kept = tx.connection.info.get(_KEPT)
    if not isinstance(kept, _Families) or kept.revision != revision:
        kept = tx.connection.info[_KEPT] = _Families(revision)
    return kept


class Quotas:
    """Amounts that tenants may still take, as the transaction sees it; they shrink with each taken amount.

    A tree holds the tenants that share with each other and no others. For a tenant without parent,
    children and cohort it is that tenant alone. Then the cost of a question does not depend on the
    number of tenants. While any tenant has a reservation, or a booked window open, one tree holds them
    all and keeps that free on `nodes`.
    """

    def __init__(self, tx: Tx, now: float, nodes: Sequence[NodeInfo]) -> None:
        self._tx = tx
        self._now = now
        self._nodes = nodes
        self._asked = False
        self._kept: KeptFree | None = None
        self._tenants: dict[str, Tenant] = {}
        self._trees: dict[str, QuotaTree] = {}
        self._families: _Families | None = None
        self._shared = 0  # trees of several tenants that were asked about
        self._used: dict[str, Resources] | None = None

    def knows(self, name: str) -> bool:
        """Whether there is such a tenant."""
        return name in self._trees or self._read(name)

    def tree(self, name: str) -> QuotaTree:
        """Return the tree that the tenant is in. Raises `NotFound`."""
        if not self.knows(name):
            raise not_found("tenant", name)
        return self._trees[name]

    def family(self, name: str) -> list[Tenant]:
        """Return the tenants that share with this one, itself among them. Raises `NotFound`."""
        tree = self.tree(name)
        return [self._tenants[each] for each in tree.tenants(tree.root(name))]

    def share(self, name: str) -> Share:
        """Return the tenant's standing to those that it shares with. Raises `NotFound`."""
        family = self.family(name)
        known = family if self._kept is None else self._tenants.values()
        kinds = kinds_in(known, () if self._kept is None else self._kept.booked.values())
        return shares_in(self.tree(name), family, kinds)[name]

    def fits(self, name: str, amount: Resources) -> bool:
        """Return whether the tenant may take `amount` now; False for an unknown tenant."""
        return self.knows(name) and not self._trees[name].excess(name, vector_of(amount))

    def charge_amount(self, name: str, amount: Resources) -> None:
        """Count what the tenant takes; whether it fits is not asked here."""
        self.tree(name).charge(name, vector_of(amount))

    def check(self, name: str, asked: Resources) -> None:
        """Raise `Refused` unless the tenant may take these amounts in addition to its use.

        Only requested dimensions count: a quota lowered below its use in one of them stops no work that
        needs none of it. If the tenant has no quota there, its limit is the capacity of the nodes.
        """
        tree, tenant = self.tree(name), self._tenants[name]
        vector = vector_of(asked)
        have = limits(tenant, self._nodes)
        missing = [k for k, v in asked.kinds if v and k not in have.kinds]
        if missing:
            raise refusals.no_such_kind(missing[0], have)
        if not tree.excess(name, vector) and not _exceeds(tree, tenant, vector, have):
            return
        # only a refusal needs the names of those who hold
        holders = self._tx.ledger.held(self._now, tenant=name)
        raise refusals.over_quota(tenant, tree, vector, have, holders, whole=at_most(tree, self._nodes))

    def _read(self, name: str) -> bool:
        if not self._asked:
            self._asked = True
            self._kept = kept_free(self._tx, self._nodes, self._now)
            if self._kept is not None:
                members, used = self._tx.tenants.all(), self._tx.ledger.in_use_by_tenant(self._now)
                self._put(members, tree_of(members, used, self._kept))
        if self._kept is not None:
            return name in self._trees
        family = self._family(name)
        if family is None:
            return False
        members, empty = family
        tree = empty.fork()
        used = self._held_by(members)
        for member in members:
            amount = used.get(member.name)
            if amount is not None:
                tree.charge(member.name, vector_of(amount))
        self._put(members, tree)
        return True

    def _family(self, name: str) -> tuple[list[Tenant], QuotaTree] | None:
        """Return the tenants that share with this one, itself among them, and their tree with nothing in use."""
        if self._families is None:
            self._families = _families(self._tx)
        known = self._families.of.get(name)
        if known is not None:
            return known
        found = self._tx.tenants.with_parenthood(name)
        if found is None:
            return None
        tenant, is_parent = found
        alone = not is_parent and tenant.parent is None and tenant.cohort is None
        members = [tenant] if alone else self._tx.tenants.tree(tenant)
        made = members, tree_of(members, {})
        self._families.of.update((each.name, made) for each in members)
        return made

    def _held_by(self, members: Sequence[Tenant]) -> dict[str, Resources]:
        if len(members) == 1:
            name = members[0].name
            return {name: self._tx.ledger.in_use(name, self._now)}
        self._shared += 1
        if self._shared == 1:
            return self._tx.ledger.in_use_by_tenant(self._now, [t.name for t in members])
        if self._used is None:  # who asks about several trees will ask about more
            self._used = self._tx.ledger.in_use_by_tenant(self._now)
        return self._used

    def _put(self, members: Sequence[Tenant], tree: QuotaTree) -> None:
        names = [member.name for member in members]
        self._tenants.update(zip(names, members, strict=True))
        self._trees.update(dict.fromkeys(names, tree))


def limits(tenant: Tenant, nodes: Sequence[NodeInfo]) -> Quota:
    """Return what the tenant may use at most: its quota, and what the nodes have where it has none.

    Nodes that are down count: they are expected back, and a limit must not flicker. Storage is not a
    matter of nodes: without a quota it has no limit.
    """
    have = total_of(nodes)
    q = tenant.quota
    return Quota(
        cpu=have.cpu if q.cpu is None else q.cpu,
        gpu=have.gpu if q.gpu is None else q.gpu,
        ram=have.ram if q.ram is None else q.ram,
        rom=q.rom,
        kinds={**dict(have.kinds), **q.kinds},
        amounts={**dict(have.amounts), **q.amounts},
    )


def choose_node(
    tenant: str,
    asked: Resources,
    nodes: Sequence[NodeInfo],
    used: Mapping[str, Resources],
    wanted: str | None = None,
) -> str:
    """Return the node that holds the amount for this tenant and is left with the least room, or the one that is wanted.

    Raises `Refused` when none has the room.
    """
    need = asked.on_nodes
    if wanted is not None:
        nodes = [n for n in nodes if n.name == wanted]
        if not nodes:
            raise Refused(Reason.NOT_FOUND, msg("node {wanted} does not exist", wanted=wanted))
    if not any(need.fits(n.at_most.of_kind(n.gpu_kind)) for n in nodes):
        biggest = tuple(
            msg("{node} has {amount}", node=n.name, amount=quantities(n.at_most.on_nodes)) for n in nodes
        ) or msg("the hub has no nodes")
        raise Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            msg(
                "no node can hold {need}, which can never start: {biggest}. Ask for less",
                need=quantities(need),
                biggest=biggest,
            ),
        )
    free = {n.name: capacity_of(n) - used.get(n.name, ZERO) for n in nodes if n.takes(tenant)}
    fitting = [name for name, room in free.items() if _fits(need, room)]
    if fitting:
        return min(fitting, key=lambda name: (free[name].gpu, free[name].ram, free[name].cpu, name))
    have = tuple(
        msg("{node} has {amount} free", node=name, amount=quantities(_positive(room)))
        for name, room in free.items()
    ) or msg("no node is up")
    raise Refused(
        Reason.WAITING_FOR_RESOURCES,
        msg(
            "no node has room for {need} now: {have}. Ask for less, or wait until something ends",
            need=quantities(need),
            have=have,
        ),
    )


def _exceeds(tree: QuotaTree, tenant: Tenant, vector: Mapping[str, int], have: Quota) -> bool:
    """Return whether this and the present use exceed the nodes, where the tenant has no quota there."""
    used = tree.used(tenant.name)
    for dimension, asked in vector.items():
        if tenant.quota.part(dimension) is None:
            most = have.part(dimension)
            if most is not None and used.get(dimension, 0) + asked > most:
                return True
    return False


def _fits(need: Resources, room: Resources) -> bool:
    """Whether the need fits where it needs anything: a node over its capacity in memory can still give a gpu."""
    if any(amount and amount > room.part(d) for d, amount in need.items()):
        return False
    have = dict(room.kinds)
    return all(v <= have.get(k, 0) for k, v in need.kinds)


def _positive(room: Resources) -> Resources:
    return amount_of({d: max(room.part(d), 0) for d in ON_NODES})
