"""Asks the process that speaks to people's addresses. It is started by the first who asks, and ended when nobody does for a while."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mlp_hub import helpers
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.service.config import NoticePolicy
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
ABREAST = 16
"""Safety: notices that are sent at a time: bounds processes and memory."""
SILENT_S = 60.0
"""Safety: seconds after which the process is taken for dead: it gives up each notice after 25."""
IDLE_S = 120.0
"""Tuning: seconds without work after which the process ends: memory, for a second of starting it."""
MEMORY = 1 << 30
"""Safety: bytes of address space: the answers of an address are in memory for a moment."""

TROUBLE = {
    "forbidden": msg("the address is private, and the hub's operator does not allow it"),
    "no-host": msg("the host does not exist"),
    "unreachable": msg("it cannot be reached"),
    "silent": msg("it does not answer"),
    "recipient": msg("the mail server refuses the address"),
    "no-mail": msg("this hub sends no mail; its operator must name a server"),
    "unknown": msg("it is not the address of a service that this hub knows"),
    "failed": msg("the service did not accept it"),
}
"""Why a notice was not taken, in words."""
PRIVATE = msg(
    "this address is private; give a public one, or ask the hub's operator to allow its host in {setting}",
    setting="MLP_NOTICE_PRIVATE",
)
"""Why an address is refused when it is set."""


class Sender:
    """The process, and who waits for its answers.

    `first_uid` is as the policy of runs has it. With `only` it sends to a target of the operator, and no notices: `traces`, `otlp`,
    `mlflow` or `alertmanager`.
    """

    def __init__(self, policy: NoticePolicy, first_uid: int | None, *, only: str = "") -> None:
        self._arguments = (f"--{only}",) if only else policy.services
        self._policy = policy
        self._uid = helpers.helper_uid(first_uid, helpers.OUTBOUND)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._turns = asyncio.Semaphore(ABREAST)
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def service_of(self, address: str) -> str | None:
        """Return the name of the service that an address is of, or None. Raises `Refused` if it is private and not allowed.

        The check is the one of each connection. Sending does it again: a host may get another address later.
        """
        said = await self._ask({"act": "check", "kind": "service", "address": address})
        if said.get("why") == "forbidden":
            raise Refused(Reason.INVALID, PRIVATE)
        return said.get("service")

    async def send(
        self, kind: str, address: str, title: str, body: str, data: dict[str, Any]
    ) -> Message | None:
        """Send something; return why it was not taken, or None."""
        said = await self._ask(
            {"act": "send", "kind": kind, "address": address, "title": title, "body": body, "data": data}
        )
        why = said.get("why")
        if why is None:
            return None
        if why == "status":
            return msg("it answered with status {status}", status=int(said["status"]))
        return TROUBLE.get(why, TROUBLE["unreachable"])

    async def spans(self, address: str, spans: Sequence[Mapping[str, Any]], ca: str = "") -> str:
        """Send spans to a collector; return "" if it took them, "later" if it may take them later, or why it never will.

        `ca` are certificates in PEM that sign the collector's; empty: those of public authorities.
        """
        data = {"spans": list(spans), "ca": ca}
        said = await self._ask({"act": "send", "kind": "traces", "address": address, "data": data})
        if said.get("why") == "status":
            return f"it answered with status {int(said['status'])}"
        return "later" if said.get("why") else ""

    async def points(self, kind: str, address: str, data: str) -> dict[str, Any]:
        """Send metric points to a target, or ask a target of another kind, given as JSON; return what became of them.

        `why` is missing if the target took them. Otherwise it is later, too-large, fault (of the target) or refused, and `status` and
        `code` say more. `target` is what the job is there.
        """
        said = await self._ask({"act": "send", "kind": kind, "address": address}, data)
        why = said.get("why")
        if why in TROUBLE:  # it did not answer as it should
            return {**said, "why": "later", "code": why}
        return said

    async def stop(self) -> None:
        """End the process; waiting callers learn that nothing was accepted."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _ask(self, asked: dict[str, Any], data: str = "") -> dict[str, Any]:
        mail = self._policy.mail
        known = None
        if mail is not None and asked["kind"] == "mail":
            known = {
                "host": mail.host,
                "port": mail.port,
                "security": mail.security,
                "sender": mail.sender,
                "user": mail.user,
                "password": mail.password,
            }
        async with self._turns:
            if self._idle is not None:
                self._idle.cancel()
            process = await self._running()
            number = next(self._numbers)
            answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
            self._asked[number] = answer
            line = {"id": number, "allowed": list(self._policy.private), "mail": known, **asked}
            try:
                assert process.stdin is not None  # noqa: S101 - it was started with one
                text = json.dumps(line)
                if data:
                    text = f'{text[:-1]}, "data": {data}}}'
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
                async with asyncio.timeout(SILENT_S):
                    return await answer
            except TimeoutError:
                process.kill()
                return {"why": "silent"}
            except ConnectionError:
                return {"why": "unreachable"}
            finally:
                self._asked.pop(number, None)
                if not self._asked:
                    self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return self._process
            within = helpers.Confinement(self._uid, MEMORY, network=True)
            self._process = await asyncio.create_subprocess_exec(
                *helpers.command("mlp_hub.outbound.sending", within, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=helpers.environment(),
                cwd="/",
                start_new_session=True,
            )
            self._reading = asyncio.ensure_future(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101 - it was started with one
        while line := await process.stdout.readline():
            said = json.loads(line)
            answer = self._asked.get(said["id"])
            if answer is not None and not answer.done():
                answer.set_result(said)
        await process.wait()
        if self._process is process or self._process is None:
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_result({"why": "unreachable"})
