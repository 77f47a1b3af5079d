"""Quota around the KubeSpawner of an existing hub: its profiles, hooks and names stay, and its pods are charged to a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub
from kubernetes_asyncio.client import ApiClient
from kubespawner import KubeSpawner
from traitlets.config import Config

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database
from mlp_spawner.attached.pod_quota import PodQuota
from mlp_spawner.errors import ServerFailed, ServerRefused, ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.held import HeldQuota
from mlp_spawner.quota.service_client import APPLIER, Account, Amount, Room

LARGE = {
    "display_name": "Large",
    "slug": "large",
    "kubespawner_override": {"cpu_limit": 3, "mem_limit": "1G"},
}
SMALL = {
    "display_name": "Small",
    "slug": "small",
    "kubespawner_override": {"cpu_limit": 1, "mem_limit": "1G"},
}


class LedgerCalls:
    """The calls of the spawner, answered by a real ledger in this process."""

    def __init__(self, db: Database) -> None:
        node = NodeInfo("n1", Resources(8000, 0, 8192), Resources(8000, 0, 8192))
        self.db = db
        self.ledger = Ledger(db, lambda: 1000.0, lambda: [node])
        self.away = False

    async def account(self, user: str) -> Account:
        if self.away:
            raise ServiceUnreachable("it is down")
        return Account(7, ("red",), "red", {"red": Room()})

    async def stopped_for(self, user: str) -> tuple[str, bool]:
        return "", False

    async def try_hold(self, key: str, user: str, holder: str, amount: Amount) -> None:
        asked = api.ResourceRequestTry(
            id=key, applier=APPLIER, request_type="request", tenant=amount.tenant,
            cpu=amount.cpu, ram=amount.ram, user=user, holder=holder,
        )  # fmt: skip
        try:
            await self.ledger.try_(asked)
        except Refused as refused:
            raise ServiceRefused(refused.msg, refused.reason.value) from refused

    async def confirm(self, key: str) -> None:
        await self.ledger.confirm(api.ResourceRequestKey(id=key, applier=APPLIER))

    async def cancel(self, key: str) -> None:
        await self.ledger.cancel(api.ResourceRequestKey(id=key, applier=APPLIER))

    async def release(self, key: str) -> None:
        await self.ledger.try_(api.ResourceRequestTry(id=key, applier=APPLIER, request_type="release"))
        await self.confirm(key)

    def held(self) -> Resources:
        return self.db.read_now(lambda tx: tx.ledger.in_use("red", 1000.0))


CALLS: LedgerCalls
SESSIONS: list[Any] = []


class ClusterlessSpawner(KubeSpawner):
    """A KubeSpawner whose cluster takes each pod and ends it when asked; the rest is KubeSpawner's own."""

    asked: list[Any]
    fails = False

    async def start(self) -> Any:
        await self.load_user_options()
        pod = await self.get_pod_manifest()
        if self.modify_pod_hook:
            pod = await self.modify_pod_hook(self, pod)
        self.asked.append(pod)
        if self.fails:
            raise TimeoutError("no node")
        return "http://10.0.0.1:8888"

    async def stop(self, now: bool = False) -> None:
        self.asked.clear()

    async def poll(self) -> int | None:
        return None if self.asked else 1


class Attached(PodQuota, ClusterlessSpawner):
    """The class that `attach` makes."""

    @property
    def _service(self) -> Any:
        return CALLS


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubespawner.spawner.load_config", lambda **_: None)
    # its way of writing objects alone, without a connection
    client = SimpleNamespace(api_client=ApiClient.__new__(ApiClient))
    monkeypatch.setattr("kubespawner.spawner.shared_client", lambda _: client)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LedgerCalls]:
    global CALLS  # noqa: PLW0603 - a spawner is made by the hub, which hands nothing on to it
    monkeypatch.setattr(HeldQuota, "_looked_for_debts", True)
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red", Quota(cpu=2000, ram=4096)), 0)
    CALLS = LedgerCalls(db)
    yield CALLS
    while SESSIONS:
        session = SESSIONS.pop()
        session.close()
        session.bind.dispose()
    db.close()


def spawner(user: str = "ann", options: dict[str, Any] | None = None, **traits: Any) -> Attached:
    session = orm.new_session_factory("sqlite:///:memory:")()
    SESSIONS.append(session)
    person = orm.User(name=user)
    session.add(person)
    row = orm.Spawner(user=person, name="", state={})
    session.add(row)
    session.commit()
    known = SimpleNamespace(
        name=user, url=f"/user/{user}/", settings={}, escaped_name=user, id=1, orm_user=person
    )
    made = Attached(
        config=Config({"KubeSpawner": {"profile_list": [SMALL, LARGE], "http_timeout": 7}}),
        user=known, db=session, orm_spawner=row, hub=Hub(), oauth_client_id="x", _mock=True,
        mlp_installation="site", mlp_api_url="http://service/api", **traits,
    )  # fmt: skip
    made.asked = []
    made.api_token = "secret"
    made.user_options = options or {}
    return made


async def test_the_profile_of_the_site_decides_what_is_charged(calls: LedgerCalls) -> None:
    made = spawner(options={"profile": "small"})
    assert await made.start() == "http://10.0.0.1:8888"
    assert calls.held() == Resources(1000, 0, 1024)  # 1G in KubeSpawner's words is 1 GiB
    (pod,) = made.asked
    env = {one.name: one.value for one in pod.spec.containers[0].env}
    assert (env["MLP_TENANT"], env["MLP_USER"], env["MLP_TOKEN"]) == ("red", "ann", "secret")
    assert env["MLP_API_URL"] == "http://service/api"
    assert pod.metadata.labels["mlp-hub/charged"] == "site"
    assert pod.metadata.labels["component"] == "singleuser-server"
    await made.stop()
    assert calls.held().is_zero


async def test_a_profile_over_the_quota_is_refused_and_no_pod_is_asked_for(calls: LedgerCalls) -> None:
    made = spawner(options={"profile": "large"})
    with pytest.raises(ServerRefused, match="cpu") as caught:
        await made.start()
    assert caught.value.reason == "ExceedsMaxQuota"
    assert made.asked == []
    assert calls.held().is_zero


async def test_refusals_do_not_end_a_hub_that_counts_them_as_its_failures(
    calls: LedgerCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlp_spawner.attached.pod_quota.REFUSALS_COUNT", True)
    made = spawner(options={"profile": "large"})
    made.handler = SimpleNamespace(settings={"failure_count": 3})
    made.language_of = lambda _: "en"
    with pytest.raises(ServerRefused):
        await made.start()
    assert made.handler.settings == {"failure_count": 2}, "the hub adds one"
    assert calls.held().is_zero


async def test_the_hook_of_the_site_runs_first_and_what_it_adds_is_charged(calls: LedgerCalls) -> None:
    seen = []

    async def hook(of: Any, pod: Any) -> Any:
        seen.append(of)
        pod.spec.containers[0].resources.limits["cpu"] = 1.5
        pod.metadata.labels["site"] = "1"
        return pod

    made = spawner(options={"profile": "small"}, modify_pod_hook=hook)
    await made.start()
    assert calls.held().cpu == 1500
    assert made.asked[0].metadata.labels["site"] == "1"
    assert seen == [made]
    assert made.modify_pod_hook is hook
    # and the same at the next start
    await made.stop()
    await made.start()
    assert (len(seen), calls.held().cpu) == (2, 1500)


async def test_a_start_that_fails_later_gives_back_at_once(calls: LedgerCalls) -> None:
    made = spawner(options={"profile": "small"})
    made.fails = True
    with pytest.raises(TimeoutError):
        await made.start()
    assert calls.held().is_zero
    assert made.modify_pod_hook is None


async def test_a_pod_that_was_made_another_way_does_not_run_without_quota(
    calls: LedgerCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def past_the_hook(self: Any) -> str:
        self.asked.append("pod")
        return "http://10.0.0.1:8888"

    monkeypatch.setattr(ClusterlessSpawner, "start", past_the_hook)
    made = spawner()
    with pytest.raises(ServerFailed, match="without its quota"):
        await made.start()
    assert made.asked == []
    assert calls.held().is_zero


async def test_without_the_service_no_server_starts(calls: LedgerCalls) -> None:
    calls.away = True
    made = spawner()
    with pytest.raises(ServerRefused, match="does not answer"):
        await made.start()
    assert made.asked == []


async def test_a_profile_can_name_the_team_of_which_its_user_must_be_a_member(calls: LedgerCalls) -> None:
    blue = {"display_name": "Blue", "slug": "blue", "kubespawner_override": {"mlp_team": "blue"}}
    made = spawner(options={"profile": "blue"})
    made.profile_list = [blue]
    with pytest.raises(ServerRefused, match=r"You are not in the team blue, .*; you are in: red"):
        await made.start()
    assert calls.held().is_zero


async def test_a_restarted_hub_gives_back_what_a_server_held_that_ended_meanwhile(calls: LedgerCalls) -> None:
    made = spawner(options={"profile": "small"})
    await made.start()
    state = made.get_state()
    after = spawner()
    after.load_state(state)
    assert calls.held().cpu == 1000
    assert await after.poll() == 1
    assert calls.held().is_zero


async def test_two_starts_at_once_are_charged_each(calls: LedgerCalls) -> None:
    both = [spawner("ann", {"profile": "small"}), spawner("bob", {"profile": "small"})]
    await asyncio.gather(*(one.start() for one in both))
    assert calls.held().cpu == 2000
    third = spawner("cy", {"profile": "small"})
    with pytest.raises(ServerRefused):
        await third.start()


def test_the_forms_and_options_of_the_site_stay_as_they_are() -> None:
    theirs = KubeSpawner(
        _mock=True, user=SimpleNamespace(name="ann", url="/", settings={}, escaped_name="a", id=1)
    )
    for name in ("options_form", "options_from_form", "start_timeout", "http_timeout", "apply_user_options"):
        mine, other = getattr(Attached, name), getattr(type(theirs), name)
        assert mine is other or mine.default_value == other.default_value, name
