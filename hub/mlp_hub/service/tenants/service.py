"""Tenants and their members: their quotas, and the users who may use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from msgspec import structs

from mlp_api import types as api
from mlp_api.localized import Text
from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import MILLI, ZERO, Quota
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Isolation, Member, Role, Tenant
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.tenant_files import TenantFiles
from mlp_hub.service.accounting.sums import jobs_held
from mlp_hub.service.quota.accounting import Quotas
from mlp_hub.service.quota.lending import LentOut, lent_out
from mlp_hub.service.quota.wire import holding_to
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.bus import Bus
from mlp_hub.service.support.told import notifying
from mlp_hub.service.tenants import isolation, wire
from mlp_hub.service.tenants.audited import described, difference
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_hub.service.tenants.in_use import check_unused
from mlp_hub.service.tenants.places import (
    check_member,
    default_tenant,
    existing_tenant,
    left_default,
    managed_elsewhere,
    memberships_of,
    stays_in_default,
    tenants_of,
    without_team,
)
from mlp_hub.service.tenants.removal import stop_running, suspend_all_left, suspend_of_nobody, suspend_waiting
from mlp_hub.service.tenants.syncing import GROUP, LOCAL, LeftOut, Sync, sync_of
from mlp_hub.service.tenants.validation import check_sharing
from mlp_hub.service.tenants.view import TenantView
from mlp_hub.store import Database, Tx
from mlp_hub.store.records import RunTotals, UsageSample
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_language.message import NOTHING, Message, msg

T = TypeVar("T")
HISTORY_S = 7 * 86_400.0
"""Tuning: seconds of a tenant's usage that are kept and shown: 7 days; memory, for how far back they are shown."""
TOTALS_S = 30.0
"""Tuning: seconds for which sums over a tenant's jobs are known: adding them up reads all jobs of a week."""
MOST_TOTALS = 1000
"""Safety: tenants of which such sums are known."""
SAMPLE_S = 300.0
"""Tuning: seconds of which one sample of that is kept: each costs a row a tenant, and each look reads them all."""


class TenantService:
    """Tenants of the hub; `actor` is the asker, for the audit log, and the caller checks their right.

    `nodes` lists the present nodes, on which capacity can be kept free. `changed` is called on the
    event loop after every change that can let waiting work start. `review` decides again which part of
    a changed tenant's guarantee holds. `windows` checks whether booked windows still fit, and returns
    sentences on those for which that has changed. `board` has the jobs that are put aside when their
    user leaves a tenant; `left` is called after that. `job_network` is the network of jobs of tenants
    without their own setting. `groups` has the meaning of people's groups. `files` are the trees of
    tenants' files, None if there is only the shared one. `relocate` gets the tenants whose files might
    have to move, and `moved` returns the number of bytes that are done.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]] = tuple,
        *,
        changed: Callable[[], None] = lambda: None,
        review: Callable[[Tx], object] = lambda _: None,
        windows: Callable[[Tx], Sequence[Message]] = lambda _: (),
        board: Board | None = None,
        left: Callable[[], None] = lambda: None,
        job_network: str = "none",
        groups: GroupPolicy | None = None,
        files: TenantFiles | None = None,
        relocate: Callable[[str], None] = lambda _: None,
        moved: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._db = db
        self._board = board or Board(db, Bus())
        self._clock = clock
        self._took: dict[str, tuple[float, RunTotals]] = {}  # by tenant: what its jobs took, and as of when
        self._nodes = nodes
        self._review = review
        self._windows = windows
        self._left = left
        self._groups = groups or GroupPolicy()
        self._files, self._relocate = files, relocate
        self._view = TenantView(clock, nodes, job_network, moved)
        self.left_out = LeftOut(db, clock)
        self.changed = changed

    async def start(self) -> None:
        """See to it that the default tenant exists, and that nobody's job waits in a tenant that they have left."""
        await self._db.write(lambda tx: tx.tenants.insert(Tenant(DEFAULT_TENANT), self._clock()))
        if await self._db.read(lambda tx: tx.jobs.waiting_without_place()):
            await self._board.commit(lambda tx, changes: suspend_all_left(tx, changes, self._clock()))

    # ----------------------------------------------------------- tenants

    async def list(self, of: str | None = None) -> Sequence[api.Tenant]:
        """Return tenants by name, with their use: those of the user `of`, or all."""

        def work(tx: Tx) -> Sequence[api.Tenant]:
            found = self._view.all(tx)
            if of is None:
                return found
            mine = tenants_of(tx, of)
            return [tenant for tenant in found if tenant.name in mine]

        return await self._db.read(work)

    async def get(self, name: str) -> api.Tenant:
        """Return one tenant. Raises `NotFound`."""
        return await self._db.read(lambda tx: self._view.one(tx, existing_tenant(tx, name)))

    async def lent_out(self, name: str) -> dict[str, LentOut]:
        """Return by dimension what of its cpu and ram the tenant may take back from those who borrowed it."""

        def work(tx: Tx) -> dict[str, LentOut]:
            tree = Quotas(tx, self._clock(), self._nodes()).tree(name)
            return {dimension: lent_out(tree, name, dimension) for dimension in ("cpu", "ram")}

        return await self._db.read(work)

    async def create(self, asked: api.TenantCreate, *, actor: str = THE_HUB) -> api.Tenant:
        """Make a tenant. Raises `Conflict` for a name that is taken, `Invalid` for values that do not fit together."""
        tenant = wire.tenant_from(asked, asked.name)
        await self.check_isolation(tenant)

        def work(tx: Tx) -> api.Tenant:
            check_sharing(tx, tenant)
            isolation.check_free(tx, tenant)
            if not self._insert(tx, tenant):
                raise Refused(
                    Reason.CONFLICT,
                    msg("team {name} already exists; use another name", name=tenant.name),
                )
            isolation.begin(tx, Isolation(), tenant, actor, self._clock())
            self._note(tx, actor, "tenant.create", tenant.name, tenant=tenant.name, detail=described(tenant))
            return self._view.one(tx, tenant, self._windows(tx))

        made = await self._write(work)
        self._relocate(made.name)
        return made

    async def check_isolation(self, tenant: Tenant) -> None:
        """Raise `Invalid` for a grade of isolation, or a root, that cannot be had here; for one that it has already nothing is looked at."""
        kept, others = await self._db.read(
            lambda tx: (tx.tenants.get(tenant.name), isolation.kept_by_others(tx, tenant.name))
        )
        if kept is None or kept.kept != tenant.kept:
            await isolation.check_place(self._files, tenant, others)

    async def update(self, name: str, asked: api.TenantUpdate, *, actor: str = THE_HUB) -> api.Tenant:
        """Set the tenant's description; fields that are left out take their defaults.

        A quota below the present use stops nothing that runs: new work waits until it fits. Raises
        `NotFound`, `Invalid`.
        """
        if asked.name is not None and asked.name != name:
            raise Refused(
                Reason.INVALID,
                msg(
                    "the team is {name}, the body names {other}: teams are not renamed, leave the name out",
                    name=name,
                    other=asked.name,
                ),
            )
        tenant = wire.tenant_from(asked, name)
        await self.check_isolation(tenant)

        def work(tx: Tx) -> api.Tenant:
            before = existing_tenant(tx, name)
            after = replace(tenant, idle_since=before.idle_since, lowered=before.lowered)
            check_sharing(tx, after)
            if after.kept != before.kept:
                isolation.check_free(tx, after)
                isolation.begin(tx, before.kept, after, actor, self._clock())
            if after != before:
                tx.tenants.update(after)
                self._note(tx, actor, "tenant.update", name, tenant=name, detail=difference(before, after))
                self._review(tx)
            return self._view.one(tx, existing_tenant(tx, name), self._windows(tx))

        changed = await self._write(work)
        self._relocate(name)
        return changed

    def set_quota(self, tx: Tx, name: str, quota: Quota, actor: str) -> None:
        """Give a tenant another quota, with all that a change of it brings; the caller's transaction is `in_transaction`."""
        before = existing_tenant(tx, name)
        after = replace(before, quota=quota)
        if after == before:
            return
        check_sharing(tx, after)
        tx.tenants.update(after)
        self._note(tx, actor, "tenant.update", name, tenant=name, detail=difference(before, after))
        self._review(tx)
        self._windows(tx)

    async def in_transaction(self, fn: Callable[[Tx], T]) -> T:
        """Run what changes tenants or their members together with something else; all hear of it."""
        return await self._write(fn)

    async def delete(self, name: str, *, actor: str = THE_HUB) -> api.Tenant:
        """Remove a tenant that is not in use. Raises `NotFound`, and `WrongState` with its users."""

        def work(tx: Tx) -> api.Tenant:
            tenant = existing_tenant(tx, name)
            if name == DEFAULT_TENANT:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg("the default team cannot be deleted: everybody without a team is in it"),
                )
            isolation.check_shared(tx, name)
            last = self._view.one(tx, tenant)
            # what lies there counts for whom its owner works from now on
            for kind, user in tx.stored.owners_in(name):
                tx.stored.hand_over(kind, user, name, default_tenant(tx, user))
            check_unused(tx, name, self._clock())
            tx.secrets.remove_all(name, "")
            tx.announcements.remove_all(name)
            tx.alerts.remove_all(name)
            for each in tx.environments.of_tenant(name):  # none of them has files, which would be held
                tx.environments.remove(each.uid)
            tx.tenants.remove(name)
            tx.usage.remove(name)
            tx.over_time.remove(name)
            tx.accounting.rename_tenant(name)
            for account in tx.service_accounts.leave_behind(name):
                self._note(tx, actor, "service_account.end", account.user, tenant=name, detail={})
            last.notes.extend(map(Text, self._windows(tx)))
            self._note(tx, actor, "tenant.delete", name, tenant=name, detail=described(tenant))
            return last

        return await self._write(work)

    async def usage(self, name: str) -> api.Usage:
        """Return who holds what of the tenant, now and over the last days. Raises `NotFound`."""
        now = self._clock()

        def work(tx: Tx) -> api.Usage:
            tenant = existing_tenant(tx, name)
            return api.Usage(
                tenant=self._view.one(tx, tenant),
                holdings=[holding_to(r) for r in tx.ledger.held(now, tenant=name)],
                history=wire.hours_of(tx.usage.history(name, now - HISTORY_S)),
                jobs=wire.total_to(self._totals(tx, name, now)),
            )

        return await self._db.read(work)

    def _totals(self, tx: Tx, tenant: str, now: float) -> RunTotals:
        """Return what the tenant's jobs took; added up now and then, for pages ask all the time."""
        known = self._took.get(tenant)
        if known is not None and 0 <= now - known[0] < TOTALS_S:
            return known[1]
        held = jobs_held(tx, tenant, day_at(now) - int(HISTORY_S / DAY_S) + 1, now)
        most = tx.runs.totals(tenant, now - HISTORY_S, now)
        found = replace(most, cpu_s=held.cpu / MILLI**2, gpu_s=held.gpu / MILLI**2)
        if len(self._took) >= MOST_TOTALS:
            self._took.clear()
        self._took[tenant] = (now, found)
        return found

    async def sample(self) -> None:
        """Store what each tenant holds now, for its curve over time, and forget what is too old to show.

        Of the samples of one span of `SAMPLE_S` the last one stays: a curve over days needs no more.
        """
        now = self._clock()
        at = now - now % SAMPLE_S

        def work(tx: Tx) -> None:
            in_use, counts = tx.ledger.in_use_by_tenant(now), tx.jobs.counts(replicas=False)
            tx.usage.sample(
                {
                    name: UsageSample(at, in_use.get(name, ZERO), *counts.get(name, (0, 0)))
                    for name in tx.tenants.names()
                }
            )
            tx.usage.delete_before(now - HISTORY_S)

        await self._db.write(work)

    # ----------------------------------------------------------- members

    async def members(self, tenant: str) -> Sequence[api.Member]:
        """Return the members of a tenant by name; of `default` also everybody who is in no other. Raises `NotFound`."""

        def work(tx: Tx) -> list[api.Member]:
            existing_tenant(tx, tenant)
            members = tx.members.of_tenant(tenant)
            if tenant == DEFAULT_TENANT:
                members = sorted([*members, *without_team(tx)], key=lambda m: m.user)
            return [wire.member_to(m, self._groups.title) for m in members]

        return await self._db.read(work)

    async def set_member(
        self, tenant: str, user: str, role: str = Role.MEMBER, *, actor: str = THE_HUB
    ) -> api.Member:
        """Put a user into a tenant, or give a member another role. Raises `NotFound`, `Invalid`.

        A member that a JupyterHub group brought becomes a local one, and stays when the group lets go of them; one that a
        login's provider keeps is changed there: raises `WrongState`.
        """
        check_member(user, role)
        return await self._write(lambda tx: self.put_member(tx, tenant, user, actor, Role(role)))

    async def take_in(self, tenant: str, user: str, role: Role | str, *, actor: str) -> api.Member:
        """Do what `set_member` does for a tenant's own admin, who takes nobody out of another tenant: `default` is kept too."""
        check_member(user, role)

        def work(tx: Tx) -> api.Member:
            if not tx.members.of_user(user):  # a place that they were given stays as it is, an admin's too
                self.put_member(tx, DEFAULT_TENANT, user, actor)
            made = self.put_member(tx, tenant, user, actor, Role(role))
            return structs.replace(made, note=Text(stays_in_default(user, tenant)))

        return await self._write(work)

    def put_member(self, tx: Tx, tenant: str, user: str, actor: str, role: Role = Role.MEMBER) -> api.Member:
        """Do what `set_member` does in the caller's transaction, which is `in_transaction`."""
        member = Member(tenant, user, role, LOCAL)
        existing_tenant(tx, tenant)
        before = tx.members.get(tenant, user)
        if before is not None and before.source == GROUP and self._groups.title:
            raise managed_elsewhere(before, self._groups.title)
        first = tenant != DEFAULT_TENANT and not tx.members.of_user(user)
        if before != member:
            tx.members.put(member)
            detail = {"role": member.role.value, "was": before.role.value if before else None}
            self._note(tx, actor, "member.set", user, tenant=tenant, detail=detail)
        tx.asking.forget_place(tenant, user)
        return structs.replace(
            wire.member_to(member), note=Text(left_default(user, tenant) if first else NOTHING)
        )

    async def remove_member(self, tenant: str, user: str, *, actor: str = THE_HUB) -> api.Member:
        """Remove a user from a tenant: waiting jobs are suspended, servers end.

        Running jobs continue or end, by the tenant's setting. Raises `NotFound`, `WrongState`.
        """

        def work(tx: Tx, changes: Changes) -> api.Member:
            existing_tenant(tx, tenant)
            member = tx.members.get(tenant, user)
            if member is None:
                text = msg("team {tenant} has no member {user}", user=user, tenant=tenant)
                raise Refused(Reason.NOT_FOUND, text)
            if member.source == GROUP:
                raise managed_elsewhere(member, self._groups.title)
            self._remove(tx, changes, member, actor, {"role": member.role.value})
            return wire.member_to(member)

        return await self._write_jobs(work)

    async def forget_user(self, user: str, *, actor: str = THE_HUB) -> None:
        """Take a user out of all tenants, because they are nobody (any more): a namesake must not get their place."""

        def work(tx: Tx, changes: Changes) -> None:
            for member in tx.members.of_user(user):
                detail = {"role": member.role.value, "source": member.source}
                self._remove(tx, changes, member, actor, detail)
            tx.asking.forget_person(user)

        await self._write_jobs(work)

    async def of_user(self, user: str) -> Sequence[Member]:
        """Return the tenants of a user with their role in each; `default` when they are in none."""
        return await self._db.read(lambda tx: memberships_of(tx, user))

    async def sync_groups(
        self, user: str, groups: Iterable[str], *, actor: str = THE_HUB
    ) -> Sequence[Member]:
        """Let memberships follow the user's groups, and return the user's tenants.

        What a group gives is for the policy to say; its loss unmakes it, as when an admin does so. Members that an admin put
        there are left alone. Most calls change nothing, and write nothing.
        """
        wanted = self._groups.wanted(groups)

        def work(tx: Tx, changes: Changes) -> list[Member]:
            sync = sync_of(tx, user, wanted, self._groups)
            for tenant in sync.new:
                self._insert(tx, tenant)
                detail = {**described(tenant), "source": GROUP}
                self._note(tx, actor, "tenant.create", tenant.name, tenant=tenant.name, detail=detail)
            for member, group in sync.put:
                tx.members.put(member)
                detail = {"source": GROUP, "group": group, "role": member.role.value}
                self._note(tx, actor, "member.set", user, tenant=member.tenant, detail=detail)
            for member in sync.gone:
                self._remove(tx, changes, member, actor, {"source": GROUP})
            return memberships_of(tx, user)

        def look(tx: Tx) -> tuple[Sync, list[Member]]:
            return sync_of(tx, user, wanted, self._groups), memberships_of(tx, user)

        sync, now = await self._db.read(look)
        await self.left_out.report(user, sync.left_out)
        return await self._write_jobs(work) if sync.changes else now

    async def account_ended(self, user: str, *, actor: str = THE_HUB) -> None:
        """Apply the removal of an account at the login's provider; can be repeated.

        Places from groups go. Places that were given by hand stay for the user's return. Waiting jobs are
        put aside everywhere, running ones end if the tenant is set to that.
        """

        def work(tx: Tx, changes: Changes) -> None:
            now, mine = self._clock(), tx.members.of_user(user)
            for member in mine:
                if member.source == GROUP:
                    self._remove(tx, changes, member, actor, {"source": GROUP, "why": "disabled"})
            stopped = stop_running(
                tx, changes, user, sorted({m.tenant for m in mine} | {DEFAULT_TENANT}), now
            )
            suspended = suspend_of_nobody(tx, changes, user, now)
            tx.asking.forget_person(user)
            if stopped or suspended:
                detail = {"stopped_jobs": stopped, "suspended_jobs": suspended}
                tx.audit.add(now, actor, "user.ended", user, detail=detail)

        await self._write_jobs(work)

    # ---------------------------------------------------------- internals

    def _insert(self, tx: Tx, tenant: Tenant) -> bool:
        """Store a new tenant; return whether there was none of its name."""
        made = tx.tenants.insert(tenant, self._clock())
        if made:  # of one before it, which a hub deleted that left them as they were
            tx.service_accounts.leave_behind(tenant.name)
        return made

    def _note(
        self, tx: Tx, actor: str, action: str, name: str, *, tenant: str, detail: Mapping[str, object]
    ) -> None:
        tx.audit.add(self._clock(), actor, action, name, tenant=tenant, detail=detail)

    def _remove(
        self, tx: Tx, changes: Changes, member: Member, actor: str, detail: Mapping[str, object]
    ) -> None:
        """Take a member out; their jobs that wait there are put aside in the same transaction."""
        tx.members.remove(member.tenant, member.user)
        tx.caps.remove(member.tenant, member.user)
        now = self._clock()
        if suspended := suspend_waiting(tx, changes, member.user, member.tenant, now):
            detail = {**detail, "suspended_jobs": suspended}
        if stopped := stop_running(tx, changes, member.user, [member.tenant], now):
            detail = {**detail, "stopped_jobs": stopped}
        self._note(tx, actor, "member.remove", member.user, tenant=member.tenant, detail=detail)

    async def _write_jobs(self, fn: Callable[[Tx, Changes], T]) -> T:
        def tell() -> None:
            self.changed()
            self._left()

        return await notifying(self._board.commit(fn), tell)

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        return await notifying(self._db.write(fn), self.changed)
