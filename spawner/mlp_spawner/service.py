"""The spawner's calls to the platform's service over its private socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

from mlp_spawner.environment import API_PATH
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable

APPLIER = "sp"
_PAUSES = (0.1, 0.3, 0.6, 1.0, 2.0)  # a service that restarts is back within some seconds


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Room:
    """A tenant's quota and what is free of it: cpu in cores, ram in MiB; None where the nodes are the only limit.

    `cpu_back`, `ram_back`: what a server may have besides, by taking back what the tenants `back_from` borrowed.
    """

    cpu: float | None = None
    cpu_free: float | None = None
    ram: int | None = None
    ram_free: int | None = None
    cpu_back: float = 0.0
    ram_back: int = 0
    back_from: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """What a server needs to know of its user. `number` makes the uid where the hub is root."""

    number: int
    tenants: tuple[str, ...]
    default_tenant: str
    room: Mapping[str, Room]


@dataclass(frozen=True, slots=True)
class Amount:
    """What is asked of the ledger: cpu in cores, ram in MiB, gpu in devices."""

    tenant: str
    cpu: float
    ram: int
    gpu: float = 0


@dataclass(frozen=True, slots=True)
class Service:
    """The service, as the spawner sees it. All calls are idempotent and repeated for some seconds."""

    socket: str
    token: str

    async def account(self, user: str) -> Account:
        """Ask for a user's number and tenants; the service makes the user known if need be."""
        found = await self._call("GET", f"/users/{quote(user, safe='')}:spawn")
        tenants = tuple(found["tenants"])
        # one may have left the tenant that one once made the default
        default = found["default_tenant"] if found["default_tenant"] in tenants else tenants[0]
        room = {name: Room(**amounts) for name, amounts in found["room"].items()}
        return Account(found["number"], tenants, default, room)

    async def try_hold(self, key: str, user: str, holder: str, amount: Amount) -> None:
        """Hold the amount until it expires, or raise ServiceRefused with the numbers."""
        body = {"id": key, "applier": APPLIER, "request_type": "request", "user": user, "holder": holder}
        body |= {"tenant": amount.tenant, "cpu": amount.cpu, "ram": amount.ram, "gpu": amount.gpu}  # type: ignore[dict-item]
        await self._call("PUT", "/resource_request:try", body)

    async def confirm(self, key: str) -> None:
        """Hold for good what was tried."""
        await self._call("PUT", "/resource_request:confirm", {"id": key, "applier": APPLIER})

    async def cancel(self, key: str) -> None:
        """Give up what was tried."""
        await self._call("PUT", "/resource_request:cancel", {"id": key, "applier": APPLIER})

    async def release(self, key: str, amount: Amount) -> None:
        """Give back what was confirmed."""
        body = {"id": key, "applier": APPLIER, "request_type": "release", "tenant": amount.tenant}
        await self._call("PUT", "/resource_request:try", body)
        await self.confirm(key)

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        for pause in (*_PAUSES, None):
            try:
                return await self._once(method, path, body)
            except ServiceUnreachable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError

    async def _once(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        timeout = aiohttp.ClientTimeout(total=10)
        try:
            connector = aiohttp.UnixConnector(path=self.socket)
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
                session.request(
                    method, f"http://localhost{API_PATH}{path}", json=body, headers=headers
                ) as answer,
            ):
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ServiceUnreachable(f"{type(error).__name__}: {error}") from error
        if answer.status == 200:
            return json.loads(text) if text else None
        if answer.status == 403:
            found = json.loads(text)
            raise ServiceRefused(found["msg"], found["reason"], _seconds(answer.headers.get("Retry-After")))
        raise ServiceUnreachable(f"{method} {path} answered {answer.status}: {text[:300]}")
