"""The gate of apps: which app is meant, who may use it, its keys, and that somebody asks for it."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from mlp_hub.background import BackgroundTasks
from mlp_hub.domain.apps.app import App, AppAccess, AppPhase
from mlp_hub.domain.apps.app_gate import KEY, KEY_PREFIX, AppKey, label_of
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.service.apps.endpoints import Endpoint, Endpoints
from mlp_hub.service.apps.visitors import opens
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

log = logging.getLogger(__name__)
USED_EVERY_S = 60.0
"""Tuning: seconds between two writes of when a key was used last: how exact that is, for fewer writes."""
USED_KEPT = 10_000
"""Safety: keys of which it is remembered when that was written; beyond, all are forgotten: bounds memory."""
GOOD_KEPT = 10_000
"""Tuning: keys that are known to be good and so do not count as guesses; a trade against memory."""

A = AppPhase
Wake = Callable[[str], Awaitable[None]]


class AppGate:
    """Rules that the gateway asks; `wake` gets each app that a request is for."""

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        endpoints: Endpoints,
        wake: Wake,
        most: ServiceLimits = DEFAULTS,
    ) -> None:
        self._most = most.app_keys
        self._db = db
        self._clock = clock
        self._wake = wake
        self._uids = UidMaker()
        self._now: dict[str, Endpoint] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._by_label: dict[str, str] = {}
        self._good: OrderedDict[str, None] = (
            OrderedDict()
        )  # digests of keys that were good when they were seen last
        self._written: dict[str, float] = {}
        self._writing = BackgroundTasks()
        endpoints.listen(self._changed)

    def _changed(self, uid: str, endpoint: Endpoint | None) -> None:
        if endpoint is not None:
            self._now[uid] = endpoint
            self._by_name[endpoint.user, endpoint.name] = uid
            self._by_label[label_of(endpoint.user, endpoint.name)] = uid
            return
        gone = self._now.pop(uid, None)
        if gone is None:
            return
        label = label_of(gone.user, gone.name)
        # a later app of its name may be there already
        if self._by_name.get((gone.user, gone.name)) == uid:
            del self._by_name[gone.user, gone.name]
        if self._by_label.get(label) == uid:
            del self._by_label[label]

    def find(self, user: str, name: str) -> Endpoint | None:
        """Return the endpoint of a user's app."""
        return self._now.get(self._by_name.get((user, name), ""))

    def by_label(self, label: str) -> Endpoint | None:
        """Return the endpoint of the app that has this host name."""
        return self._now.get(self._by_label.get(label, ""))

    async def may(self, app: Endpoint, visitor: str) -> bool:
        """Tell whether somebody with an account may open an app."""

        def look(tx: Tx) -> bool:
            found = tx.apps.get(SYSTEM, app.uid)
            return found is not None and found.phase is not A.DELETING and opens(tx, found, visitor)

        return await self._db.read(look)

    async def serves_model(self, app: Endpoint) -> bool:
        """Tell whether the platform serves a model there, to programs alone: a command may have pages."""
        found = await self._db.read(lambda tx: tx.apps.get(SYSTEM, app.uid))
        return found is not None and not found.spec.command

    async def key(self, given: str) -> AppKey | None:
        """Return what a key is; None where nobody knows it, or its app is being deleted. That it was used is noted, sooner or later."""
        if not KEY.fullmatch(given):
            return None
        digest = _digest(given)

        def look(tx: Tx) -> AppKey | None:
            key = tx.app_gate.key_of(digest)
            app = None if key is None else tx.apps.get(SYSTEM, key.app)
            return None if app is None or app.phase is A.DELETING else key

        found = await self._db.read(look)
        self._good.pop(digest, None)
        if found is not None:
            self._note_use(found.id)
            self._good[digest] = None
            while len(self._good) > GOOD_KEPT:
                self._good.popitem(last=False)
        return found

    def is_known(self, given: str) -> bool:
        """Return whether a key was good when it was last seen: a client that has it does not guess."""
        return _digest(given) in self._good

    async def wakes(self, app: Endpoint) -> bool:
        """Note that somebody who may asks for an app; tell whether it slept, and is being woken."""
        await self._wake(app.uid)
        if app.replicas:
            return False
        found = await self._db.read(lambda tx: tx.apps.get(SYSTEM, app.uid))
        return found is not None and found.sleeps_idle and found.phase not in (A.ERROR, A.DELETING)

    # ------------------------------------------------- what owners set

    async def uid_of(self, context: TenantContext, user: str, name: str) -> str:
        """Return the uid of an app. Raises `NotFound`."""
        return await self._db.read(lambda tx: _app(tx, context, user, name).uid)

    async def set_access(
        self, context: TenantContext, user: str, name: str, access: AppAccess, *, actor: str
    ) -> None:
        """Set the users who may open an app, which continues unchanged. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            app = _app(tx, context, user, name)
            if app.spec.access is not access:
                tx.apps.put(replace(app, spec=replace(app.spec, access=access)))
                self._note(tx, (actor, "app.access"), app, {"access": access.value})

        await self._db.write(work)

    async def keys(self, context: TenantContext, user: str, name: str) -> Sequence[AppKey]:
        """Return an app's keys, by name. Raises `NotFound`."""
        return await self._db.read(lambda tx: tx.app_gate.keys(_app(tx, context, user, name).uid))

    async def add_key(
        self, context: TenantContext, user: str, name: str, key: str, *, actor: str
    ) -> tuple[AppKey, str]:
        """Make a key of this name; return it with its secret, which is shown once.

        Raises `NotFound` and `Refused`.
        """
        secret = KEY_PREFIX + secrets.token_urlsafe(32)
        now = self._clock()
        made_id = self._uids.make(now)

        def work(tx: Tx) -> AppKey:
            app = _app(tx, context, user, name)
            there = tx.app_gate.keys(app.uid)
            if any(one.name == key for one in there):
                text = msg(
                    "app {name} has a key {key} already; revoke it first, or choose another name",
                    name=name,
                    key=key,
                )
                raise Refused(Reason.CONFLICT, text)
            if len(there) >= self._most:
                text = msg(
                    "app {name} has {n} keys, and the limit is {most}; revoke a key that nobody uses",
                    name=name,
                    n=len(there),
                    most=self._most,
                )
                raise Refused(Reason.INVALID, text)
            made = AppKey(made_id, app.uid, key, actor, now)
            tx.app_gate.add_key(made, _digest(secret))
            self._note(tx, (actor, "app.key"), app, {"key": key})
            return made

        return await self._db.write(work), secret

    async def drop_key(self, context: TenantContext, user: str, name: str, key: str, *, actor: str) -> None:
        """Take a key no more. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            app = _app(tx, context, user, name)
            if tx.app_gate.drop_key(app.uid, key) is None:
                raise not_found("key", key)
            self._note(tx, (actor, "app.key.revoke"), app, {"key": key})

        await self._db.write(work)

    def _note(self, tx: Tx, did: tuple[str, str], app: App, detail: dict[str, object]) -> None:
        tx.audit.add(self._clock(), *did, app.name, tenant=app.tenant, detail=detail)

    def _note_use(self, key: str) -> None:
        now = self._clock()
        if now - self._written.get(key, 0.0) < USED_EVERY_S:
            return
        if len(self._written) >= USED_KEPT:
            self._written.clear()
        self._written[key] = now
        self._writing.start(self._write_use(key, now))

    async def _write_use(self, key: str, now: float) -> None:
        try:
            await self._db.write(lambda tx: tx.app_gate.used(key, now))
        except Exception as error:  # noqa: BLE001 - nothing depends on it, and the next use tries again
            log.warning("when a key was used could not be stored: %s", error)
            self._written.pop(key, None)


def _app(tx: Tx, context: TenantContext, user: str, name: str) -> App:
    found = tx.apps.find(context, user, name)
    if found is None:
        raise not_found("app", name)
    return found


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
