"""Quota of a server's tenant: chosen, tried, confirmed and given back around whatever starts the server.

Mixed into a spawner of any kind, before it: `class Mine(QuotaMixin, KubeSpawner)`. How servers are started, stopped and
looked at is the other's, which finds in `grant` what a start was given.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from jupyterhub.spawner import Spawner
from traitlets import Callable, Float, Integer, Unicode, default

from mlp_language.catalogue import DEFAULT
from mlp_language.message import NOTHING as UNSAID
from mlp_language.message import Message, msg, verbatim
from mlp_language.render import Reader, render
from mlp_spawner.errors import (
    OptionsError,
    ServerFailed,
    ServerRefused,
    ServiceRefused,
    ServiceUnreachable,
    Told,
    sentence,
)
from mlp_spawner.grant import Grant
from mlp_spawner.quota import debts, options
from mlp_spawner.quota.holding import NOTHING, TRIED, UNKNOWN, ServerHolding
from mlp_spawner.quota.service_client import Account, Amount, Room, ServiceClient

_NO_SERVICE = msg(
    "The platform's service does not answer, so a server cannot get quota. The service restarts by itself: try again in a few seconds."
)
_ENDED = "ended"


class QuotaMixin(Spawner):  # type: ignore[misc]  # jupyterhub is untyped
    """Takes room in a tenant's quota before a start, and gives it back once the server has ended.

    What may be held is in the hub's database before it is asked for, so that a hub that dies in the middle of
    anything gives it back at its next look.
    """

    service_url = Unicode(help="URL of the platform's service; http+unix for a socket.", config=True)
    service_token = Unicode(help="The spawner's token for the service.", config=True)
    default_cpu = Float(0.2, help="CPU of a server where nothing is chosen, in cores.", config=True)
    default_ram = Integer(1024, help="Memory of a server where nothing is chosen, in MiB.", config=True)
    network = Unicode(
        "outbound", help="Network of servers whose tenant says nothing: none or outbound.", config=True
    )
    idle_s = Integer(0, help="Seconds after which an idle server is stopped; 0: never.", config=True)
    language_of = Callable(
        default_value=lambda _handler: DEFAULT,
        help="Function of a page's handler that returns the language of who asked for it; servers speak it too.",
        config=True,
    )
    reclaim_timeout = Float(
        60.0,
        help="Seconds that a start waits for room, where there may be some within them: while others give back what "
        "they borrowed of its tenant's quota; 0.6 of start_timeout at most.",
        config=True,
    )

    user_options: dict[str, Any]
    gives_gpus = False
    """Whether what starts the servers can give them GPUs."""
    grant = Grant()
    _busy = False
    _has_room = False
    _news = UNSAID
    _stopped_for = ""
    _language = DEFAULT
    _looked_for_debts = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        name = "" if self.user is None else self.user.name
        self._holding = ServerHolding(debts.key_of(name, self.name), self._service, self._note)
        if not QuotaMixin._looked_for_debts:
            # once in the life of a hub: the one before may have died owing quota of servers that ended
            with contextlib.suppress(RuntimeError):  # no loop runs: no hub
                debts.settle_later(self.db, self._service, self.log)
                QuotaMixin._looked_for_debts = True

    @default("options_form")
    def _options_form_default(self) -> Any:
        return QuotaMixin._form

    @default("apply_user_options")
    def _apply_user_options_default(self) -> Any:
        return _applied_by_start

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        # shorter than a try in the ledger holds, so that a server that starts late is never confirmed in vain
        return 100

    @property
    def _service(self) -> ServiceClient:
        return ServiceClient(self.service_url, self.service_token, self._reader.language)

    @property
    def _reader(self) -> Reader:
        """Reader of this server's messages: the last user of the hub's pages for it."""
        if self.handler is not None:
            self._language = self.language_of(self.handler)
        return Reader(self._language)

    @property
    def _defaults(self) -> options.Defaults:
        return options.Defaults(self.default_cpu, self.default_ram)

    @property
    def how_it_ended(self) -> Message:
        """Message to the user about the end of the last server, in sentences; the pages show it."""
        if self._stopped_for:
            return msg("The notebook server was stopped by the platform: {why}.", why=self._stopped_for)
        found: Message = getattr(super(), "how_it_ended", UNSAID)
        return found

    @property
    def environment_name(self) -> str:
        """The environment that the server was started with; empty where that is the platform's. The pages show it."""
        return options.environment_in(self.user_options or {})

    # ----------------------------------------------------------------------- options

    async def _form(self) -> str:
        account = await self._account()
        last = (self.orm_spawner.user_options if self.orm_spawner else None) or {}
        return options.form(
            self._defaults,
            account,
            last,
            reader=self._reader,
            network=self.network,
            ended=self.how_it_ended,
            gpus=self.gives_gpus,
            idle_s=self.idle_s,
        )

    def options_from_form(self, form_data: dict[str, list[Any]]) -> dict[str, Any]:
        """Convert the form's answer into options; refuse invalid ones."""
        try:
            return options.from_form(form_data, gpus=self.gives_gpus)
        except OptionsError as error:
            raise ServerRefused(sentence(error.message), "options", 400) from error

    async def _account(self) -> Account:
        try:
            return await self._service.account(self.user.name)
        except ServiceUnreachable as error:
            raise self._unreachable(error) from error
        except ServiceRefused as refused:
            raise ServerRefused(sentence(refused.msg), refused.reason) from refused

    def _unreachable(self, error: ServiceUnreachable) -> ServerRefused:
        self.log.warning("The service does not answer: %s", error)
        return ServerRefused(_NO_SERVICE, "service-unreachable", 503)

    # --------------------------------------------------------------- start, poll, stop

    async def start(self) -> Any:
        """Take quota, have the server started, and keep what was taken; return what its start returned."""
        self._busy = True
        self._news = msg("Asking for room within the quota")
        try:
            account = await self._account()
            environments = {tenant: room.environments for tenant, room in account.room.items()}
            if self._repeats():
                self._repeat(options.repeated(self.user_options, account.default_tenant, environments))
            try:
                choice = options.choose(
                    self.user_options,
                    self._defaults,
                    account.tenants,
                    account.default_tenant,
                    gpus=self.gives_gpus,
                    environments=environments,
                )
            except OptionsError as error:
                raise ServerRefused(sentence(error.message), "options", 400) from error
            try:
                await self._take(choice)
                self._give(choice, account)
                self._has_room = True
                place = await super().start()
                await self._confirm()
            except BaseException:
                await asyncio.shield(self._undo())
                raise
            self._stopped_for = ""
            return place
        finally:
            self._busy = self._has_room = False

    def _repeats(self) -> bool:
        """Whether who asked for this start gave no options, so that the hub took those of the last one."""
        # a page's handler has none: its form gives all
        asked = getattr(self.handler, "get_server_json_body", None)
        return asked is not None and asked()["user_options"] is None

    def _repeat(self, found: dict[str, Any]) -> None:
        """Have the server start with these options, and pages and the next start know of no others."""
        if found == self.user_options:
            return
        gone = options.environment_in(self.user_options)
        if gone != options.environment_in(found):
            self.log.info("%s starts with the platform's environment: %s is gone", self._log_name, gone)
        self.user_options = found
        if self.orm_spawner is not None:
            self.orm_spawner.user_options = found

    async def _take(self, choice: options.Choice) -> None:
        user = self.user.name
        holder = f"{user}'s notebook" + (f" {self.name}" if self.name else "")
        environment = "" if choice.environment is None else choice.environment.uid
        amount = Amount(choice.tenant, choice.cpu, choice.ram, choice.gpu, choice.gpu_kind, environment)
        self._holding.service = self._service  # it answers in the language of who asks now
        try:
            async with debts.paying:
                await self._holding.give_back()
            patience = min(self.reclaim_timeout, 0.6 * self.start_timeout)
            await self._holding.hold_amount(
                user, holder, amount, patience_s=patience, waits=self._show_progress
            )
        except ServiceRefused as refused:
            raise ServerRefused(sentence(refused.msg), refused.reason) from refused
        except ServiceUnreachable as error:
            raise self._unreachable(error) from error

    def _show_progress(self, news: str) -> None:
        self._news = verbatim(news)

    def _give(self, choice: options.Choice, account: Account) -> None:
        network = account.room.get(choice.tenant, Room()).network or self.network
        chosen = choice.environment
        self.grant = Grant(
            choice.tenant,
            choice.cpu,
            choice.ram,
            account.number,
            network,
            choice.gpu,
            choice.gpu_kind,
            environment="" if chosen is None else chosen.name,
            image="" if chosen is None else chosen.image or "",
            kernel="" if chosen is None else chosen.kernel or "",
            without_settings=choice.without_settings,
        )
        self.cpu_limit, self.mem_limit = choice.cpu, choice.ram * 2**20

    async def _confirm(self) -> None:
        try:
            await self._holding.keep()
        except (ServiceRefused, ServiceUnreachable) as error:
            text = msg("The server's quota could not be confirmed: {why}. Start it again.", why=str(error))
            raise ServerFailed(text) from error

    async def _undo(self) -> None:
        """End the remains of a failed start; a part that cannot be ended now keeps its holdings until its end."""
        try:
            await super().stop(now=True)
        except Exception:
            self.log.exception("What is left of the server of %s could not be ended", self._log_name)
        else:
            await self._give_back()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page of a pending start what is waited for; the hub stops asking when the start is over."""
        before = UNSAID
        while not self._has_room:
            if self._news != before:
                before = self._news
                yield {"progress": 10, "message": render(before, self._reader)}
            await asyncio.sleep(0.2)
        async for event in super().progress():
            news = event.get("message")
            yield (
                {**event, "message": render(news.message, self._reader)} if isinstance(news, Told) else event
            )

    def get_env(self) -> dict[str, str]:
        """Add what programs of the server find of the platform."""
        env: dict[str, str] = super().get_env()
        without = {"MLP_WITHOUT_SETTINGS": "chosen"} if self.grant.without_settings else {}
        return (
            env
            | without
            | {
                "MLP_TENANT": self.grant.tenant,
                "MLP_USER": self.user.name,
                "MLP_TOKEN": self.api_token,
                "MLP_LANGUAGE": self._reader.language,
            }
        )

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit status; then it holds nothing any more."""
        status: int | None = await super().poll()
        if self._busy:
            return status  # a spawner's own `start` and `stop` may look too
        if status is None and self._holding.step == TRIED:
            self.log.warning("Ending the server of %s: its start was never finished", self._log_name)
            self._busy = True
            try:
                await super().stop(now=True)
            finally:
                self._busy = False
            status = 1
        if status is not None:
            await self._give_back()
        return status

    async def stop(self, now: bool = False) -> None:
        """End the server: asked first, unless `now`. The platform tells why it stops one, such as one that fills the disk: that at once."""
        # of a stop that failed half-way and is made again the first reason stays
        why, at_once = await self._service.stopped_for(self.user.name)
        self._stopped_for = why or self._stopped_for
        await super().stop(now=now or at_once)
        await self._give_back()

    async def _give_back(self) -> None:
        try:
            await self._holding.give_back()
        except ServiceUnreachable as error:
            # it stays noted; given back at the next start, or when debts are settled
            self.log.warning("%s still holds quota: the service does not answer: %s", self._log_name, error)
            debts.settle_later(self.db, self._service, self.log)

    # -------------------------------------------------------------------- persistence

    def _note(self) -> None:
        if self.orm_spawner is not None:
            self.orm_spawner.state = self.get_state()
            self.db.commit()

    def get_state(self) -> dict[str, Any]:
        """Return the state for a restarted hub: that of the other half, and the amounts that might be held."""
        state: dict[str, Any] = super().get_state()
        state[debts.STATE] = self._holding.step
        if self._stopped_for:
            state[_ENDED] = self._stopped_for
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over from the hub that ran before; of one that noted nothing it is unknown what its servers hold."""
        state = dict(state)
        self._stopped_for = state.pop(_ENDED, "")
        self._holding.step = state.pop(debts.STATE, UNKNOWN if state else NOTHING)
        super().load_state(state)


def _applied_by_start(spawner: QuotaMixin, user_options: dict[str, Any]) -> None:
    """Leave the options to `start`, which checks them against the user's tenants."""
