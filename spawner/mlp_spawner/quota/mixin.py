"""Quota of a server's tenant: chosen, tried, confirmed and given back around whatever starts the server.

Mixed into a spawner of any kind, before it: `class Mine(QuotaMixin, KubeSpawner)`. How servers are started, stopped and
looked at is the other's, which finds in `grant` what a start was given.
"""

from __future__ import annotations

from typing import Any

from traitlets import Float, Integer, Unicode, default

from mlp_spawner.errors import OptionsError, ServerRefused, sentence
from mlp_spawner.grant import Grant
from mlp_spawner.quota import options
from mlp_spawner.quota.held import HeldQuota
from mlp_spawner.quota.service_client import Account, Amount, Room


class QuotaMixin(HeldQuota):
    """Takes room in a tenant's quota before a start, and gives it back once the server has ended."""

    default_cpu = Float(0.2, help="CPU of a server where nothing is chosen, in cores.", config=True)
    default_ram = Integer(1024, help="Memory of a server where nothing is chosen, in MiB.", config=True)
    network = Unicode(
        "outbound", help="Network of servers whose tenant says nothing: none or outbound.", config=True
    )
    idle_s = Integer(0, help="Seconds after which an idle server is stopped; 0: never.", config=True)

    user_options: dict[str, Any]
    gives_gpus = False
    """Whether what starts the servers can give them GPUs."""
    grant = Grant()

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
    def _defaults(self) -> options.Defaults:
        return options.Defaults(self.default_cpu, self.default_ram)

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

    # ------------------------------------------------------------------------ start

    async def _prepare_quota(self) -> tuple[options.Choice, Account]:
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
        return choice, account

    async def _take_quota(self, prepared: Any) -> None:
        choice, account = prepared
        await self._take(choice)
        self._give(choice, account)
        self._has_room = True

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
        environment = "" if choice.environment is None else choice.environment.uid
        await self._hold(
            Amount(choice.tenant, choice.cpu, choice.ram, choice.gpu, choice.gpu_kind, environment)
        )

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


def _applied_by_start(spawner: QuotaMixin, user_options: dict[str, Any]) -> None:
    """Leave the options to `start`, which checks them against the user's tenants."""
