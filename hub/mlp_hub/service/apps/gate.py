"""The gate of apps: which app is meant, who may use it, its keys, and that somebody asks for it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from mlp_hub.domain.app import AppPhase
from mlp_hub.domain.app_gate import KEY, KEY_PREFIX, AppAccess, AppKey, label_of, may_open
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.service.apps.endpoints import Endpoint, Endpoints
from mlp_hub.service.support.limits import KEYS_OF_APP
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg

log = logging.getLogger(__name__)
USED_EVERY_S = 60.0
"""Tuning: seconds between two writes of when a key was used last: how exact that is, for fewer writes."""
USED_KEPT = 10_000
"""Safety: keys of which it is remembered when that was written; beyond, all are forgotten: bounds memory."""

Wake = Callable[[str], Awaitable[None]]


class Standing(NamedTuple):
    """How an app stands for who asks for it now. `wakes`: it sleeps, and is being woken."""

    endpoint: Endpoint
    reason: Message
    wakes: bool


class AppGate:
    """Decides for the gateway; `wake` is told of each app that somebody asks for."""

    def __init__(self, db: Database, clock: Callable[[], float], endpoints: Endpoints, wake: Wake) -> None:
        self._db = db
        self._clock = clock
        self._wake = wake
        self._uids = UidMaker()
        self._now: dict[str, Endpoint] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._by_label: dict[str, str] = {}
        self._written: dict[str, float] = {}
        self._writing: set[asyncio.Task[None]] = set()
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
        """Return the endpoint of the app that has this host name of its own."""
        return self._now.get(self._by_label.get(label, ""))

    async def may(self, app: Endpoint, visitor: str) -> bool:
        """Tell whether somebody with an account may open an app."""

        def look(tx: Tx) -> bool:
            places = frozenset(member.tenant for member in tx.members.of_user(visitor))
            return may_open(tx.app_gate.access(app.uid), app.user, app.tenant, visitor, places)

        return await self._db.read(look)

    async def key(self, given: str) -> AppKey | None:
        """Return what a key is; None where nobody knows it. That it was used is noted, sooner or later."""
        if not KEY.fullmatch(given):
            return None
        found = await self._db.read(lambda tx: tx.app_gate.key_of(_digest(given)))
        if found is not None:
            self._note_use(found.id)
        return found

    async def standing(self, app: Endpoint) -> Standing:
        """Say how an app stands that somebody asks for, who may; one that sleeps is woken."""
        await self._wake(app.uid)
        if app.replicas:
            return Standing(app, NOTHING, wakes=False)
        found = await self._db.read(lambda tx: tx.apps.get(app.uid))
        if found is None or found.phase is AppPhase.DELETING:
            return Standing(app, NOTHING, wakes=False)
        sleeps = found.sleeps_idle and found.phase is not AppPhase.ERROR
        return Standing(app, found.message, wakes=sleeps)

    # ------------------------------------------------- what owners set

    async def uid_of(self, user: str, name: str) -> str:
        """Return the uid of an app. Raises `NotFound`."""
        return await self._db.read(lambda tx: _uid(tx, user, name))

    async def access(self, user: str, name: str) -> AppAccess:
        """Return who may open an app. Raises `NotFound`."""
        return await self._db.read(lambda tx: tx.app_gate.access(_uid(tx, user, name)))

    async def set_access(self, user: str, name: str, access: AppAccess, *, actor: str) -> AppAccess:
        """Say who may open an app. Raises `NotFound`."""

        def work(tx: Tx) -> AppAccess:
            uid = _uid(tx, user, name)
            if tx.app_gate.access(uid) is not access:
                tx.app_gate.set_access(uid, access)
                self._note(tx, (actor, "app.access"), user, name, {"access": access.value})
            return access

        return await self._db.write(work)

    async def keys(self, user: str, name: str) -> Sequence[AppKey]:
        """Return an app's keys, by name. Raises `NotFound`."""
        return await self._db.read(lambda tx: tx.app_gate.keys(_uid(tx, user, name)))

    async def add_key(self, user: str, name: str, key: str, *, actor: str) -> tuple[AppKey, str]:
        """Make a key of this name; return it with what is shown once. Raises `NotFound` and `Refused`."""
        secret = KEY_PREFIX + secrets.token_urlsafe(32)
        now = self._clock()
        made_id = self._uids.make(now)

        def work(tx: Tx) -> AppKey:
            uid = _uid(tx, user, name)
            there = tx.app_gate.keys(uid)
            if any(one.name == key for one in there):
                text = msg(
                    "app {name} has a key {key} already; revoke it first, or choose another name",
                    name=name,
                    key=key,
                )
                raise Refused(Reason.CONFLICT, text)
            if len(there) >= KEYS_OF_APP:
                text = msg(
                    "app {name} has {n} keys, and more than {most} are not allowed; revoke one that nobody uses",
                    name=name,
                    n=len(there),
                    most=KEYS_OF_APP,
                )
                raise Refused(Reason.INVALID, text)
            made = AppKey(made_id, uid, key, actor, now)
            tx.app_gate.add_key(made, _digest(secret))
            self._note(tx, (actor, "app.key"), user, name, {"key": key})
            return made

        return await self._db.write(work), secret

    async def drop_key(self, user: str, name: str, key: str, *, actor: str) -> None:
        """Take a key no more. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            if tx.app_gate.drop_key(_uid(tx, user, name), key) is None:
                raise not_found("key", key)
            self._note(tx, (actor, "app.key.revoke"), user, name, {"key": key})

        await self._db.write(work)

    def _note(self, tx: Tx, did: tuple[str, str], user: str, name: str, detail: dict[str, object]) -> None:
        app = tx.apps.find(user, name)
        tx.audit.add(
            self._clock(),
            *did,
            name,
            tenant=None if app is None else app.tenant,
            detail=detail,
        )

    def _note_use(self, key: str) -> None:
        now = self._clock()
        if now - self._written.get(key, 0.0) < USED_EVERY_S:
            return
        if len(self._written) >= USED_KEPT:
            self._written.clear()
        self._written[key] = now
        task = asyncio.ensure_future(self._write_use(key, now))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write_use(self, key: str, now: float) -> None:
        try:
            await self._db.write(lambda tx: tx.app_gate.used(key, now))
        except Exception as error:  # noqa: BLE001 - nothing depends on it, and the next use tries again
            log.warning("when a key was used could not be stored: %s", error)
            self._written.pop(key, None)


def _uid(tx: Tx, user: str, name: str) -> str:
    found = tx.apps.find(user, name)
    if found is None:
        raise not_found("app", name)
    return found.uid


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
