"""Tenants and their members: who owns how much, and who may use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenant import DEFAULT_TENANT, Member, Role, Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.words import count, listing
from mlp_hub.service import wire
from mlp_hub.service.board import Board, Changes
from mlp_hub.service.broker import Broker
from mlp_hub.service.kept_free import kept_free
from mlp_hub.service.leaving import suspend_all_left, suspend_waiting
from mlp_hub.service.quota import Quotas, tree_of
from mlp_hub.service.refusals import holder_of
from mlp_hub.service.sharing import LentOut, Share, kinds_in, lent_out, shares_in
from mlp_hub.service.sharing_rules import check_sharing
from mlp_hub.store import Database, Tx
from mlp_hub.store.records import UsageSample

T = TypeVar("T")
SYSTEM = "system"
LOCAL, GROUP = "local", "group"
HISTORY_S = 7 * 86_400.0


class Tenants:
    """The tenants of the hub. `actor` is who asks, for the audit log; whether they may is for the caller to say.

    `nodes` lists the nodes as they are now, on which capacity may be kept free; `changed` is called on the event loop
    after every change that may let waiting work start; `review` decides anew what of a changed tenant's guarantee holds;
    `windows` looks whether booked windows still fit, and returns sentences on those for which that has changed.
    `board` has the jobs that are put aside when their user leaves a tenant; `left` is called after that.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]] = tuple,
        *,
        changed: Callable[[], None] = lambda: None,
        review: Callable[[Tx], object] = lambda _: None,
        windows: Callable[[Tx], Sequence[str]] = lambda _: (),
        board: Board | None = None,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._board = board or Board(db, Broker())
        self._clock = clock
        self._nodes = nodes
        self._review = review
        self._windows = windows
        self._left = left
        self.changed = changed

    async def start(self) -> None:
        """See to it that the default tenant exists, and that nobody's job waits in a tenant that they have left."""
        await self._db.write(lambda tx: tx.tenants.insert(Tenant(DEFAULT_TENANT), self._clock()))
        if await self._db.read(lambda tx: tx.jobs.waiting_without_place()):
            await self._board.commit(lambda tx, changes: suspend_all_left(tx, changes, self._clock()))

    # ----------------------------------------------------------- tenants

    async def list(self) -> Sequence[api.Tenant]:
        """Return all tenants by name, with what is in use of them."""
        return await self._db.read(self._all)

    async def get(self, name: str) -> api.Tenant:
        """Return one tenant. Raises `NotFound`."""
        return await self._db.read(lambda tx: self._one(tx, _existing(tx, name)))

    async def lent_out(self, name: str) -> dict[str, LentOut]:
        """Return by dimension what of its cpu and ram the tenant may take back from those who borrowed it."""

        def work(tx: Tx) -> dict[str, LentOut]:
            tree = Quotas(tx, self._clock(), self._nodes()).tree(name)
            return {dimension: lent_out(tree, name, dimension) for dimension in ("cpu", "ram")}

        return await self._db.read(work)

    async def create(self, asked: api.TenantCreate, *, actor: str = SYSTEM) -> api.Tenant:
        """Make a tenant. Raises `Conflict` for a name that is taken, `Invalid` for values that do not fit together."""
        tenant = wire.tenant_from(asked, asked.name)

        def work(tx: Tx) -> api.Tenant:
            check_sharing(tx, tenant)
            if not tx.tenants.insert(tenant, self._clock()):
                raise Refused(Reason.CONFLICT, f"there is a tenant {tenant.name} already; use another name")
            self._note(tx, actor, "tenant.create", tenant.name, tenant=tenant.name, detail=_described(tenant))
            return self._one(tx, tenant, self._windows(tx))

        return await self._write(work)

    async def update(self, name: str, asked: api.TenantUpdate, *, actor: str = SYSTEM) -> api.Tenant:
        """Make the tenant what is described; what is left out takes its default.

        A quota below what is in use stops nothing that runs: new work waits until it fits. Raises `NotFound`,
        `Invalid`.
        """
        if asked.name is not None and asked.name != name:
            raise Refused(
                Reason.INVALID,
                f"the tenant is {name}, the body names {asked.name}: tenants are not renamed, leave the name out",
            )
        tenant = wire.tenant_from(asked, name)

        def work(tx: Tx) -> api.Tenant:
            before = _existing(tx, name)
            after = replace(tenant, idle_since=before.idle_since, lowered=before.lowered)
            check_sharing(tx, after)
            if after != before:
                tx.tenants.update(after)
                self._note(tx, actor, "tenant.update", name, tenant=name, detail=_difference(before, after))
                self._review(tx)
            return self._one(tx, _existing(tx, name), self._windows(tx))

        return await self._write(work)

    async def delete(self, name: str, *, actor: str = SYSTEM) -> api.Tenant:
        """Remove a tenant that nobody uses. Raises `NotFound`, and `WrongState` with what still uses it."""

        def work(tx: Tx) -> api.Tenant:
            tenant = _existing(tx, name)
            if name == DEFAULT_TENANT:
                raise Refused(
                    Reason.WRONG_STATE,
                    "the default tenant cannot be deleted: everybody without a tenant is in it",
                )
            last = self._one(tx, tenant)
            self._check_unused(tx, name)
            tx.tenants.remove(name)
            tx.usage.remove(name)
            last.notes.extend(self._windows(tx))
            self._note(tx, actor, "tenant.delete", name, tenant=name, detail=_described(tenant))
            return last

        return await self._write(work)

    async def usage(self, name: str) -> api.Usage:
        """Return who holds what of the tenant, now and over the last days. Raises `NotFound`."""
        now = self._clock()

        def work(tx: Tx) -> api.Usage:
            tenant = _existing(tx, name)
            return api.Usage(
                tenant=self._one(tx, tenant),
                holdings=[wire.holding_to(r) for r in tx.ledger.held(now, tenant=name)],
                history=[wire.sample_to(s) for s in tx.usage.history(name, now - HISTORY_S)],
            )

        return await self._db.read(work)

    async def sample(self) -> None:
        """Store what each tenant holds now, for its curve over time, and forget what is too old to show."""
        now = self._clock()

        def work(tx: Tx) -> None:
            in_use, counts = tx.ledger.in_use_by_tenant(now), tx.jobs.counts()
            tx.usage.sample(
                {
                    name: UsageSample(now, in_use.get(name, ZERO), *counts.get(name, (0, 0)))
                    for name in tx.tenants.names()
                }
            )
            tx.usage.sweep(now - HISTORY_S)

        await self._db.write(work)

    # ----------------------------------------------------------- members

    async def members(self, tenant: str) -> Sequence[api.Member]:
        """Return the members of a tenant by name; of `default` also everybody who is in no other. Raises `NotFound`."""

        def work(tx: Tx) -> list[api.Member]:
            _existing(tx, tenant)
            members = tx.members.of_tenant(tenant)
            if tenant == DEFAULT_TENANT:
                members = sorted([*members, *_homeless(tx)], key=lambda m: m.user)
            return [wire.member_to(m) for m in members]

        return await self._db.read(work)

    async def set_member(
        self, tenant: str, user: str, role: str = Role.MEMBER, *, actor: str = SYSTEM
    ) -> api.Member:
        """Put a user into a tenant, or give a member another role. Raises `NotFound`, `Invalid`.

        A member that a JupyterHub group brought becomes a local one, and stays when the group lets go of them.
        """
        if not user or len(user) > 255:
            raise Refused(Reason.INVALID, "a user's name has 1 to 255 characters")
        if role not in list(Role):
            raise Refused(Reason.INVALID, f"there is no role {role}; the roles are {listing(list(Role))}")
        member = Member(tenant, user, Role(role), LOCAL)

        def work(tx: Tx) -> api.Member:
            _existing(tx, tenant)
            before = tx.members.get(tenant, user)
            if before != member:
                tx.members.put(member)
                detail = {"role": member.role.value, "was": before.role.value if before else None}
                self._note(tx, actor, "member.set", user, tenant=tenant, detail=detail)
            return wire.member_to(member)

        return await self._write(work)

    async def remove_member(self, tenant: str, user: str, *, actor: str = SYSTEM) -> api.Member:
        """Take a user out of a tenant: jobs that run go on to their end, those that wait are suspended, servers end.

        Raises `NotFound`, `WrongState`.
        """

        def work(tx: Tx, changes: Changes) -> api.Member:
            _existing(tx, tenant)
            member = tx.members.get(tenant, user)
            if member is None:
                raise not_found("member", f"{user} of tenant {tenant}")
            if member.source == GROUP:
                raise Refused(
                    Reason.WRONG_STATE,
                    f"{user} is in {tenant} because of the JupyterHub group {tenant}; take them out of the group",
                )
            self._remove(tx, changes, member, actor, {"role": member.role.value})
            return wire.member_to(member)

        return await self._write_jobs(work)

    async def forget_user(self, user: str, *, actor: str = SYSTEM) -> None:
        """Take a user out of all tenants, because they are nobody (any more): a namesake must not get their place."""

        def work(tx: Tx, changes: Changes) -> None:
            for member in tx.members.of_user(user):
                detail = {"role": member.role.value, "source": member.source}
                self._remove(tx, changes, member, actor, detail)

        await self._write_jobs(work)

    async def of_user(self, user: str) -> Sequence[Member]:
        """Return the tenants of a user with their role in each; `default` when they are in none."""
        return await self._db.read(lambda tx: places(tx, user))

    async def sync_groups(self, user: str, groups: Iterable[str], *, actor: str = SYSTEM) -> Sequence[Member]:
        """Let memberships follow the user's JupyterHub groups, and return the user's tenants.

        A group named like a tenant makes a member of it, and its loss unmakes them, as when an admin does so; members that
        an admin put there are left alone. Most calls change nothing, and write nothing.
        """
        wanted = frozenset(groups)

        def work(tx: Tx, changes: Changes) -> list[Member]:
            for name in _group_changes(tx, user, wanted):
                member = Member(name, user, Role.MEMBER, GROUP)
                if name in wanted:
                    tx.members.put(member)
                    self._note(tx, actor, "member.set", user, tenant=name, detail={"source": GROUP})
                else:
                    self._remove(tx, changes, member, actor, {"source": GROUP})
            return places(tx, user)

        def look(tx: Tx) -> tuple[bool, list[Member]]:
            return bool(_group_changes(tx, user, wanted)), places(tx, user)

        changes, now = await self._db.read(look)
        return await self._write_jobs(work) if changes else now

    # ---------------------------------------------------------- internals

    def _all(self, tx: Tx) -> Sequence[api.Tenant]:
        stored = tx.tenants.all()
        now = self._clock()
        in_use = tx.ledger.in_use_by_tenant(now)
        kept = kept_free(tx, self._nodes(), now)
        kinds = kinds_in(stored, () if kept is None else kept.booked.values())
        shares = shares_in(tree_of(stored, in_use, kept), stored, kinds)
        return self._shown(tx, stored, in_use, shares)

    def _one(self, tx: Tx, tenant: Tenant, notes: Sequence[str] = ()) -> api.Tenant:
        quotas, name = Quotas(tx, self._clock(), self._nodes()), tenant.name
        used = tx.ledger.in_use(name, self._clock())
        shown = self._shown(tx, [tenant], {name: used}, {name: quotas.share(name)})[0]
        shown.notes.extend(notes)
        return shown

    def _shown(
        self,
        tx: Tx,
        tenants: Iterable[Tenant],
        in_use: Mapping[str, Resources],
        shares: Mapping[str, Share],
    ) -> Sequence[api.Tenant]:
        counts, members = tx.jobs.counts(), tx.members.counts()
        shown = []
        for tenant in tenants:
            running, waiting = counts.get(tenant.name, (0, 0))
            n = members.get(tenant.name, 0)
            if tenant.name == DEFAULT_TENANT:
                n += len(_homeless(tx))
            shown.append(
                wire.tenant_to(
                    tenant,
                    in_use.get(tenant.name, ZERO),
                    share=shares[tenant.name],
                    members=n,
                    running=running,
                    waiting=waiting,
                )
            )
        return shown

    def _check_unused(self, tx: Tx, name: str) -> None:
        now = self._clock()
        uses: list[str] = []
        if members := tx.members.counts().get(name, 0):
            uses.append(count(members, "member"))
        if jobs := tx.jobs.count_active(tenant=name):
            uses.append(count(jobs, "active job"))
        if held := tx.ledger.held(now, tenant=name):
            who = listing(holder_of(r) for r in held)
            uses.append(f"{count(len(held), 'held request')} ({who})")
        if booked := tx.bookings.of_tenant(name, now):
            uses.append(f"{count(len(booked), 'booked window')} ({listing(w.name for w in booked)})")
        if children := tx.tenants.children(name):
            uses.append(f"{count(len(children), 'tenant')} below it ({listing(children)})")
        if uses:
            raise Refused(
                Reason.WRONG_STATE,
                f"tenant {name} has {listing(uses)} and cannot be deleted; remove them, or let them end, first",
            )

    def _note(
        self, tx: Tx, actor: str, action: str, name: str, *, tenant: str, detail: Mapping[str, object]
    ) -> None:
        tx.audit.add(self._clock(), actor, action, name, tenant=tenant, detail=detail)

    def _remove(
        self, tx: Tx, changes: Changes, member: Member, actor: str, detail: Mapping[str, object]
    ) -> None:
        """Take a member out; their jobs that wait there are put aside in the same transaction."""
        tx.members.remove(member.tenant, member.user)
        if suspended := suspend_waiting(tx, changes, member.user, member.tenant, self._clock()):
            detail = {**detail, "suspended_jobs": suspended}
        self._note(tx, actor, "member.remove", member.user, tenant=member.tenant, detail=detail)

    async def _write_jobs(self, fn: Callable[[Tx, Changes], T]) -> T:
        result = await self._board.commit(fn)
        self.changed()
        self._left()
        return result

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        result = await self._db.write(fn)
        self.changed()
        return result


def places(tx: Tx, user: str) -> list[Member]:
    """Return the user's tenants; who is in none is in `default`."""
    return tx.members.of_user(user) or [Member(DEFAULT_TENANT, user, Role.MEMBER, "default")]


def default_tenant(tx: Tx, user: str) -> str:
    """Return the tenant that the user's work belongs to when none is named: their choice, else their first."""
    mine = [m.tenant for m in places(tx, user)]
    known = tx.users.get(user)
    return known.default_tenant if known is not None and known.default_tenant in mine else mine[0]


def _existing(tx: Tx, name: str) -> Tenant:
    tenant = tx.tenants.get(name)
    if tenant is None:
        raise not_found("tenant", name)
    return tenant


def _homeless(tx: Tx) -> list[Member]:
    """Return everybody who is in no tenant, as members of `default`."""
    placed = {m.user for m in tx.members.all()}
    return [Member(DEFAULT_TENANT, u, Role.MEMBER, "default") for u in sorted(tx.users.names() - placed)]


def _group_changes(tx: Tx, user: str, groups: frozenset[str]) -> list[str]:
    """Return the tenants that the user's groups give to, or take from, the user."""
    mine = tx.members.of_user(user)
    gained = (groups & tx.tenants.names()) - {m.tenant for m in mine}
    lost = {m.tenant for m in mine if m.source == GROUP} - groups
    return sorted(gained | lost)


def _difference(before: Tenant, after: Tenant) -> dict[str, object]:
    """Return for the audit log the fields of a tenant that changed, as they were and as they are; null where nothing is set."""
    was, now = _described(before), _described(after)
    changed = [f for f in {**was, **now} if was.get(f) != now.get(f)]
    return {"before": {f: was.get(f) for f in changed}, "after": {f: now.get(f) for f in changed}}


def _described(tenant: Tenant) -> dict[str, object]:
    """Return a tenant for the audit log."""
    shown = wire.tenant_to(tenant, ZERO)
    left_out = {
        "name",
        "lowered",
        "members",
        "running",
        "waiting",
        "borrowed",
        "lent",
        "lendable",
        "free",
        "notes",
    }
    return {
        f: getattr(shown, f)
        for f in shown.__struct_fields__
        if f not in left_out and not f.endswith("_inuse") and getattr(shown, f) not in (None, "", {})
    }
