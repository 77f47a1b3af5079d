"""Requests that are workloads, in the ledger: they hold nothing until the scheduler admits them, and they end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import PRIORITIES
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.workload.workload import KINDS, SERVER, WorkloadKind
from mlp_hub.service.admission.snapshot import workload_of
from mlp_hub.service.quota.ledger import Ledger
from mlp_language.message import Viewer, msg


class Scheduler:
    """Stands for the scheduler: makes a pending request hold on node n1, lets it wait, or says that it never can."""

    def __init__(self, bench) -> None:
        self.bench = bench
        self.asked: list[str] = []
        self.answer: Refused | None = Refused(Reason.WAITING_FOR_QUOTA, msg("wait"), retry_after=7.0)

    async def decided(self, request: ResourceRequest) -> ResourceRequest:
        self.asked.append(request.uid)
        if self.answer is not None:
            raise self.answer
        held = replace(request, phase=RequestPhase.TRIED, node="n1", expires_at=self.bench.now + 60)
        with self.bench.db.begin() as tx:
            tx.ledger.put(held)
        return held


@pytest.fixture
def lent(bench, make_node):
    """Blue's two cores of a cohort of four are lent to red, who holds all; `take` tries for a notebook server."""
    bench.nodes[:] = [make_node(cpu=8000, ram=65536)]
    with bench.db.begin() as tx:
        tx.tenants.update(Tenant("red", Quota(cpu=2000), cohort="main"))
        tx.tenants.insert(Tenant("blue", Quota(cpu=2000), cohort="main"), 0)
    bench.held("lent", cpu=4)
    bench.core = Scheduler(bench)
    bench.ledger = Ledger(
        bench.db, lambda: bench.now, lambda: bench.nodes, ttl_s=60, scheduler=bench.core, place_s=30
    )

    def take(cpu: float = 1, request_id: str = "bob/", tenant: str = "blue", applier: str = "sp", **more):
        one = api.ResourceRequestTry(
            id=request_id,
            applier=applier,
            request_type="request",
            tenant=tenant,
            cpu=cpu,
            user="bob",
            **more,
        )
        return asyncio.run(bench.ledger.try_(one))

    bench.take = take
    return bench


def refused(bench, **which) -> Refused:
    with pytest.raises(Refused) as caught:
        bench.take(**which)
    return caught.value


def pending(bench) -> list[ResourceRequest]:
    return bench.db.read_now(lambda tx: tx.ledger.pending(bench.now))


def test_a_pending_request_holds_nothing_until_it_is_admitted(lent) -> None:
    assert refused(lent) is lent.core.answer
    assert lent.core.asked == ["sp/bob/"]
    assert (lent.phase("bob/", "sp"), lent.in_use("blue")) == ("pending", Resources())
    lent.core.answer = None
    assert lent.take().phase is RequestPhase.TRIED
    assert lent.in_use("blue").cpu == 1000
    assert lent.take().phase is RequestPhase.TRIED  # nobody is asked about what holds
    assert lent.core.asked == ["sp/bob/"] * 2
    lent.confirm("bob/", "sp")
    assert lent.phase("bob/", "sp") == "confirmed"


def test_a_pending_request_keeps_its_age_and_expires_unless_it_is_tried_again(lent) -> None:
    refused(lent)
    begun = lent.now
    lent.now += 29
    refused(lent)
    lent.now += 29
    assert [r.created_at for r in pending(lent)] == [begun]
    lent.now += 1
    assert pending(lent) == []
    asyncio.run(lent.ledger.expire_requests())
    assert lent.phase("bob/", "sp") == "expired"


def test_a_request_that_can_never_be_admitted_keeps_no_place(lent) -> None:
    lent.core.answer = Refused(Reason.EXCEEDS_MAX_QUOTA, msg("never"))
    assert refused(lent) is lent.core.answer
    assert lent.phase("bob/", "sp") == "cancelled"


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ({"cpu": 5}, Reason.EXCEEDS_MAX_QUOTA),
        ({"tenant": "nobody"}, Reason.NOT_FOUND),
        ({"gpu": 1, "gpu_kind": "none"}, Reason.EXCEEDS_MAX_QUOTA),
    ],
)
def test_a_request_that_can_never_be_granted_is_refused_and_does_not_wait(lent, which, reason) -> None:
    refused(lent)
    assert refused(lent, **which).reason is reason
    assert lent.core.asked == ["sp/bob/"]
    assert lent.phase("bob/", "sp") == "cancelled"


@pytest.mark.parametrize(
    "which",
    [
        pytest.param({"rom": 2**40}, id="storage, which is given back by nobody"),
        pytest.param({"node": "n1"}, id="a node of its own choice"),
        pytest.param({"applier": "am", "request_id": "a"}, id="of an applier without a kind"),
        pytest.param({"cpu": 0}, id="no room on any node"),
    ],
)
def test_a_request_that_is_not_a_workload_is_tried_at_once(lent, which) -> None:
    with lent.db.begin() as tx:
        tx.tenants.update(Tenant("blue", Quota(cpu=2000, rom=2**41), cohort="main"))
    if which.get("cpu") == 0:
        assert lent.take(**which).phase is RequestPhase.TRIED
    else:
        assert refused(lent, **which).reason is Reason.WAITING_FOR_QUOTA
    assert lent.core.asked == []
    assert pending(lent) == []


def test_a_pending_request_for_another_amount_starts_again(lent) -> None:
    refused(lent, cpu=1)
    lent.now += 5
    refused(lent, cpu=2)
    (row,) = pending(lent)
    assert (row.amount.cpu, row.created_at) == (2000, lent.now)


def test_a_pending_request_is_cancelled_not_released_and_not_confirmed(lent) -> None:
    refused(lent)
    with pytest.raises(Refused, match="is pending and cannot be confirmed"):
        lent.confirm("bob/", "sp")
    with pytest.raises(Refused, match="is pending and cannot be released; cancel it"):
        lent.try_("bob/", applier="sp", tenant="blue", release=True)
    lent.cancel("bob/", "sp")
    lent.cancel("bob/", "sp")


def request(applier: str = "sp") -> ResourceRequest:
    return ResourceRequest(
        "bob/", applier, "blue", Resources(cpu=1000), RequestPhase.PENDING, 5.0, user="bob"
    )


def test_others_learn_of_a_pending_server_that_there_is_one_and_not_whose() -> None:
    said = msg("Stopped for {job}: {right}.", job=workload_of(request()).ref, right=msg("so"))
    shown = {
        "red, which shares with it": Viewer(frozenset({"red"}), frozenset({"blue"})),
        "red": Viewer(frozenset({"red"})),
        "blue": Viewer(frozenset({"blue"})),
    }
    assert {whose: str(viewer.hidden(said)) for whose, viewer in shown.items()} == {
        "red, which shares with it": "Stopped for a notebook server of team blue: so.",
        "red": "Stopped for a notebook server of another team: so.",
        "blue": "Stopped for the notebook server of bob: so.",
    }


def test_properties_of_a_workload_kind_are_a_row_of_the_table(monkeypatch) -> None:
    server = workload_of(request())
    assert (server.kind, server.name, server.uid) == (SERVER.name, SERVER.title, "sp/bob/")
    assert (server.preemptible, server.gives_way, server.goes_first, server.queued_at) == (
        False,
        False,
        True,
        5.0,
    )
    app = WorkloadKind(
        "app", "am", "app", priority="high", preemptible=True, gives_way=True, goes_first=False
    )
    monkeypatch.setitem(KINDS, "am", app)
    one = workload_of(request("am"))
    assert (
        one.kind,
        one.uid,
        one.preemptible,
        one.gives_way,
        one.goes_first,
        one.queued_at,
        one.priority,
    ) == (
        "app",
        "am/bob/",
        True,
        True,
        False,
        5.0,
        PRIORITIES["high"],
    )
