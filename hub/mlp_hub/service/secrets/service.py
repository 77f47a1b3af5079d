"""Keeps secrets: sealed with a key of the hub's by AES-GCM, bound to whose each is; nobody is told what is in one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.secret import SealedSecret
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.service.support.limits import DEFAULTS
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
"""Given: bytes of a nonce of AES-GCM."""


class SecretService:
    """Use cases of secrets. Whether who asks may is for the caller to say; of tenant and user one is empty."""

    def __init__(
        self, db: Database, clock: Callable[[], float], key: str, most: int = DEFAULTS.secrets_per_owner
    ) -> None:
        self._db, self._clock = db, clock
        self._key, self._most = key, most

    async def store_secret(
        self, name: str, keys: Mapping[str, str], *, tenant: str = "", user: str = "", actor: str
    ) -> None:
        """Store a secret instead of the one with its name."""
        now = self._clock()
        new = SealedSecret(tenant, user, name, tuple(sorted(keys)), b"", now, actor)
        sealed = self.sealed(msgspec.json.encode(dict(keys)), new.bound)

        def work(tx: Tx) -> None:
            if tenant and tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            if user:
                tx.users.ensure(user, now)
            if (
                tx.secrets.get(tenant, user, name) is None
                and len(tx.secrets.secrets_of(tenant, user)) >= self._most
            ):
                raise Refused(
                    Reason.INVALID, msg("there are {n} secrets; remove one that nobody needs", n=self._most)
                )
            tx.secrets.put(SealedSecret(tenant, user, name, new.keys, sealed, new.changed_at, new.changed_by))
            detail = {"keys": ", ".join(new.keys)}
            tx.audit.add(now, actor, "secret.set", name, tenant=tenant or None, detail=detail)

        await self._db.write(work)

    def sealed(self, plain: bytes, bound: bytes) -> bytes:
        """Seal another module's data, together with its bound data. Raises `Refused` without a key."""
        if not self._key:
            raise _no_key()
        nonce = os.urandom(_NONCE)
        return nonce + _aead(self._key).encrypt(nonce, plain, bound)

    def unsealed(self, sealed: bytes, bound: bytes) -> bytes | None:
        """Open what `sealed` made; None where it was made with another key, or is bound to something else."""
        if not self._key:
            return None
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as below

        try:
            return _aead(self._key).decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
        except InvalidTag:
            return None

    async def list(self, *, tenant: str = "", user: str = "") -> Sequence[SealedSecret]:
        """Return those of a tenant or a user, by name."""
        return await self._db.read(lambda tx: tx.secrets.secrets_of(tenant, user))

    async def remove(self, name: str, *, tenant: str = "", user: str = "", actor: str) -> None:
        """Forget a secret. Raises NotFound."""
        now = self._clock()

        def work(tx: Tx) -> None:
            if not tx.secrets.remove(tenant, user, name):
                raise not_found("secret", name)
            tx.audit.add(now, actor, "secret.remove", name, tenant=tenant or None)

        await self._db.write(work)

    def opened(self, tx: Tx, name: str, *, tenant: str, user: str) -> Mapping[str, str]:
        """Return what is in a secret of a user's own, or else of the tenant's. Raises NotFound."""
        found = tx.secrets.get("", user, name) or tx.secrets.get(tenant, "", name)
        if found is None:
            raise not_found("secret", name)
        plain = self.unsealed(found.sealed, found.bound)
        if plain is None:
            raise Refused(
                Reason.WRONG_STATE,
                msg("secret {name} was encrypted with another key of the hub; set it again", name=name),
            )
        return msgspec.json.decode(plain, type=dict[str, str])


def _no_key() -> Refused:
    text = msg("this hub has no key to encrypt secrets; its operator makes one with mlp-hub up")
    return Refused(Reason.WRONG_STATE, text)


@lru_cache(maxsize=2)
def _aead(key: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - many hubs keep no secret
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    return AESGCM(HKDF(SHA256(), 32, None, b"mlp-hub secrets").derive(key.encode()))
