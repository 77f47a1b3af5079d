"""Notebook servers in sandboxes on the hub's machine, with their grants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyterhub.spawner import Spawner
from traitlets import Float, Integer, Unicode, default

from mlp_hub import sandbox
from mlp_hub.isolation import OutOfReach, TenantRoots, tenant_roots
from mlp_language.message import NOTHING, Message, msg
from mlp_spawner import server
from mlp_spawner.environment import Who, build, pip_settings
from mlp_spawner.errors import OptionsError, ServerFailed, ServerRefused, Told, sentence
from mlp_spawner.grant import Grant
from mlp_spawner.homes import place_samples
from mlp_spawner.paths import Paths
from mlp_spawner.shelves import environments, shelves


class SandboxSpawner(Spawner):  # type: ignore[misc]  # jupyterhub is untyped
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
    storage_dir = Unicode(help="Directory of the tree of storage: datasets and models.", config=True)
    isolation_dir = Unicode(
        help="Directory in which the platform notes where tenants' files lie; empty: all in one tree.",
        config=True,
    )
    master_key_file = Unicode(help="File of the key that wraps those of encrypted tenants.", config=True)
    first_uid = Integer(
        300_000, help="Where the hub is root, user number N gets this uid plus N.", config=True
    )
    stop_grace_s = Float(5.0, help="Seconds between asking a server to end and ending it.", config=True)
    processes = Integer(2048, help="Processes and threads of a server.", config=True)
    tmp_mib = Integer(512, help="MiB of /tmp of a server, which is memory.", config=True)

    grant = Grant()
    _url = ""
    _starting = False

    @default("default_url")
    def _default_url_lab(self) -> str:
        return "/lab"

    @default("env_keep")
    def _env_keep_nothing(self) -> list[str]:
        return []

    @default("poll_interval")
    def _poll_interval_default(self) -> int:
        return 10

    @property
    def _paths(self) -> Paths:
        return Paths(Path(self.state_dir), Path(self.socket_dir), self.user.name, self.name)

    @property
    def _run_dir(self) -> str:
        return str(self._paths.run_dir)

    @property
    def how_it_ended(self) -> Message:
        """Message to the user about the end of the last server, in sentences."""
        try:
            return server.noted_end(self._paths.ended_file)
        except OptionsError:
            return NOTHING

    async def start(self) -> str:
        """Start the sandbox, wait until the server answers, and return its URL."""
        self._starting = True
        try:
            paths = self._paths
            await asyncio.to_thread(sandbox.remove, self._run_dir)
            await self._launch(paths)
            paths.ended_file.unlink(missing_ok=True)
            self._url = f"http+unix://{quote(str(paths.socket), safe='')}"
        except OptionsError as error:
            raise ServerRefused(sentence(error.message), "options", 400) from error
        finally:
            self._starting = False
        self._tell_proxy()
        return self._url

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page of a pending start that there is nothing to choose any more."""
        yield {"progress": 50, "message": Told.from_message(msg("Starting the server"))}

    async def _launch(self, paths: Paths) -> None:
        root = os.geteuid() == 0
        uid = self.first_uid + self.grant.number if root else None
        who = Who(
            user=self.user.name,
            base_url=self.server.base_url,
            home=f"/home/{self.user.name}",
            python=self.python,
            service_socket=str(Path(self.tenant_socket_dir) / "mlp.sock"),
        )
        roots = self._roots()
        env = build(self.get_env(), who) | pip_settings(os.environ) | dict(self.environment)
        try:
            home = await asyncio.to_thread(self._prepare, paths, uid)

            def launch() -> None:
                # of the tenant that was granted, so that nothing of another one is seen; held until the sandbox has mounted it
                with roots.using(self.grant.tenant, write=True) as root:
                    spec = server.spec(
                        paths,
                        who,
                        self.grant,
                        env=env,
                        uid=uid,
                        home_dir=home,
                        stored=(*shelves(root, self.user.name, uid), *environments(root, self.grant.tenant)),
                        tenant_socket_dir=self.tenant_socket_dir,
                        args=arguments,
                        processes=self.processes,
                        tmp_mib=self.tmp_mib,
                    )
                    sandbox.launch(spec, self._run_dir)

            arguments = self.get_args()
            await asyncio.to_thread(launch)
        except OutOfReach as away:
            raise ServerFailed(away.message) from away
        except sandbox.SandboxUnavailable as error:
            raise ServerFailed(sentence(str(error))) from error
        except OSError as error:
            self.log.exception("No server for %s", self._log_name)
            raise ServerFailed(msg("The server could not be started: {why}.", why=str(error))) from error
        await self._wait_ready(paths)

    def _roots(self) -> TenantRoots:
        shared = Path(self.storage_dir)
        if not self.isolation_dir:
            return TenantRoots(shared)
        return tenant_roots(shared, Path(self.isolation_dir), Path(self.master_key_file))

    def _prepare(self, paths: Paths, uid: int | None) -> Path:
        server.fresh_log(paths.log_dir)
        home = sandbox.ensure_home(Path(self.homes_dir), self.user.name, uid)
        new = place_samples(home, server.samples(), paths.placed_file, uid, self._reader.language)
        if new:
            self.log.info("Placed %s in the home of %s", ", ".join(new), self.user.name)
        if sandbox.capabilities().mode != "open":  # where there is none the paths inside are nowhere
            sandbox.place_links(home, self.user.name, uid)
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
        """Return None while the server runs, else its exit status; then nothing of it is left."""
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
        if not self._starting and state.phase is not sandbox.SandboxPhase.ABSENT:
            if state.exit is not None and not state.exit.stopped:
                why = server.why_it_ended(state, self._paths.log_dir)
                self.log.warning("Server of %s ended: %s", self._log_name, why)
                with contextlib.suppress(OSError):  # the disk may be full
                    server.note_end(state, self._paths.ended_file)
            await self._end(0)
        return server.exit_status(state)

    async def stop(self, now: bool = False) -> None:
        """End the server: asked first, unless `now`."""
        with contextlib.suppress(OptionsError):  # a name that no server was ever started for
            await self._end(0 if now else self.stop_grace_s)

    async def _end(self, grace_s: float) -> None:
        """End the sandbox; may be repeated."""
        if sandbox.inspect(self._run_dir).phase in server.ALIVE and grace_s:
            sandbox.stop(self._run_dir, grace_s)
            await server.wait_ended(self._run_dir, grace_s + 2)
        await asyncio.to_thread(sandbox.remove, self._run_dir)
        self._paths.socket.unlink(missing_ok=True)

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
