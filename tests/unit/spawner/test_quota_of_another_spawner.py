"""The quota half carries a spawner of another kind: plain processes, against the platform's own ledger."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub, Server
from jupyterhub.spawner import SimpleLocalProcessSpawner

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database
from mlp_spawner.errors import ServerFailed, ServerRefused, ServiceRefused, ServiceUnreachable
from mlp_spawner.quota import debts
from mlp_spawner.quota.held import HeldQuota
from mlp_spawner.quota.mixin import QuotaMixin
from mlp_spawner.quota.service_client import APPLIER, Account, Amount, Room, ServerEnvironment

VISION = ServerEnvironment("u1", "vision", kernel="mlp-env-vision")


class LedgerService:
    """The calls of the spawner, answered by a real ledger in this process; `away` is a service that is down."""

    def __init__(self, db: Database) -> None:
        node = NodeInfo("n1", Resources(4000, 0, 8192), Resources(4000, 0, 8192))
        self.now = 1000.0
        self.db = db
        self.ledger = Ledger(db, lambda: self.now, lambda: [node])
        self.away = False
        self.stopping = ""

    async def account(self, user: str) -> Account:
        self._there()
        red = Room(cpu=2, cpu_free=2, environments=(VISION,))
        return Account(7, ("red", "blue"), "red", {"red": red, "blue": Room(network="none")})

    async def stopped_for(self, user: str) -> tuple[str, bool]:
        return self.stopping, bool(self.stopping)

    async def try_hold(self, key: str, user: str, holder: str, amount: Amount) -> None:
        await self._ask(
            self.ledger.try_(
                api.ResourceRequestTry(
                    id=key, applier=APPLIER, request_type="request", tenant=amount.tenant,
                    cpu=amount.cpu, ram=amount.ram, user=user, holder=holder, environment=amount.environment or None,
                )
            )
        )  # fmt: skip

    async def confirm(self, key: str) -> None:
        await self._ask(self.ledger.confirm(api.ResourceRequestKey(id=key, applier=APPLIER)))

    async def cancel(self, key: str) -> None:
        await self._ask(self.ledger.cancel(api.ResourceRequestKey(id=key, applier=APPLIER)))

    async def release(self, key: str) -> None:
        asked = api.ResourceRequestTry(id=key, applier=APPLIER, request_type="release")
        await self._ask(self.ledger.try_(asked))
        await self.confirm(key)

    async def _ask(self, asked: Awaitable[Any]) -> None:
        try:
            self._there()
            await asked
        except Refused as refused:
            raise ServiceRefused(refused.msg, refused.reason.value, refused.retry_after) from refused
        finally:
            if asyncio.iscoroutine(asked):
                asked.close()

    def _there(self) -> None:
        if self.away:
            raise ServiceUnreachable("it is down")

    def held(self, tenant: str = "red") -> Resources:
        return self.db.read_now(lambda tx: tx.ledger.in_use(tenant, self.now))

    def phase(self, key: str = "ann/") -> str | None:
        row = self.db.read_now(lambda tx: tx.ledger.get(APPLIER, key))
        return None if row is None else row.phase.value


SERVICE: LedgerService


class ProcessSpawner(QuotaMixin, SimpleLocalProcessSpawner):
    """A server is a process that sleeps."""

    @property
    def _service(self) -> Any:
        return SERVICE

    def get_args(self) -> list[str]:
        return []


class HubStub:
    """What a hub does with its spawners: makes them of its database, starts, looks, stops, keeps their state."""

    def __init__(self, home: Path) -> None:
        self.db = orm.new_session_factory("sqlite:///:memory:")()
        self.home = home
        self.made: list[ProcessSpawner] = []
        self.orm_user = orm.User(name="ann")
        self.db.add(self.orm_user)
        self.row = orm.Spawner(user=self.orm_user, name="", state={})
        self.db.add(self.row)
        self.db.commit()

    def spawner(self) -> ProcessSpawner:
        """Make the spawner anew, as a hub does that has started."""
        user = SimpleNamespace(
            name="ann", url="/user/ann/", settings={}, escaped_name="ann", id=1, orm_user=self.orm_user
        )
        made = ProcessSpawner(
            user=user, db=self.db, orm_spawner=self.row, hub=Hub(), oauth_client_id="x",
            cmd=[sys.executable, "-c", "import time; time.sleep(600)"], interrupt_timeout=1, term_timeout=1, kill_timeout=1,
            home_dir=str(self.home),
        )  # fmt: skip
        self.made.append(made)
        made.load_state(self.row.state or {})
        return made

    async def spawn(self, **options: Any) -> ProcessSpawner:
        """Start a server, in the hub's order of things."""
        spawner = self.spawner()
        place = orm.Server(base_url="/user/ann/")
        self.db.add(place)
        self.db.commit()
        spawner.server = Server(orm_server=place)
        spawner.user_options = options
        spawner.clear_state()
        spawner.api_token = "secret"
        self.db.commit()
        try:
            await spawner.start()
        except BaseException:
            await self.stop(spawner)
            raise
        self.row.state = spawner.get_state()
        self.db.commit()
        return spawner

    async def stop(self, spawner: ProcessSpawner) -> None:
        """Stop a server, in the hub's order of things."""
        if await spawner.poll() is None:
            await spawner.stop()
        self.row.server = None
        spawner.clear_state()
        self.row.state = spawner.get_state()
        self.db.commit()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LedgerService]:
    global SERVICE  # noqa: PLW0603 - a spawner is made by the hub, which hands nothing on to it
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    SERVICE = LedgerService(db)
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red", Quota(cpu=2000, ram=4096)), 0)
        tx.tenants.insert(Tenant("blue", Quota(cpu=2000, ram=4096)), 0)
    yield SERVICE
    db.close()


@pytest.fixture
def hub(tmp_path: Path, service: LedgerService, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStub]:
    monkeypatch.setattr(HeldQuota, "_looked_for_debts", True)
    monkeypatch.setattr(debts, "settle_later", lambda *_: None)
    made = HubStub(tmp_path)
    yield made
    for spawner in made.made:
        if spawner.proc is not None:
            spawner.proc.kill()
            spawner.proc.wait()
    made.db.close()
    made.db.bind.dispose()


async def test_a_process_takes_its_tenants_quota_and_gives_it_back(
    hub: HubStub, service: LedgerService
) -> None:
    spawner = await hub.spawn(tenant="blue", cpu=1.5, ram=512)
    assert (service.phase(), service.held("blue")) == ("confirmed", Resources(1500, 0, 512))
    assert await spawner.poll() is None
    env = Path(f"/proc/{spawner.pid}/environ").read_text().split("\0")
    assert {"MLP_TENANT=blue", "MLP_USER=ann", "MLP_TOKEN=secret", "CPU_LIMIT=1.5"} <= set(env)
    assert (spawner.grant.number, spawner.grant.network, spawner.mem_limit) == (7, "none", 512 * 2**20)
    await hub.stop(spawner)
    assert service.held("blue").is_zero
    assert await spawner.poll() is not None


async def test_the_form_offers_the_tenants_and_their_room(hub: HubStub) -> None:
    spawner = hub.spawner()
    form = await spawner.get_options_form()
    assert '<option value="red" selected>red: 2 of 2 cpu free' in form
    assert spawner.options_from_form({"tenant": ["blue"], "cpu": ["0.5"]}) == {
        "tenant": "blue",
        "cpu": 0.5,
    }
    with pytest.raises(ServerRefused, match="have no GPUs"):
        spawner.options_from_form({"gpu": ["1"]})


@pytest.mark.parametrize(
    ("options", "reason", "says"),
    [
        ({"cpu": 3.0}, "ExceedsMaxQuota", "cpu"),
        ({"tenant": "green"}, "options", "you are not in a team 'green'"),
    ],
)
async def test_a_refused_server_starts_no_process_and_holds_nothing(
    hub: HubStub, service: LedgerService, options: dict[str, Any], reason: str, says: str
) -> None:
    with pytest.raises(ServerRefused, match=says) as caught:
        await hub.spawn(**options)
    assert caught.value.reason == reason
    assert hub.row.state["quota"] == ""
    assert hub.row.state.get("pid") is None
    assert service.held().is_zero


async def test_an_environment_goes_from_the_service_to_the_grant_and_into_the_ledger(
    hub: HubStub, service: LedgerService
) -> None:
    ready = Environment("u1", "red", "vision", "ann", EnvironmentPhase.READY, "", 0)
    with service.db.begin() as tx:
        tx.environments.put(ready)
    spawner = await hub.spawn(environment="vision")
    assert (spawner.grant.environment, spawner.grant.kernel, spawner.grant.image) == (
        "vision",
        "mlp-env-vision",
        "",
    )
    assert spawner.environment_name == "vision"
    (row,) = service.db.read_now(lambda tx: tx.ledger.in_environment("u1", "red", service.now))
    assert (row.user, row.phase) == ("ann", "confirmed")
    await hub.stop(spawner)
    assert service.db.read_now(lambda tx: tx.ledger.in_environment("u1", "red", service.now)) == []
    plain = await hub.spawn()
    assert plain.grant.environment == plain.environment_name == ""
    await hub.stop(plain)


@pytest.mark.parametrize("phase", [EnvironmentPhase.DELETING, None], ids=["being deleted", "gone"])
async def test_one_that_is_deleted_while_the_server_is_asked_for_is_refused_and_nothing_is_held(
    hub: HubStub, service: LedgerService, phase: EnvironmentPhase | None
) -> None:
    if phase is not None:
        with service.db.begin() as tx:
            tx.environments.put(Environment("u1", "red", "vision", "ann", phase, "", 0))
    with pytest.raises(ServerRefused, match="is not a ready environment of team red; choose again") as caught:
        await hub.spawn(environment="vision")
    assert caught.value.reason == "NotFound"
    assert hub.row.state.get("pid") is None
    assert service.held().is_zero


async def test_without_the_service_no_process_is_started(hub: HubStub, service: LedgerService) -> None:
    service.away = True
    with pytest.raises(ServerRefused, match="does not answer") as caught:
        await hub.spawn()
    assert caught.value.status_code == 503


async def test_a_start_that_fails_gives_back_at_once(
    hub: HubStub, service: LedgerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimpleLocalProcessSpawner, "get_env", lambda _: {"A": "\0"})
    with pytest.raises(ValueError, match="null"):
        await hub.spawn()
    assert (service.phase(), service.held().is_zero) == ("cancelled", True)


async def test_a_server_whose_quota_expired_while_it_started_is_ended(
    hub: HubStub, service: LedgerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = service.confirm

    async def late(key: str) -> None:
        service.now += 1000
        await real(key)

    monkeypatch.setattr(service, "confirm", late)
    with pytest.raises(ServerFailed, match="expired before it was confirmed"):
        await hub.spawn()
    assert hub.row.state.get("pid") is None


async def test_a_process_that_dies_by_itself_gives_back_at_the_next_look(
    hub: HubStub, service: LedgerService
) -> None:
    spawner = await hub.spawn()
    os.kill(spawner.pid, signal.SIGKILL)
    spawner.proc.wait()
    assert await spawner.poll() is not None
    assert service.held().is_zero


async def test_a_hub_that_dies_in_a_start_ends_what_it_started_and_gives_back(
    hub: HubStub, service: LedgerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = asyncio.Event()

    async def for_ever(self: Any) -> None:
        self._note()  # the other half may note where its process is
        started.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(QuotaMixin, "_confirm", for_ever)
    starting = asyncio.ensure_future(hub.spawn())
    await started.wait()
    assert (service.phase(), hub.row.state["quota"]) == ("tried", "tried")
    # another hub finds what the database says, and nothing else
    pid = hub.row.state["pid"]
    after = hub.spawner()
    assert await after.poll() == 1
    assert service.held().is_zero
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting


async def test_a_restarted_hub_gives_back_what_a_server_held_that_ended_meanwhile(
    hub: HubStub, service: LedgerService
) -> None:
    spawner = await hub.spawn()
    os.kill(spawner.pid, signal.SIGKILL)
    spawner.proc.wait()
    after = hub.spawner()
    assert service.phase() == "confirmed"
    assert await after.poll() is not None
    assert service.held().is_zero


async def test_a_server_of_a_hub_that_noted_nothing_of_quota_gives_it_back_too(
    hub: HubStub, service: LedgerService
) -> None:
    spawner = await hub.spawn()
    hub.row.state = {"pid": spawner.pid}
    after = hub.spawner()
    assert await after.poll() is None
    await hub.stop(after)
    assert service.held().is_zero


async def test_a_release_missed_while_the_service_is_away_is_made_up_once_it_is_back(
    hub: HubStub, service: LedgerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debts, "LOOK_EVERY_S", 0)
    spawner = await hub.spawn()
    service.away = True
    await hub.stop(spawner)
    assert hub.row.state["quota"] == "confirmed"
    service.away = False
    await debts.settle(hub.db, service, logging.getLogger("test"))
    assert hub.row.state["quota"] == ""
    assert service.held().is_zero


async def test_holdings_of_a_starting_server_are_not_released(
    hub: HubStub, service: LedgerService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debts, "LOOK_EVERY_S", 0)
    spawner = await hub.spawn()
    await debts.settle(hub.db, service, logging.getLogger("test"))
    assert service.phase() == "confirmed"
    await hub.stop(spawner)


async def test_why_the_platform_stopped_a_server_is_remembered_until_the_next_one_runs(
    hub: HubStub, service: LedgerService
) -> None:
    spawner = await hub.spawn()
    service.stopping = "the disk had 900 MiB left"
    await hub.stop(spawner)
    assert (
        str(hub.spawner().how_it_ended)
        == "The notebook server was stopped by the platform: the disk had 900 MiB left."
    )
    service.stopping = ""
    await spawner.stop()
    assert spawner.how_it_ended, "a stop that is made again is still the first one's"
    spawner = await hub.spawn()
    assert not hub.spawner().how_it_ended
    await hub.stop(spawner)
