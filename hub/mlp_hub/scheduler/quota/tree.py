"""Quotas of tenants in trees of parents and cohorts: remaining amounts, borrowers, and rights to reclaim.

The rules are Kueue's (`resource_node.go`, KEP-79 hierarchical cohorts). The amount that a tenant
does not lend, its guarantee, is invisible to the others. The amounts that it lends, or takes beyond
its guarantee, are accounted at the node above, and so on up to the root. A request fits when every
node on that way has room for the part that its child's guarantee does not cover.

Four rules are this hub's own:

- A parent tenant is an inner node whose total is its quota: its children's quotas are carved out of
  it, and it caps them when they add up to more (guarantees that add up to more shrink in
  proportion). Its own jobs are in a leaf beside its children, whose nominal is the rest of the
  quota after the children. A tenant with a parent shares with its siblings; a cohort that it also
  names is ignored.
- A parent without a limit in a dimension groups its children there as a cohort does: they lend to
  each other, and on upwards.
- The amount that tenants reserve is kept free for them on the machines; see `reserve`.
- A tenant without a limit in a dimension is not part of its cohort there: it lends nothing and
  takes nothing from the others. It does take from the nearest tenant above that has a limit.

Amounts are whole numbers in the units of `domain.resources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from mlp_hub.scheduler.model.resources import Vector, limits_of
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.layout import (
    NO_LIMIT_ABOVE,
    UNLIMITED,
    Path,
    has_room,
    layout_of,
    merged,
    room_on,
    shape,
    touched,
)
from mlp_hub.scheduler.quota.reserved import ReservedCapacity

_Over = tuple[str, int, int]

_STAMPS = count(1)


class QuotaTree:
    """Amounts that each tenant may take now; it starts with nothing used: charge all held amounts.

    `TenantQueue.used` must be charged too. Every method that takes a tenant raises KeyError for an
    unknown one.

    `stamp` changes after each change, and two trees that differ never have the same: an answer under a
    stamp holds for all trees with that stamp. `stamp_of` is the stamp of all that a question about one
    tenant depends on.
    """

    __slots__ = (
        "_base",
        "_booked",
        "_capacity",
        "_layout",
        "_loose",
        "_reserve",
        "_stamps",
        "_tenants",
        "_used",
        "stamp",
    )

    def __init__(self, tenants: Iterable[TenantQueue]) -> None:
        """Arrange the tenants; ValueError on an unknown parent or on a circle of parents, naming it."""
        self._tenants = {t.name: t for t in tenants}
        self._layout = layout_of(self._tenants)
        self._used = [0] * len(self._layout.nominal)
        # what is held in dimensions that no tenant limits: gpu kinds that no quota names
        self._loose: dict[str, dict[str, int]] = {}
        self._capacity: Vector | None = None
        self._booked: Mapping[str, Vector] = {}
        self._reserve: ReservedCapacity | None = None
        self._stamps: dict[str, int] = {}  # by root, of those that changed since all did
        self._new_stamp(None)

    def __contains__(self, tenant: str) -> bool:
        return tenant in self._tenants

    def __iter__(self) -> Iterator[str]:
        return iter(self._tenants)

    def stamp_of(self, tenant: str) -> int:
        """Return the stamp of a tenant's tree; that of all trees while capacity is kept free, which concerns everybody."""
        if self._reserve is not None:
            return self.stamp
        return self._stamps.get(self._layout.roots[tenant], self._base)

    def _new_stamp(self, tenant: str | None) -> None:
        """Note a change in the tree of a tenant, or of all trees."""
        self.stamp = stamp = next(_STAMPS)
        if tenant is None:
            self._base = stamp
            self._stamps.clear()
        else:
            self._stamps[self._layout.roots[tenant]] = stamp

    # --- what is held

    def charge(self, tenant: str, vector: Vector) -> None:
        """Count amounts that the tenant takes, without a check whether they fit: running work counts all the same.

        Raises ValueError for a negative amount; then nothing is counted.
        """
        paths, used = self._layout.paths[tenant], self._used
        if vector and min(vector.values()) < 0:
            raise ValueError(f"{tenant} cannot be charged less than nothing: {dict(vector)}")
        self._new_stamp(tenant)
        if self._reserve is not None:
            self._reserve.charge(tenant, vector)
        for dimension, asked in vector.items():
            path = paths.get(dimension)
            if path is None:
                if asked:
                    self._hold_loose(tenant, dimension, asked)
                continue
            amount = asked
            for at, kept, _ in path:
                before = used[at]
                after = used[at] = before + amount
                if after <= kept:
                    break  # inside the guarantee: nobody above sees it
                if before < kept:
                    amount = after - kept

    def release(self, tenant: str, vector: Vector) -> None:
        """Give back what was charged; ValueError for more than the tenant holds, then nothing is given back."""
        paths, used = self._layout.paths[tenant], self._used
        for dimension, amount in vector.items():
            path = paths.get(dimension)
            held = self._loose.get(tenant, {}).get(dimension, 0) if path is None else used[path[0][0]]
            if not 0 <= amount <= held:
                raise ValueError(f"{tenant} cannot give back {amount} of {dimension}: it holds {held}")
        self._new_stamp(tenant)
        if self._reserve is not None:
            self._reserve.charge(tenant, vector, -1)
        for dimension, given in vector.items():
            path = paths.get(dimension)
            if path is None:
                if given:
                    self._hold_loose(tenant, dimension, -given)
                continue
            amount = given
            for at, kept, _ in path:
                before = used[at]
                used[at] = before - amount
                beyond = before - kept
                if beyond <= 0:
                    break
                amount = min(amount, beyond)

    def _hold_loose(self, tenant: str, dimension: str, amount: int) -> None:
        held = dict(self._loose.get(tenant, ()))  # copied, since forks share it
        held[dimension] = held.get(dimension, 0) + amount
        if not held[dimension]:
            del held[dimension]
        self._loose[tenant] = held

    def used(self, tenant: str) -> dict[str, int]:
        """Return the amounts that the tenant itself holds; those of its children do not count."""
        used = self._used
        held = {d: used[path[0][0]] for d, path in self._layout.paths[tenant].items() if used[path[0][0]]}
        held.update(self._loose.get(tenant, {}))
        return held

    # --- what may be taken

    def excess(self, tenant: str, vector: Vector) -> list[_Over]:
        """List (dimension, asked, available) where the tenant may not take these amounts now; empty if they fit."""
        paths, used = self._layout.paths[tenant], self._used
        over: list[_Over] = []
        for dimension, asked in vector.items():
            path = paths.get(dimension)
            if path is not None and asked > 0 and not has_room(used, path, asked):
                over.append((dimension, asked, room_on(self._used, path)))
        if self._reserve is not None:
            self._beyond_reserve(self._reserve, tenant, vector, over)
        return over

    def fits(self, tenant: str, vector: Vector) -> bool:
        """Return whether the tenant may take these amounts now: a faster `excess` without the numbers."""
        paths, used = self._layout.paths[tenant], self._used
        for dimension, asked in vector.items():
            if asked <= 0:
                continue
            rest = asked
            for at, kept, most in paths.get(dimension, ()):  # as `has_room`; this is asked most of all
                held = used[at]
                if held < kept:
                    rest -= kept - held
                    held = kept
                if held + rest > most:
                    return False
        return self._reserve is None or not self.excess(tenant, vector)

    def _beyond_reserve(
        self, reserve: ReservedCapacity, tenant: str, vector: Vector, over: list[_Over]
    ) -> None:
        known = {d for d, _, _ in over}
        for dimension, asked in vector.items():
            room = reserve.room(tenant, dimension)
            if room is not None and asked > room and dimension not in known:
                over.append((dimension, asked, room))

    def available(self, tenant: str, dimension: str) -> int | None:
        """Return how much more the tenant may take now, None without a limit. It is the most `excess` lets pass."""
        path = self._layout.paths[tenant].get(dimension)
        room = UNLIMITED if path is None else room_on(self._used, path)
        return self._at_most(room, None if self._reserve is None else self._reserve.room(tenant, dimension))

    def limit(self, tenant: str, dimension: str) -> int | None:
        """Return the most the tenant could ever hold, with all others idle; None without a limit."""
        most = self._most(tenant, dimension)
        return self._at_most(most, None if self._reserve is None else self._reserve.most(tenant, dimension))

    def limit_of_quota(self, tenant: str, dimension: str) -> int | None:
        """Return the same, whatever is reserved or booked now."""
        return self._at_most(self._most(tenant, dimension), None)

    def _most(self, tenant: str, dimension: str) -> int:
        path = self._layout.paths[tenant].get(dimension)
        most = UNLIMITED
        for _, kept, cap in reversed(path or ()):
            most = min(cap, kept + most)
        return most

    @property
    def quotas(self) -> object:
        """Return what stands for the quotas as they are: another object once one of them has changed."""
        return self._layout

    @staticmethod
    def _at_most(amount: int, reserve: int | None) -> int | None:
        if reserve is not None:
            return min(amount, reserve)
        return None if amount > NO_LIMIT_ABOVE else amount

    def guaranteed(self, tenant: str, dimension: str) -> int:
        """Return the part of its nominal quota that the tenant never lends."""
        path = self._layout.paths[tenant].get(dimension)
        return path[0][1] if path else 0

    def nominal(self, tenant: str, dimension: str) -> int | None:
        """Return the tenant's nominal quota (of a parent: the rest after its children), None without a limit."""
        path = self._layout.paths[tenant].get(dimension)
        return self._layout.nominal[path[0][0]] if path else None

    def is_limited(self, tenant: str) -> bool:
        """Whether anything bounds what the tenant may take."""
        known = self._layout.limited.get(tenant)
        if known is None:
            caps = (cap for path in self._layout.paths[tenant].values() for _, _, cap in path)
            known = self._layout.limited[tenant] = min(caps, default=UNLIMITED) < NO_LIMIT_ABOVE
        return known or self._reserve is not None

    def promises(self, tenant: str, dimensions: Iterable[str]) -> bool:
        """Return whether the tenant has nominal quota, its own limit, in any of these dimensions."""
        paths, nominal = self._layout.paths[tenant], self._layout.nominal
        for dimension in dimensions:
            path = paths.get(dimension)
            if path and nominal[path[0][0]] is not None:
                return True
        return False

    def within_nominal(self, tenant: str, vector: Vector) -> bool:
        """Return whether the tenant would hold at most nominal with `vector` added, wherever it has a limit."""
        paths, used, nominal = self._layout.paths[tenant], self._used, self._layout.nominal
        for dimension, asked in vector.items():
            path = paths.get(dimension)
            if path is None or asked <= 0:
                continue
            at = path[0][0]
            own = nominal[at]
            if own is not None and used[at] + asked > own:
                return False
        return True

    # --- who took what from whom

    def borrows(self, tenant: str, dimensions: Iterable[str]) -> bool:
        """Whether the tenant holds more than nominal in one of these dimensions."""
        paths, used, nominal = self._layout.paths[tenant], self._used, self._layout.nominal
        for dimension in dimensions:
            path = paths.get(dimension)
            if path is not None:
                at = path[0][0]
                own = nominal[at]
                if own is not None and used[at] > own:
                    return True
        return False

    def may_reclaim(
        self, tenant: str, from_tenant: str, dimensions: Iterable[str], asked: Vector | None = None
    ) -> bool:
        """Return whether `tenant` may take back the amounts that `from_tenant` borrowed in `dimensions`.

        `dimensions` are those that the tenant is short of. The rule is Kueue's hierarchical advantage. It
        looks at the nodes below the nearest one that they share. Everything on the taker's way stays within
        nominal in each of the dimensions, including the amounts `asked` for. In one of the dimensions
        everything on the other's way is above nominal. A tenant without its own limit there counts as one
        with a nominal quota of nothing: a tenant without a promise may not take back, so that two of them
        never evict each other in turns.
        """
        if tenant == from_tenant:
            return False  # within one queue priority decides
        mine, theirs = self._layout.paths[tenant], self._layout.paths[from_tenant]
        lent = False
        for dimension in dimensions:
            way = mine.get(dimension)
            if way is None:
                continue
            other = theirs.get(dimension, ())
            above = {cell[0] for cell in other}
            shared = next((at for at, _, _ in way if at in above), None)
            if not self._stays_within(way, shared, asked.get(dimension, 0) if asked else 0):
                return False
            if shared is not None and not lent:
                lent = self._is_above(other, shared)
        return lent

    def _stays_within(self, way: Path, shared: int | None, asked: int) -> bool:
        used, nominal = self._used, self._layout.nominal
        rest = asked
        for at, kept, _ in way[:-1]:
            if at == shared:
                break
            held = used[at]
            if held + rest > (nominal[at] or 0):
                return False
            if held < kept:
                rest = max(0, rest - (kept - held))
        return True

    def _is_above(self, way: Path, shared: int) -> bool:
        used, nominal = self._used, self._layout.nominal
        for at, _, _ in way:
            if at == shared:
                break
            if used[at] <= (nominal[at] or 0):
                return False
        return True

    # --- the tree

    def root(self, tenant: str) -> str:
        """Name the root of the tenant's tree: a cohort, its topmost parent or itself."""
        return self._layout.roots[tenant]

    def tenants(self, root: str) -> tuple[str, ...]:
        """Return all tenants whose root has this name, in the order in which they were given."""
        return self._layout.members.get(root, ())

    # --- what is reserved

    @property
    def reserves(self) -> bool:
        """Whether capacity is kept free for somebody now, so that what one tenant gives back may serve any other."""
        return self._reserve is not None

    def set_capacity(self, capacity: Vector) -> None:
        """Tell what the nodes that are up have; without it nothing can be kept free."""
        self._capacity = capacity
        self._keep_free()

    def set_booked(self, booked: Mapping[str, Vector]) -> None:
        """Set the amounts that tenants booked for the present time, in addition to permanent reservations."""
        if booked != self._booked:
            self._booked = booked
            self._keep_free()

    def kept_free(self, dimension: str, but: str) -> Iterator[tuple[str, int]]:
        """Yield who else has something kept free and unused, and how much."""
        if self._reserve is not None:
            yield from self._reserve.unused(dimension, but)

    def _keep_free(self) -> None:
        self._new_stamp(None)
        kept: dict[str, dict[str, int]] = {}
        for name, tenant in self._tenants.items():
            if tenant.reserved is not None or name in self._booked:
                kept[name] = limits_of(tenant.reserved)
                for d, v in self._booked.get(name, {}).items():
                    kept[name][d] = kept[name].get(d, 0) + v
        if self._capacity is None or not any(any(v.values()) for v in kept.values()):
            self._reserve = None
            return
        self._reserve = ReservedCapacity(
            self._capacity, kept, {name: self.used(name) for name in self._tenants}
        )

    def fork(self) -> QuotaTree:
        """Return an independent copy; data that never changes is shared."""
        copy = QuotaTree.__new__(QuotaTree)
        copy._tenants = self._tenants  # noqa: SLF001 # replaced on a change, never written to
        copy._layout = self._layout  # noqa: SLF001
        copy._used = self._used.copy()  # noqa: SLF001
        copy._loose = self._loose.copy()  # noqa: SLF001
        copy._capacity, copy._booked = self._capacity, self._booked  # noqa: SLF001 # likewise
        copy._reserve = None if self._reserve is None else self._reserve.fork()  # noqa: SLF001
        copy.stamp, copy._base, copy._stamps = self.stamp, self._base, self._stamps.copy()  # noqa: SLF001
        return copy

    def set_tenants(self, tenants: Iterable[TenantQueue]) -> None:
        """Add tenants or change them; the amounts they hold stay held, even above a quota that is lower now.

        The trees they are in, and only those, are arranged once, whatever the number of tenants. Raises
        ValueError on an unknown parent or a circle of parents; then nothing is changed.
        """
        changed = dict(self._tenants)
        moved: list[str] = []
        kept = True
        for tenant in tenants:
            known = changed.get(tenant.name)
            if known is None or shape(known) != shape(tenant):
                moved.append(tenant.name)
            if known is None:
                kept = kept and tenant.reserved is None and tenant.name not in self._booked
            else:
                kept = kept and known.reserved == tenant.reserved
            changed[tenant.name] = tenant
        if moved:
            self._arrange(changed, moved)
        self._tenants = changed  # weights and decayed usage are no part of the tree
        if not kept:
            self._keep_free()

    def remove_tenant(self, name: str) -> None:
        """Forget a tenant; ValueError while it holds something or is a parent."""
        held = self.used(name)
        if held:
            raise ValueError(f"{name} cannot be removed: it holds {held}")
        # who names it as parent is told by the check of the tree
        self._arrange({n: t for n, t in self._tenants.items() if n != name}, (name,))

    def _arrange(self, tenants: dict[str, TenantQueue], changed: Iterable[str]) -> None:
        """Arrange the trees that the changed tenants are in, or were in; their tenants' use is counted again.

        The cells of the others stay. Cells without use are cleared once they are the majority.
        """
        old = self._layout
        there = touched(old, tenants, changed)
        part = layout_of({n: t for n, t in tenants.items() if n in there}, len(old.nominal))
        layout = merged(old, part, (*there, *changed))
        if 2 * layout.unused > len(layout.nominal):
            there, layout = set(tenants), layout_of(tenants)
            start = 0
        else:
            start = len(old.nominal)
        held = {name: self.used(name) for name in there if name in old.paths}
        self._tenants, self._layout = tenants, layout
        self._loose = {n: v for n, v in self._loose.items() if n in tenants and n not in there}
        self._used = self._used[:start] + [0] * (len(layout.nominal) - start)
        reserve, self._reserve = self._reserve, None
        self._new_stamp(None)
        for name, vector in held.items():
            self.charge(name, vector)
        if reserve is not None:
            self._keep_free()
