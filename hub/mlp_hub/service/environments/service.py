"""Use of environments by the members of their tenants: make, list, show, delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from mlp_api.accounts import users as users_api
from mlp_api.localized import Text
from mlp_api.stored import environments as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.runtime.environment import (
    Environment,
    EnvironmentPhase,
    check_environment_move,
    kernel_of,
    packages_of,
)
from mlp_hub.domain.runtime.image import check_image, is_below
from mlp_hub.domain.runtime.requirements import checked_requirements
from mlp_hub.domain.runtime.runtime import RuntimeState
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Executor
from mlp_hub.service.environments.worker import EnvironmentWorker
from mlp_hub.service.quota.refusals import holder_of
from mlp_hub.service.storage.environments import check_unused, no_images, not_here
from mlp_hub.service.support.limits import DEFAULTS
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.support.units import when
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.service.tenants.places import memberships_of
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

P = EnvironmentPhase
MOST_ALLOWED = 10
"""Tuning: images that a refusal names as allowed."""
MOST_JOBS = 20
"""Tuning: jobs, and servers, that use an environment and are named with it."""


class EnvironmentService:
    """Use cases of environments; the caller checks that the user is a member of the tenant.

    `allowed`: images that members can make environments of without an administrator, in addition to
    those of their approved runtimes; None: all.
    """

    def __init__(
        self,
        db: Database,
        executor: Executor,
        worker: EnvironmentWorker,
        networks: Networks,
        clock: Callable[[], float],
        *,
        allowed: Collection[str] | None = (),
        most: int = DEFAULTS.environments_per_tenant,
    ) -> None:
        self._most = most
        self._db, self._executor, self._worker, self._networks = db, executor, worker, networks
        self._clock, self._allowed = clock, allowed
        self._uids = UidMaker()
        self.start = worker.start

    @property
    def images(self) -> bool:
        """Whether jobs run in containers, so that environments are images."""
        return self._executor.images

    async def create(
        self, tenant: str, asked: api.EnvironmentCreate, *, actor: str, admin: bool = False
    ) -> api.EnvironmentInfo:
        """Store an environment, durable on return and made after that.

        Raises `Refused` for one that could never be made. `admin`: the user administers the hub, and may
        make one of any image.
        """
        requirements = await self._checked(tenant, asked)
        now = self._clock()
        uid = self._uids.make(now)

        def work(tx: Tx) -> api.EnvironmentInfo:
            if tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            there = tx.environments.find(tenant, asked.name)
            if there is not None:
                raise _taken(there, asked.name)
            if tx.environments.count(tenant) >= self._most:
                raise Refused(
                    Reason.INVALID,
                    msg("the team has {n} environments; delete one that nobody needs", n=self._most),
                )
            if asked.image is not None and not admin:
                self._check_allowed(tx, tenant, asked.image)
            tx.users.ensure(actor, now)
            phase = P.CREATING if asked.image is None else P.READY  # nothing is made of an image
            made = Environment(uid, tenant, asked.name, actor, phase, requirements, now, image=asked.image)
            tx.environments.put(made)
            detail = None if asked.image is None else {"image": asked.image}
            tx.audit.add(now, actor, "environment.create", asked.name, tenant=tenant, detail=detail)
            return self._info(tx, made)

        made = await self._db.write(work)
        self._worker.look_at(uid)
        return made

    async def _checked(self, tenant: str, asked: api.EnvironmentCreate) -> str:
        """Return the requirements, none where it is of an image; raise `Refused` where they, or it, can be nothing here."""
        if asked.image is not None and asked.requirements is None:
            if not self.images:
                raise no_images()
            check_image(asked.image)
            return ""
        if asked.requirements is None or asked.image is not None:
            raise Refused(
                Reason.INVALID,
                msg("an environment is made of requirements or of an image: name one of the two"),
            )
        if self._executor.environments is None:
            raise not_here()
        requirements = checked_requirements(asked.requirements)
        if await self._networks.network_of(tenant) == "none":
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "team {tenant} has no network, and packages are fetched over one; an administrator of the hub can give it network "
                    "outbound",
                    tenant=tenant,
                ),
            )
        return requirements

    def _check_allowed(self, tx: Tx, tenant: str, image: str) -> None:
        if self._allowed is None or is_below(image, self._allowed):
            return
        usable = {
            one.runtime.image
            for one in tx.runtimes.of_tenant(tenant)
            if one.runtime.state is RuntimeState.APPROVED
        }
        if image not in usable:
            allowed = sorted({*self._allowed, *filter(None, usable)})[:MOST_ALLOWED]
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "image {image} is not allowed for environments of teams here; allowed are {allowed}: ask an administrator of the hub, who can make it for you or allow the image",
                    image=image,
                    allowed=", ".join(allowed) or msg("none yet"),
                ),
            )

    async def list(self, tenant: str) -> Sequence[api.EnvironmentInfo]:
        """Return all of a tenant, the oldest first."""
        return await self._db.read(
            lambda tx: [self._info(tx, each) for each in tx.environments.of_tenant(tenant)]
        )

    async def for_servers(
        self, tenants: Collection[str]
    ) -> Mapping[str, Sequence[users_api.SpawnEnvironment]]:
        """Return what notebook servers of each of these tenants may be started with."""

        def ready(tx: Tx, tenant: str) -> Sequence[users_api.SpawnEnvironment]:
            found = tx.environments.ready(tenant, images=self.images)
            return [
                users_api.SpawnEnvironment(
                    uid=uid, name=name, image=image, kernel=kernel_of(name) if image is None else None
                )
                for uid, name, image in found
            ]

        return await self._db.read(lambda tx: {tenant: ready(tx, tenant) for tenant in tenants})

    async def get(self, tenant: str, name: str) -> api.EnvironmentDetail:
        """Return one with all that is known of it. Raises NotFound."""

        def work(tx: Tx) -> api.EnvironmentDetail:
            found = _existing(tx, tenant, name)
            return api.EnvironmentDetail(
                environment=self._info(tx, found),
                requirements=found.requirements,
                lock=found.lock,
                log=self._worker.logs.get(found.uid, found.log),
            )

        return await self._db.read(work)

    async def delete(self, tenant: str, name: str, *, actor: str, admin: bool = False) -> api.EnvironmentInfo:
        """Delete an environment without open jobs or servers; its files are removed after this has returned.

        Its maker may delete it, and so may administrators of the team, or of all teams (`admin`). A
        deletion in progress continues.
        """
        now = self._clock()

        def work(tx: Tx) -> tuple[str, api.EnvironmentInfo]:
            found = _existing(tx, tenant, name)
            if not (admin or actor == found.user or _leads(tx, tenant, actor)):
                raise Refused(
                    Reason.FORBIDDEN,
                    msg(
                        "environment {name} was made by {user}; only {user} and administrators of the team can delete it",
                        name=found.name,
                        user=found.user,
                    ),
                )
            if found.phase is P.DELETING:
                return found.uid, self._info(tx, found)
            check_unused(tx, found, now)
            check_environment_move(found, P.DELETING)
            deleting = replace(found, phase=P.DELETING)
            if found.image is None:
                tx.environments.put(deleting)
            else:  # it has no files that would go after this
                tx.environments.remove(found.uid)
            tx.audit.add(now, actor, "environment.delete", found.name, tenant=tenant)
            return found.uid, self._info(tx, deleting)

        uid, info = await self._db.write(work)
        self._worker.look_at(uid, unwanted=True)
        return info

    def _info(self, tx: Tx, found: Environment) -> api.EnvironmentInfo:
        files = tx.stored.get(found.files) if found.files else None
        same = tx.environments.of_files(found.files) if found.files else []
        using = tx.jobs.using_environment(SYSTEM, found.uid, found.tenant)
        servers = tx.ledger.in_environment(found.uid, found.tenant, self._clock())
        return api.EnvironmentInfo(
            name=found.name,
            tenant=found.tenant,
            user=found.user,
            state=_STATES[found.phase],
            size=0 if files is None else files.charged,
            packages=dict(packages_of(found.lock)),
            lock=found.digest,
            shared_with=[each.name for each in same if each.uid != found.uid],
            jobs=[job.title for job in using[:MOST_JOBS]],
            servers=[Text(holder_of(row)) for row in servers[:MOST_JOBS]],
            message=Text(found.message),
            created_at=when(found.made_at),
            image=found.image,
        )


_STATES: dict[EnvironmentPhase, api.EnvironmentState] = {
    P.CREATING: "creating",
    P.READY: "ready",
    P.ERROR: "error",
    P.DELETING: "deleting",
}


def _existing(tx: Tx, tenant: str, name: str) -> Environment:
    found = tx.environments.find(tenant, name)
    if found is None or found.name != name:
        raise not_found("environment", name)
    return found


def _leads(tx: Tx, tenant: str, user: str) -> bool:
    return any(m.tenant == tenant and m.role == "admin" for m in memberships_of(tx, user))


def _taken(there: Environment, name: str) -> Refused:
    if there.name == name:
        return Refused(
            Reason.CONFLICT,
            msg("environment {name} already exists; delete it first, or choose another name", name=name),
        )
    return Refused(
        Reason.CONFLICT,
        msg(
            "environment {there} already exists, and {name} differs from it only in case; choose another name",
            there=there.name,
            name=name,
        ),
    )
