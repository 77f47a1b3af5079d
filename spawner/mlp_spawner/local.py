"""Notebook servers in sandboxes on the hub's machine, inside their tenant's quota."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyterhub.spawner import Spawner, SpawnException
from tornado import web
from traitlets import Float, Integer, Unicode, default

from mlp_hub.executors import sandbox
from mlp_spawner import options, server
from mlp_spawner.environment import Who, build, pip_settings
from mlp_spawner.errors import OptionsError, ServiceRefused, ServiceUnreachable
from mlp_spawner.holding import Holding
from mlp_spawner.homes import place_samples
from mlp_spawner.paths import Paths
from mlp_spawner.service import Account, Amount, Service

_NO_SERVICE = (
    "The platform's service does not answer, so that no quota can be taken for a server. "
    "It is restarted by itself: try again in a few seconds."
)


class ServerFailed(web.HTTPError):
    """The server could not be started, through no choice of its user; shown on the spawn page."""

    def __init__(self, msg: str) -> None:
        super().__init__(500, msg.replace("%", "%%"))
        self.jupyterhub_message = msg


class ServerRefused(SpawnException):  # type: ignore[misc]
    """No server for a reason of policy: an option, the quota, a service that cannot be asked."""

    def __init__(self, msg: str, reason: str, status_code: int = 403) -> None:
        # HTTPError takes what it logs for a format
        super().__init__(msg, reason=reason, log_message=msg.replace("%", "%%"), status_code=status_code)
        self.jupyterhub_message = msg


class LocalSpawner(Spawner):  # type: ignore[misc]  # jupyterhub is untyped
    """Starts each server in an own sandbox; the proxy reaches it by a UNIX socket made outside.

    The server outlives the hub: all that is known of it lies in its run directory, and only the proxy's URL in
    the hub's database. A start that a dying hub left half done is undone at the next look.
    """

    python = Unicode(sys.executable, help="Interpreter of the servers' environment.", config=True)
    state_dir = Unicode(help="Directory for the servers' run directories.", config=True)
    socket_dir = Unicode(
        help="Directory for the servers' sockets; nobody else may look into it.", config=True
    )
    tenant_socket_dir = Unicode(
        help="Directory of the hub's and the service's sockets for servers.", config=True
    )
    homes_dir = Unicode(help="Directory of the home directories.", config=True)
    service_socket = Unicode(help="The platform service's private socket.", config=True)
    service_token = Unicode(help="The spawner's token for the service.", config=True)
    first_uid = Integer(
        300_000, help="Where the hub is root, user number N gets this uid plus N.", config=True
    )
    default_cpu = Float(0.2, help="CPU of a server where nothing is chosen, in cores.", config=True)
    default_ram = Integer(1024, help="Memory of a server where nothing is chosen, in MiB.", config=True)
    network = Unicode("outbound", help="Network of servers: none or outbound.", config=True)
    reclaim_timeout = Float(
        60.0,
        help="Seconds that a start waits while others give back what they borrowed of its tenant's quota; "
        "0.6 of start_timeout at most.",
        config=True,
    )
    stop_grace_s = Float(5.0, help="Seconds between asking a server to end and ending it.", config=True)

    _url = ""
    _starting = False
    _news = ""
    _looked_for_debts = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not LocalSpawner._looked_for_debts and self.state_dir:
            # once in the life of a hub: the one before may have died owing quota of servers that ended
            with contextlib.suppress(RuntimeError):  # no loop runs: no hub
                server.settle_later(Path(self.state_dir), self._service, self.log)
                LocalSpawner._looked_for_debts = True

    @default("default_url")
    def _default_url_lab(self) -> str:
        return "/lab"

    @default("options_form")
    def _options_form_default(self) -> Any:
        return LocalSpawner._form

    @default("apply_user_options")
    def _apply_user_options_default(self) -> Any:
        return _applied_by_start

    @default("env_keep")
    def _env_keep_nothing(self) -> list[str]:
        return []

    @default("poll_interval")
    def _poll_interval_default(self) -> int:
        return 10

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        # shorter than a try in the ledger holds, so that a server that starts late is never confirmed in vain
        return 100

    # ------------------------------------------------------------- where things are

    @property
    def _paths(self) -> Paths:
        return Paths(Path(self.state_dir), Path(self.socket_dir), self.user.name, self.name)

    @property
    def _service(self) -> Service:
        return Service(self.service_socket, self.service_token)

    @property
    def _holding(self) -> Holding:
        return Holding(self._paths.holding_file, self._paths.key, self._service)

    @property
    def _run_dir(self) -> str:
        return str(self._paths.run_dir)

    @property
    def _defaults(self) -> options.Defaults:
        return options.Defaults(self.default_cpu, self.default_ram)

    # ----------------------------------------------------------------------- options

    async def _form(self) -> str:
        account = await self._account()
        last = (self.orm_spawner.user_options if self.orm_spawner else None) or {}
        return options.form(self._defaults, account, last)

    def options_from_form(self, form_data: dict[str, list[Any]]) -> dict[str, Any]:
        """Turn the form's answer into options; refuse what is no option."""
        try:
            return options.from_form(form_data)
        except OptionsError as error:
            raise ServerRefused(_sentence(str(error)), "options", 400) from error

    async def _account(self) -> Account:
        try:
            return await self._service.account(self.user.name)
        except ServiceUnreachable as error:
            self.log.warning("The service does not answer: %s", error)
            raise ServerRefused(_NO_SERVICE, "service-unreachable", 503) from error
        except ServiceRefused as refused:
            raise ServerRefused(_sentence(refused.msg), refused.reason) from refused

    # --------------------------------------------------------------- start, poll, stop

    async def start(self) -> str:
        """Take quota, start the sandbox, wait until the server answers, and return its URL."""
        self._starting = True
        self._news = "Asking for room within the quota"
        try:
            account = await self._account()
            try:
                choice = options.choose(
                    self.user_options, self._defaults, account.tenants, account.default_tenant
                )
                paths = self._paths
            except OptionsError as error:
                raise ServerRefused(_sentence(str(error)), "options", 400) from error
            await self._clear_leftovers()
            try:
                await self._take(choice)
                self._news = "Starting the server"
                await self._launch(paths, choice, account)
                await self._confirm()
            except BaseException:
                await asyncio.shield(self._end(0))
                raise
        finally:
            self._starting = False
        self._url = f"http+unix://{quote(str(paths.socket), safe='')}"
        self._tell_proxy()
        return self._url

    async def _clear_leftovers(self) -> None:
        """End what an earlier start of this server may have left, and what it may still hold."""
        await asyncio.to_thread(sandbox.remove, self._run_dir)
        with contextlib.suppress(ServiceUnreachable):
            await self._holding.give_back()

    async def _take(self, choice: options.Choice) -> None:
        user = self.user.name
        holder = f"{user}'s notebook" + (f" {self.name}" if self.name else "")
        amount = Amount(choice.tenant, choice.cpu, choice.ram)
        try:
            patience = min(self.reclaim_timeout, 0.6 * self.start_timeout)
            waits = partial(self._waits, choice.tenant)
            await self._holding.take(user, holder, amount, patience_s=patience, waits=waits)
        except ServiceRefused as refused:
            raise ServerRefused(_sentence(refused.msg), refused.reason) from refused
        except ServiceUnreachable as error:
            self.log.warning("The service does not answer: %s", error)
            raise ServerRefused(_NO_SERVICE, "service-unreachable", 503) from error

    def _waits(self, tenant: str, seconds: float) -> None:
        self._news = f"Others have borrowed what {tenant} may use; it is taken back for this server, in about {seconds:.0f} s"

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page of a pending start what is waited for; the hub stops asking when the start is over."""
        told = ""
        while True:
            if self._news != told:
                told = self._news
                yield {"progress": 50, "message": told}
            await asyncio.sleep(0.2)

    async def _confirm(self) -> None:
        try:
            await self._holding.keep()
        except (ServiceRefused, ServiceUnreachable) as error:
            raise ServerFailed(
                f"The server's quota could not be confirmed: {error}. Start it again."
            ) from error

    async def _launch(self, paths: Paths, choice: options.Choice, account: Account) -> None:
        root = os.geteuid() == 0
        uid = self.first_uid + account.number if root else None
        self.cpu_limit, self.mem_limit = choice.cpu, choice.ram * 2**20
        who = Who(
            user=self.user.name,
            tenant=choice.tenant,
            token=self.api_token,
            base_url=self.server.base_url,
            home=f"/home/{self.user.name}",
            python=self.python,
            service_socket=str(Path(self.tenant_socket_dir) / "mlp.sock"),
        )
        env = build(self.get_env(), who) | pip_settings(os.environ) | dict(self.environment)
        try:
            home = await asyncio.to_thread(self._prepare, paths, uid)
            spec = server.spec(
                paths,
                who,
                choice,
                env=env,
                uid=uid,
                home_dir=home,
                tenant_socket_dir=self.tenant_socket_dir,
                args=self.get_args(),
                network=self.network,
            )
            await asyncio.to_thread(sandbox.launch, spec, self._run_dir)
        except sandbox.SandboxUnavailable as error:
            raise ServerFailed(_sentence(str(error))) from error
        except OSError as error:
            self.log.exception("No server for %s", self._log_name)
            raise ServerFailed(f"The server could not be started: {error}.") from error
        await self._wait_ready(paths)

    def _prepare(self, paths: Paths, uid: int | None) -> Path:
        server.fresh_log(paths.log_dir)
        home = sandbox.ensure_home(Path(self.homes_dir), self.user.name, uid)
        new = place_samples(home, server.samples(), paths.placed_file, uid)
        if new:
            self.log.info("Placed %s in the home of %s", ", ".join(new), self.user.name)
        return home

    async def _wait_ready(self, paths: Paths) -> None:
        """Return when the server answers; raise ServerFailed with the end of its output when it ended."""
        asking = asyncio.ensure_future(server.answers(paths.socket, f"{self.server.base_url}api"))
        try:
            while not asking.done():
                state = sandbox.inspect(self._run_dir)
                if state.phase not in server.ALIVE:
                    raise ServerFailed(server.why_it_ended(state, paths.log_dir))
                await asyncio.wait([asking], timeout=0.1)
        finally:
            asking.cancel()

    def _tell_proxy(self) -> None:
        # the hub adds port 80 to a socket's URL when it stores it; what is set here goes to the proxy as it is
        self.server.connect_url = self._url + self.server.base_url

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit status; then it holds nothing any more."""
        try:
            run_dir = self._run_dir
        except OptionsError:
            return 0  # a name that no server was ever started for
        state = sandbox.inspect(run_dir)
        if state.phase in server.ALIVE:
            if self._starting:
                return None
            if self._url and self.server is not None:
                self._tell_proxy()
                return None
            self.log.warning("Ending the server of %s: its start was never finished", self._log_name)
            await self._end(0)
            return 1
        if not self._starting and (
            state.phase is not sandbox.SandboxPhase.ABSENT or self._holding.file.exists()
        ):
            if state.exit is not None and not state.exit.stopped:
                self.log.warning(
                    "Server of %s ended: %s", self._log_name, server.why_it_ended(state, self._paths.log_dir)
                )
            await self._end(0)
        return server.exit_status(state)

    async def stop(self, now: bool = False) -> None:
        """End the server: asked first, unless `now`."""
        await self._end(0 if now else self.stop_grace_s)

    async def _end(self, grace_s: float) -> None:
        """End the sandbox and give back what it held; may be repeated."""
        if sandbox.inspect(self._run_dir).phase in server.ALIVE and grace_s:
            sandbox.stop(self._run_dir, grace_s)
            await server.wait_ended(self._run_dir, grace_s + 2)
        await asyncio.to_thread(sandbox.remove, self._run_dir)
        self._paths.socket.unlink(missing_ok=True)
        try:
            await self._holding.give_back()
        except ServiceUnreachable as error:
            # the file that says so stays; given back at the next start, or by `settle`
            self.log.warning("%s still holds quota: the service does not answer: %s", self._log_name, error)
            server.settle_later(Path(self.state_dir), self._service, self.log)

    # -------------------------------------------------------------------- persistence

    def get_state(self) -> dict[str, Any]:
        """Return what a restarted hub must know: the proxy's URL of a server that was started."""
        state: dict[str, Any] = super().get_state()
        if self._url:
            state["url"] = self._url
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over from the hub that ran before."""
        super().load_state(state)
        self._url = state.get("url", "")

    def clear_state(self) -> None:
        """Forget the server."""
        super().clear_state()
        self._url = ""


def _applied_by_start(spawner: LocalSpawner, user_options: dict[str, Any]) -> None:
    """Leave the options to `start`, which checks them against the user's tenants."""


def _sentence(text: str) -> str:
    """Begin with a capital and end with a full stop, as a page shows it; user and tenant names stay as they are."""
    text = text.strip()
    return text if text.endswith((".", "?")) else f"{text}."
