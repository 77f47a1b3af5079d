"""Client of a hub that is another's, such as a Zero-to-JupyterHub: accounts are that hub's alone, and its rights are looked at."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from mlp_hub.api.auth.scopes import HUB_SCOPES
from mlp_hub.api.hubclient import HubAccount, HubClient
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.service.health.problems import Problem
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
STANDING_S = 30.0
"""Tuning: seconds between two looks at the token's rights: how late a change is noticed, for fewer questions."""
AGAIN_S = 2.0
"""Tuning: the same while they do not suffice."""
PAGE = 200
"""Given: people that JupyterHub lists at once."""
PAGES_MOST = 250
"""Safety: pages of people that one question reads: 50,000 people."""
_PAGED = "application/jupyterhub-pagination+json"


class _Person(msgspec.Struct):
    name: str
    admin: bool = False
    created: Any = None
    servers: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    items: list[_Person]


class _Rights(msgspec.Struct):
    name: str = ""
    kind: str = ""
    scopes: list[str] = msgspec.field(default_factory=list)


class AttachedHub(HubClient):
    """Reads people of the hub by JupyterHub's own API, and refuses to change accounts, which are not the platform's."""

    _rights_at = -math.inf
    _standing: list[Problem]
    _said = ""

    def __init__(
        self, api_url: str, token: str, client_id: str = "service-mlp", *, hold_s: float = 0.0
    ) -> None:
        super().__init__(api_url, token, client_id, hold_s=hold_s)
        self._standing = []

    # -------------------------------------------------------------- health

    async def problems(self) -> list[Problem]:
        """Say whether the hub answers, knows the service's token, and gives it what it needs."""
        if found := await super().problems():
            self._report(f"{self._base} does not answer; check attach.hubUrl of the chart")
            return found
        if time.monotonic() - self._rights_at > (AGAIN_S if self._standing else STANDING_S):
            try:
                self._standing = await self._rights()
            except Unavailable:
                return await super().problems()
            self._rights_at = time.monotonic()
        return self._standing

    async def _rights(self) -> list[Problem]:
        answer = await self._ask("GET", "/user")
        if answer.code in (401, 403):
            self._report(
                f"{self._base} does not know the token of the service `mlp`: check attach.tokens of the chart, and hub.services.mlp of the hub's"
            )
            return [_problem("HubTokenUnknown", msg("the hub does not know the platform's token"))]
        rights = self._parsed(answer.body)
        if answer.code >= 300 or rights is None:
            self._report(
                f"{self._base} is not the API of a JupyterHub (it answered {answer.code}): check attach.hubUrl, and the path of address.url, which is hub.baseUrl"
            )
            return [_problem("HubNotFound", msg("the address of the hub is not that of a JupyterHub's API"))]
        missing = tuple(scope for scope in HUB_SCOPES if scope not in rights.scopes)
        if rights.kind != "service" or missing:
            self._report(
                f"the token of the service at {self._base} is that of the {rights.kind} {rights.name} and lacks {', '.join(missing)}: "
                "call attach(c, ...) in hub.extraConfig"
            )
            return [
                _problem(
                    "HubScopesMissing", msg("the platform's token at the hub lacks {scopes}", scopes=missing)
                )
            ]
        self._report("")
        return []

    @staticmethod
    def _parsed(body: bytes) -> _Rights | None:
        try:
            found = msgspec.json.decode(body, type=_Rights)
        except msgspec.MsgspecError:
            return None
        return found if found.kind else None

    def _report(self, what: str) -> None:
        if what and what != self._said:
            log.error("the hub: %s", what)
        elif not what and self._said:
            log.info("the hub at %s serves the platform again", self._base)
        self._said = what

    # ------------------------------------------------------------ accounts

    async def accounts(
        self,
        *,
        authorized: bool | None = None,
        waiting: bool = False,
        search: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[list[HubAccount], int]:
        """Return a page of the hub's people by name; all are let in, and none waits for it here."""
        if waiting or authorized is False:
            return [], 0
        people = sorted(await self._people(search), key=lambda person: person.name)
        page = [person for person in people if person.name > after][:limit]
        return [_account(person) for person in page], len(people)

    async def _people(self, search: str) -> list[_Person]:
        found: list[_Person] = []
        for page in range(PAGES_MOST):
            query = urlencode({"limit": PAGE, "offset": page * PAGE, "name_filter": search})
            answer = await self._ask("GET", f"/users?{query}", accept=_PAGED)
            some = self._read(answer, _Page).items
            found += some
            if len(some) < PAGE:
                break
        return found

    async def account(self, name: str) -> HubAccount | None:
        """Find one of the hub's people."""
        answer = await self._ask("GET", f"/users/{quote(name, safe='')}")
        return None if answer.code == 404 else _account(self._read(answer, _Person))

    async def find_accounts(self, names: Sequence[str]) -> dict[str, HubAccount]:
        """Return those of these people that the hub knows, by name."""
        found = [await self.account(name) for name in names]
        return {one.name: one for one in found if one is not None}

    async def stop_servers(self, name: str) -> None:
        """Stop all notebook servers of somebody."""
        answer = await self._ask("GET", f"/users/{quote(name, safe='')}")
        if answer.code != 404:
            for server in self._read(answer, _Person).servers or {}:
                await self.stop_server(name, server)

    async def sign_up(self, name: str, password: str, address: str) -> str:  # noqa: ARG002 - of the base class
        """Refuse it: people come in by the hub's own login."""
        raise _theirs()

    async def make_accounts(self, people: Mapping[str, str]) -> dict[str, Refused]:
        """Refuse each of them."""
        return {name: _theirs() for name in people}

    async def make_without_login(self, name: str) -> None:  # noqa: ARG002 - of the base class
        """Refuse it."""
        raise _theirs()

    async def authorize(self, name: str) -> HubAccount:
        """Return one whom the hub lets in already; refuse others."""
        found = await self.account(name)
        if found is None:
            raise Refused(Reason.NOT_FOUND, msg("user {name} does not exist", name=name))
        return found

    async def deauthorize(self, name: str) -> None:
        """Refuse it, unless the hub has nobody of that name any more: then nothing is left to do."""
        if await self.account(name) is not None:
            raise _theirs()

    async def set_password(self, name: str, password: str) -> None:  # noqa: ARG002 - of the base class
        """Refuse it."""
        raise _theirs()

    async def log_out(self, name: str) -> None:  # noqa: ARG002 - of the base class
        """Refuse it."""
        raise _theirs()

    async def set_admin(self, name: str, admin: bool) -> None:  # noqa: ARG002 - of the base class
        """Refuse it."""
        raise _theirs()

    async def delete_account(self, name: str) -> None:  # noqa: ARG002 - of the base class
        """Refuse it."""
        raise _theirs()


def _account(person: _Person) -> HubAccount:
    return HubAccount(
        person.name,
        authorized=True,
        admin=person.admin,
        created=person.created,
        servers=len(person.servers or {}),
        was_authorized=True,
    )


def _theirs() -> Refused:
    return Refused(
        Reason.WRONG_STATE,
        msg(
            "accounts are those of your JupyterHub: change them on its page Admin, or at your login provider"
        ),
    )


def _problem(reason: str, message: Message) -> Problem:
    return Problem("hub", reason, message)
