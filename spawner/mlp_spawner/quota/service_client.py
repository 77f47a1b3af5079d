"""The spawner's calls to the platform's service, on a socket or by TCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import aiohttp

from mlp_spawner.environment import API_PATH
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable

APPLIER = "sp"
_ON_SOCKET = "http+unix://"
_PAUSES = (0.1, 0.3, 0.6, 1.0, 2.0)  # a service that restarts is back within some seconds
_ASIDE_S = 1.0  # for an answer that is not worth waiting for
_WHY_S = 5.0  # for one that nobody can ask for later


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def _room_of(room: Mapping[str, Any]) -> Room:
    environments = tuple(ServerEnvironment(**each) for each in room["environments"])
    return Room(**{**room, "environments": environments})


def _preferences(user: str) -> str:
    return f"/users/{quote(user, safe='')}/preferences"


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """An environment of a tenant that is ready: the `image` of pods, else the `kernel` that new notebooks begin with."""

    uid: str
    name: str
    image: str | None = None
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """Quota of a tenant and its free part: cpu in cores, ram in MiB, gpu in devices.

    None: the nodes are the only limit. `cpu_borrow`, `ram_borrow`: idle amounts of others that a server
    can also have. `cpu_back`, `ram_back`: amounts that a server can also have, by taking back those
    that the tenants `back_from` borrowed. `network` is the tenant's setting for its jobs and notebooks,
    None without a setting; `job_network` is the network of its jobs. `environments` are the tenant's
    environments for servers.
    """

    cpu: float | None = None
    cpu_free: float | None = None
    ram: int | None = None
    ram_free: int | None = None
    gpu: float | None = None
    gpu_free: float | None = None
    gpu_kinds: Sequence[str] = ()
    cpu_borrow: float = 0.0
    ram_borrow: int = 0
    cpu_back: float = 0.0
    ram_back: int = 0
    back_from: Sequence[str] = ()
    network: str | None = None
    job_network: str = "none"
    environments: Sequence[ServerEnvironment] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """Account data that a server needs of its user; `number` makes the uid if the hub is root."""

    number: int
    tenants: tuple[str, ...]
    default_tenant: str
    room: Mapping[str, Room]


@dataclass(frozen=True, slots=True)
class Amount:
    """Amount requested of the ledger: cpu in cores, ram in MiB, gpu in devices, of any kind if none is named.

    `environment` is the uid of the environment that the server also has, empty for the platform's.
    """

    tenant: str
    cpu: float
    ram: int
    gpu: float = 0
    gpu_kind: str = ""
    environment: str = ""


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """The service, as the spawner sees it. All calls are idempotent and repeated for some seconds.

    `url` begins with `http+unix://` and the path of a socket, quoted, or with `http://` and a host.
    """

    url: str
    token: str
    language: str = ""

    async def account(self, user: str) -> Account:
        """Ask for a user's number and tenants; the service makes the user known if need be."""
        found = await self._call("GET", f"/users/{quote(user, safe='')}:spawn")
        tenants = tuple(found["tenants"])
        # one may have left the tenant that one once made the default
        default = found["default_tenant"] if found["default_tenant"] in tenants else tenants[0]
        room = {name: _room_of(told) for name, told in found["room"].items()}
        return Account(found["number"], tenants, default, room)

    async def stopped_for(self, user: str) -> tuple[str, bool]:
        """Ask why the platform is stopping the user's servers, and whether at once; nothing where it is not, or does not answer at once."""
        path = f"/users/{quote(user, safe='')}:stopped"
        try:
            told = await self._once("GET", path, None, timeout_s=_WHY_S)
            # a service of the version before stops servers for a full disk only
            return str(told["why"]), bool(told.get("at_once", told["why"]))
        except (
            ServiceRefused,
            ServiceUnreachable,
            LookupError,
            TypeError,
            ValueError,
        ):  # it is stopped all the same
            return "", False

    async def language_of(self, user: str) -> str:
        """Ask which language the user chose; nothing where none is, or the service does not answer at once."""
        try:
            return str((await self._once("GET", _preferences(user), None, timeout_s=_ASIDE_S))["language"])
        except (ServiceRefused, ServiceUnreachable, LookupError, TypeError, ValueError):
            return ""  # the page is shown all the same

    async def choose_language(self, user: str, language: str) -> None:
        """Store which language the user chose."""
        await self._call("PATCH", _preferences(user), {"language": language})

    async def token_made(self, user: str, **fields: str) -> None:
        """Say that the hub gave the user a token: `actor`, `note`, `scopes`, `expires`."""
        await self._call("PUT", f"/users/{quote(user, safe='')}:token_made", fields)

    async def token_ended(self, user: str, **fields: object) -> None:
        """Say that a token of the user's is about to be ended: `actor`, `note`, `token`; `recorded`: that it has ended."""
        await self._call("PUT", f"/users/{quote(user, safe='')}:token_ended", fields)

    async def changing(self, user: str, **fields: object) -> None:
        """Say that the hub is about to change an account: `actor`, `action`, and `admin` for that right."""
        await self._call("PUT", f"/users/{quote(user, safe='')}:changing", fields)

    async def token_uses(self, user: str) -> dict[str, tuple[str, float]] | None:
        """Ask from which address each of a user's tokens was used last and since when; None where that is not told at once."""
        try:
            found = await self._once(
                "GET", f"/users/{quote(user, safe='')}:token_uses", None, timeout_s=_ASIDE_S
            )
            return {str(one["id"]): (str(one["address"]), float(one["at"])) for one in found}
        except (ServiceRefused, ServiceUnreachable, LookupError, TypeError, ValueError):
            return None  # the page is shown all the same

    async def announced(self, user: str) -> list[dict[str, Any]]:
        """Ask what administrators tell the user now; nothing where the service does not answer at once."""
        try:
            found = await self._once(
                "GET", f"/users/{quote(user, safe='')}:announced", None, timeout_s=_ASIDE_S
            )
            return [{name: str(one[name]) for name in ("id", "level", "text", "tenant")} for one in found]
        except (ServiceRefused, ServiceUnreachable, LookupError, TypeError, ValueError):
            return []  # the page is shown all the same

    async def report_identity(self, user: str, **fields: object) -> None:
        """Report the user's standing at the login's provider: the fields of `LoginStanding`."""
        await self._call("PUT", f"/users/{quote(user, safe='')}:standing", fields)

    async def report_provider(self, *, away: bool, refuses: str) -> None:
        """Report whether the login's provider answers, and its words where it does not accept this hub."""
        await self._once("PUT", "/login:standing", {"away": away, "refuses": refuses[:1000]})

    async def working(self) -> list[str]:
        """Ask who has jobs that have not ended."""
        found: list[str] = []
        while page := await self._call(
            "GET", f"/users:working?after={quote(found[-1] if found else '', safe='')}"
        ):
            found += page
        return found

    async def try_hold(self, key: str, user: str, holder: str, amount: Amount) -> None:
        """Hold the amount until it expires, or raise ServiceRefused with the numbers."""
        body = {"id": key, "applier": APPLIER, "request_type": "request", "user": user, "holder": holder}
        body |= {"tenant": amount.tenant, "cpu": amount.cpu, "ram": amount.ram, "gpu": amount.gpu}  # type: ignore[dict-item]
        if amount.gpu_kind:
            body["gpu_kind"] = amount.gpu_kind
        if amount.environment:
            body["environment"] = amount.environment
        await self._call("PUT", "/resource_request:try", body)

    async def confirm(self, key: str) -> None:
        """Hold for good what was tried."""
        await self._call("PUT", "/resource_request:confirm", {"id": key, "applier": APPLIER})

    async def cancel(self, key: str) -> None:
        """Give up what was tried."""
        await self._call("PUT", "/resource_request:cancel", {"id": key, "applier": APPLIER})

    async def release(self, key: str) -> None:
        """Give back what was confirmed."""
        body = {"id": key, "applier": APPLIER, "request_type": "release"}
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

    async def _once(
        self, method: str, path: str, body: dict[str, Any] | None, *, timeout_s: float = 10
    ) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Accept-Language": self.language}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        base, connector = self.url, None
        if base.startswith(_ON_SOCKET):
            connector = aiohttp.UnixConnector(path=unquote(base.removeprefix(_ON_SOCKET)))
            base = "http://localhost"
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
                session.request(method, f"{base}{API_PATH}{path}", json=body, headers=headers) as answer,
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
