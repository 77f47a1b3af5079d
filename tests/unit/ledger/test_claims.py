"""Claims in the ledger: they hold nothing, what is set aside for them is nobody else's, and they end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from admissions import admit_one
from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenant import Tenant
from mlp_hub.scheduler.model import Verdict
from mlp_hub.service.claims import Outlook, named_for, waiting_of_claim
from mlp_hub.service.ledger import Ledger


class Core:
    """Stands for the scheduling core: sets a core of node n1 aside, or says that nobody can be stopped."""

    def __init__(self, bench) -> None:
        self.bench = bench
        self.asked: list[str] = []
        self.makes = True

    async def outlook(self, uid: str) -> Outlook | None:
        self.asked.append(uid)
        if not self.makes:
            return None
        with self.bench.db.begin() as tx:
            (claim,) = [c for c in tx.ledger.claims(self.bench.now) if f"{c.applier}/{c.id}" == uid]
            tx.ledger.put(replace(claim, shares=(("n1", claim.amount),)))
        return Outlook(7.0, 7.0, made=True)


@pytest.fixture
def lent(bench, make_node):
    """Blue's two cores of a cohort of four are lent to red, who holds all; `take` tries for a notebook server."""
    bench.nodes[:] = [make_node(cpu=8000, ram=65536)]
    with bench.db.begin() as tx:
        tx.tenants.update(Tenant("red", Quota(cpu=2000), cohort="main"))
        tx.tenants.insert(Tenant("blue", Quota(cpu=2000), cohort="main"), 0)
    bench.held("lent", cpu=4)
    bench.core = Core(bench)
    bench.ledger = Ledger(
        bench.db, lambda: bench.now, lambda: bench.nodes, ttl_s=60, reclaimer=bench.core, claim_s=30
    )

    def take(cpu: float = 1, request_id: str = "bob/", tenant: str = "blue", **more):
        one = api.ResourceRequestTry(
            id=request_id,
            applier="sp",
            request_type="request",
            tenant=tenant,
            cpu=cpu,
            user="bob",
            **more,
        )
        return asyncio.run(bench.ledger.try_(one))

    bench.take = take
    return bench


def gives_back(bench, cpu: int) -> None:
    with bench.db.begin() as tx:
        row = tx.ledger.get("jm", "lent")
        tx.ledger.put(replace(row, amount=Resources(cpu=row.amount.cpu - cpu)))


def refused(bench, **which) -> Refused:
    with pytest.raises(Refused) as caught:
        bench.take(**which)
    return caught.value


def test_a_claim_holds_nothing_and_becomes_a_try_when_there_is_room(lent) -> None:
    first = refused(lent)
    assert (first.reason, first.retry_after) == (Reason.WAITING_FOR_PREEMPTED, 7.0)
    assert lent.core.asked == ["sp/bob/"]
    assert lent.phase("bob/", "sp") == "claimed"
    assert lent.in_use("blue") == Resources()
    gives_back(lent, 1000)
    assert lent.take().phase is RequestPhase.TRIED
    assert lent.in_use("blue").cpu == 1000
    lent.confirm("bob/", "sp")
    assert lent.phase("bob/", "sp") == "confirmed"


def test_what_is_set_aside_is_refused_to_everybody_else(lent) -> None:
    refused(lent)
    gives_back(lent, 1000)
    with pytest.raises(Refused):
        lent.try_("other", cpu=1)
    with pytest.raises(Refused):
        lent.try_("ann/", applier="sp", cpu=0.5)
    core = Resources(cpu=1000)
    with lent.db.begin() as tx:
        assert not admit_one(tx, lent.nodes, "j.0", "red", core, lent.now, "n1")
    lent.cancel("bob/", "sp")
    assert lent.phase("bob/", "sp") == "cancelled"
    lent.held("other", cpu=1)


def test_room_on_nodes_is_set_aside_too(lent, make_node) -> None:
    lent.nodes[:] = [make_node(cpu=1000, ram=65536)]
    refused(lent)
    gives_back(lent, 2000)
    with pytest.raises(Refused, match="no node has room"):
        lent.try_("ann/", applier="sp", cpu=0.5)
    assert lent.take().node == "n1"


def test_a_claim_expires_unless_it_is_tried_again(lent) -> None:
    refused(lent)
    lent.now += 29
    refused(lent)
    lent.now += 29
    assert len(lent.db.read_now(lambda tx: tx.ledger.claims(lent.now))) == 1
    lent.now += 1
    gives_back(lent, 1000)
    lent.held("other", cpu=1)  # nothing is set aside any more, swept or not
    asyncio.run(lent.ledger.sweep())
    assert lent.phase("bob/", "sp") == "expired"


def test_where_nobody_can_be_stopped_the_refusal_is_the_plain_one_and_no_claim_stays(lent) -> None:
    lent.core.makes = False
    plain = refused(lent)
    assert (plain.reason, plain.retry_after) == (Reason.WAITING_FOR_QUOTA, None)
    assert lent.phase("bob/", "sp") == "cancelled"


@pytest.mark.parametrize(
    ("which", "why"),
    [
        ({"cpu": 3}, "beyond nominal"),
        ({"cpu": 1, "rom": 2**40}, "storage is given back by nobody"),
        ({"cpu": 1, "node": "n1"}, "a node of its own choice"),
        ({"cpu": 1, "tenant": "green"}, "no quota of its own"),
    ],
)
def test_what_may_not_take_anything_back_makes_no_claim(lent, which, why) -> None:
    with lent.db.begin() as tx:
        tx.tenants.insert(Tenant("green", cohort="main"), 0)
        if why.startswith("storage"):
            tx.tenants.update(Tenant("blue", Quota(cpu=2000, rom=2**41), cohort="main"))
    if why.startswith("no quota"):
        lent.nodes[:] = []
    assert refused(lent, **which).reason is not Reason.WAITING_FOR_PREEMPTED, why
    assert lent.core.asked == []
    assert lent.phase("bob/", "sp") is None


def test_jobs_and_other_appliers_make_no_claims(lent) -> None:
    one = api.ResourceRequestTry(id="a", applier="am", request_type="request", tenant="blue", cpu=1)
    with pytest.raises(Refused) as caught:
        asyncio.run(lent.ledger.try_(one))
    assert caught.value.reason is Reason.WAITING_FOR_QUOTA
    assert lent.phase("a", "am") is None


def test_a_claim_over_another_amount_starts_anew(lent) -> None:
    refused(lent, cpu=1)
    lent.core.makes = False
    refused(lent, cpu=2)
    assert lent.core.asked == ["sp/bob/"] * 2
    assert lent.phase("bob/", "sp") == "cancelled"


def test_a_claim_that_may_be_none_any_more_ends_with_its_refusal(lent) -> None:
    refused(lent, cpu=2)
    with lent.db.begin() as tx:
        tx.tenants.update(Tenant("blue", Quota(cpu=1000), cohort="main"))
    assert refused(lent, cpu=2).reason is not Reason.WAITING_FOR_PREEMPTED
    assert lent.phase("bob/", "sp") == "cancelled"


def test_a_claim_is_cancelled_not_released_and_not_confirmed(lent) -> None:
    refused(lent)
    with pytest.raises(Refused, match="is claimed and cannot be confirmed"):
        lent.confirm("bob/", "sp")
    with pytest.raises(Refused, match="is claimed and cannot be released; cancel it"):
        lent.try_("bob/", applier="sp", tenant="blue", release=True)
    lent.cancel("bob/", "sp")
    lent.cancel("bob/", "sp")


def test_others_learn_of_a_claim_that_there_is_a_server_and_not_whose() -> None:
    claim = ResourceRequest(
        "bob/", "sp", "blue", Resources(cpu=1000), RequestPhase.CLAIMED, 0, user="bob", holder="bob's lab"
    )
    text = "stopped to make room for notebook of bob in blue: blue takes back what red had borrowed"
    said = Verdict(Reason.WAITING_FOR_RESOURCES, text, {}, ("sp/bob/", "01J"))
    theirs = named_for(said, "red", {"sp/bob/": claim})
    assert theirs.message.startswith("stopped to make room for a notebook server of tenant blue: blue")
    assert theirs.blocked_by == ("01J",)
    assert named_for(said, "blue", {"sp/bob/": claim}).message.startswith(
        "stopped to make room for bob's lab: blue"
    )
    assert named_for(said, "red", {}) is said
    assert not waiting_of_claim(claim).preemptible


def test_who_may_take_long_to_end_is_looked_for_soon_all_the_same() -> None:
    assert Outlook(90.0, 90.0, made=True).soonest == 10.0
    assert Outlook(120.0, 90.0).soonest == 40.0
    assert Outlook(5.0, 5.0, made=True).soonest == 5.0
