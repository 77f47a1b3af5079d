"""Runtimes of tenants: registered by their admins, reviewed by the platform's where the policy says so, listed and removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mlp_api.jobs import runtimes as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs.job import WAITING, Job
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime, RuntimeState
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.service.support.limits import DEFAULTS
from mlp_hub.service.tenants.runtime_rules import runtime_from, runtime_to
from mlp_hub.store.records import StoredRuntime
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg


class RuntimeService:
    """The runtimes. `actor` is who asks, for the audit log; `reviewer` is one whose word needs no review.

    `review`: a runtime that is new or changed waits for a platform admin before jobs may use it. `images`: it may name an image.
    """

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float],
        *,
        review: bool = True,
        images: bool = False,
        most: int = DEFAULTS.runtimes_per_tenant,
    ) -> None:
        self._most = most
        self._board = board
        self._clock = clock
        self._review = review
        self._images = images

    async def offered(self, user: str | None, *, everything: bool = False) -> list[api.RuntimeInfo]:
        """Return the platform's own and those that jobs of the user may use; `everything`: all of all tenants."""

        def work(tx: Tx) -> Sequence[StoredRuntime]:
            if everything:
                return tx.runtimes.all()
            tenants = [] if user is None else [place.tenant for place in tx.members.of_user(user)]
            return [one for tenant in tenants for one in tx.runtimes.of_tenant(tenant) if _usable(one)]

        stored = await self._board.db.read(work)
        return [*map(runtime_to, BUILT_IN.values()), *(runtime_to(one.runtime, one) for one in stored)]

    async def list(self, tenant: str) -> Sequence[api.RuntimeInfo]:
        """Return all of a tenant's own. Raises `NotFound`."""

        def work(tx: Tx) -> Sequence[StoredRuntime]:
            _tenant_exists(tx, tenant)
            return tx.runtimes.of_tenant(tenant)

        return [runtime_to(one.runtime, one) for one in await self._board.db.read(work)]

    async def of_tenant(self, tenant: str) -> Mapping[str, Runtime]:
        """Return all of a tenant's own by name, in whatever state."""
        stored = await self._board.db.read(lambda tx: tx.runtimes.of_tenant(tenant))
        return {one.runtime.name: one.runtime for one in stored}

    async def store_runtime(
        self, tenant: str, name: str, asked: api.RuntimeUpdate, *, actor: str, reviewer: bool = False
    ) -> api.RuntimeInfo:
        """Register a runtime or change one. Raises `NotFound` (tenant), `Invalid`, `Forbidden` for one that was disabled."""
        made = runtime_from(tenant, name, asked, images=self._images)
        now = self._clock()

        def work(tx: Tx, _: Changes) -> api.RuntimeInfo:
            _tenant_exists(tx, tenant)
            before = tx.runtimes.get(tenant, name)
            if before is None and tx.runtimes.count(tenant) >= self._most:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "{tenant} has {most} runtimes, which is the limit; remove one first",
                        tenant=tenant,
                        most=self._most,
                    ),
                )
            if before is not None:
                _check_enabled(before, reviewer=reviewer)
                if replace(before.runtime, state=made.state) == made and not reviewer:
                    return runtime_to(before.runtime, before)
            state = RuntimeState.SUBMITTED if self._review and not reviewer else RuntimeState.APPROVED
            stored = StoredRuntime(replace(made, state=state), actor, now)
            tx.runtimes.put(stored)
            done = "runtime.create" if before is None else "runtime.update"
            tx.audit.add(now, actor, done, name, tenant=tenant, detail=_described(stored))
            return runtime_to(stored.runtime, stored)

        return await self._board.commit(work)

    async def set_state(self, tenant: str, name: str, state: RuntimeState, *, actor: str) -> api.RuntimeInfo:
        """Approve or disable a runtime. Raises `NotFound`."""
        now = self._clock()
        waiting = self._waiting_with(tenant, name) if state is RuntimeState.DISABLED else []

        def work(tx: Tx, changes: Changes) -> api.RuntimeInfo:
            before = _existing(tx, tenant, name)
            stored = StoredRuntime(replace(before.runtime, state=state), before.changed_by, before.changed_at)
            if state is not before.runtime.state:
                tx.runtimes.put(stored)
                done = "runtime.approve" if state is RuntimeState.APPROVED else "runtime.disable"
                tx.audit.add(now, actor, done, name, tenant=tenant, detail=_described(stored))
                _note_change(
                    tx,
                    changes,
                    waiting,
                    msg("runtime {name} was disabled by an administrator", name=name),
                    now,
                )
            return runtime_to(stored.runtime, stored)

        return await self._board.commit(work)

    async def remove(self, tenant: str, name: str, *, actor: str, reviewer: bool = False) -> api.RuntimeInfo:
        """Remove a runtime; jobs that were submitted with it keep it. Raises `NotFound`, `Forbidden` for one that was disabled."""
        now = self._clock()
        waiting = self._waiting_with(tenant, name)

        def work(tx: Tx, changes: Changes) -> api.RuntimeInfo:
            before = _existing(tx, tenant, name)
            _check_enabled(before, reviewer=reviewer)
            tx.runtimes.remove(tenant, name)
            tx.audit.add(now, actor, "runtime.delete", name, tenant=tenant, detail={"waiting": len(waiting)})
            _note_change(
                tx,
                changes,
                waiting,
                msg("runtime {name} of {tenant} was removed", name=name, tenant=tenant),
                now,
            )
            return runtime_to(before.runtime, before)

        return await self._board.commit(work)

    def _waiting_with(self, tenant: str, name: str) -> Sequence[Job]:
        return [
            job
            for job in self._board.jobs.values()
            if job.phase in WAITING and job.spec.own_runtime is not None
            if (job.spec.tenant, job.spec.runtime) == (tenant, name)
        ]


def _note_change(tx: Tx, changes: Changes, jobs: Sequence[Job], what: Message, now: float) -> None:
    note = msg("{what}; this job still starts by the definition at its submission", what=what)
    changes.add_events(tx, [(job.uid, Step("runtime", note)) for job in jobs], now)


def _described(stored: StoredRuntime) -> dict[str, object]:
    """Return what the audit log tells: all that is run, so that it says what was approved."""
    row = stored.runtime
    programs = {role.name: list(role.program) for role in row.roles if role.program is not None}
    told = {
        "program": list(row.program),
        "programs": programs,
        "launcher": row.launcher,
        "env": dict(row.env),
        "image": row.image,
    }
    return {"state": row.state.value} | {name: value for name, value in told.items() if value}


def _usable(stored: StoredRuntime) -> bool:
    return stored.runtime.state is RuntimeState.APPROVED


def _check_enabled(stored: StoredRuntime, *, reviewer: bool) -> None:
    if stored.runtime.state is RuntimeState.DISABLED and not reviewer:
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "runtime {name} was disabled by an administrator of the hub; ask one to approve or remove it",
                name=stored.runtime.name,
            ),
        )


def _tenant_exists(tx: Tx, tenant: str) -> None:
    if tx.tenants.get(tenant) is None:
        raise not_found("tenant", tenant)


def _existing(tx: Tx, tenant: str, name: str) -> StoredRuntime:
    _tenant_exists(tx, tenant)
    found = tx.runtimes.get(tenant, name)
    if found is None:
        raise not_found("runtime", name)
    return found
