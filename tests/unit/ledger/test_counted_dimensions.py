"""A dimension that is only counted, from the request to the quota: the size of /dev/shm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_api import types as api
from mlp_hub.domain.dimensions import COUNTED, DIMENSIONS, FLAT, ON_NODES, PLACED
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Quota, Resources, amount_of, quota_of
from mlp_hub.scheduler.assign.feasible import check_possible
from mlp_hub.scheduler.core import plan_cycle
from mlp_hub.scheduler.model.types import Admit, TenantQueue, Wait
from mlp_hub.service.admission.recheck import LedgerCheck
from mlp_hub.service.support.units import check_no_parts, limit_from, limit_to
from mlp_language.render import ENGLISH, render
from support.scheduler.scheduler_builders import job, snapshot


def shm(amount: int, **more: int) -> Resources:
    return Resources(amounts=(("shm", amount),), **more)


def test_what_is_counted_is_every_row_that_the_contract_has_no_field_for() -> None:
    assert {*FLAT, *COUNTED} == {*DIMENSIONS}
    assert "shm" in COUNTED
    assert "shm" not in {*ON_NODES, *PLACED}, "a part of memory, which nodes count"


def test_amounts_are_added_compared_and_split_as_the_others() -> None:
    two = shm(2, cpu=1)
    assert two + two == two * 2 == shm(4, cpu=2)
    assert two - two == Resources()
    assert (two.part("shm"), two.part("cpu"), Resources().part("shm")) == (2, 1, 0)
    assert [shm(n).fits(shm(2)) for n in (2, 3)] == [True, False]
    assert not shm(1).fits(Resources(ram=5))
    assert (shm(1).is_zero, shm(1).on_nodes.is_zero) == (False, True)
    assert amount_of(dict(two.items())) == two
    assert two.with_part("shm", 0) == Resources(cpu=1)
    quota = quota_of({"cpu": 1, "shm": 5, "gpu:a100": 3})
    assert quota == Quota(cpu=1, amounts={"shm": 5}, kinds={"a100": 3})
    assert limit_from("reserved", limit_to(quota)) == quota


def test_the_ledger_counts_it_in_the_quota_and_refuses_what_is_beyond(bench) -> None:
    bench.tenant("red", amounts={"shm": 1024})
    bench.held("a", cpu=1, amounts={"shm": 1000})
    assert bench.in_use() == shm(1000, cpu=1000)
    assert "24 MiB shm" in bench.refusal("b", cpu=1, amounts={"shm": 100})
    bench.held("b", cpu=1, amounts={"shm": 24})
    with bench.db.reading() as tx:
        assert tx.ledger.in_use_by_tenant(bench.now) == {"red": shm(1024, cpu=2000)}
        assert tx.tenants.get("red").quota == Quota(amounts={"shm": 1024})


def test_an_amount_without_a_quota_is_unlimited(bench, make_node) -> None:
    bench.tenant("red")
    bench.nodes = [make_node("n1")]
    bench.held("a", cpu=1, amounts={"shm": 10**9})


def test_an_unknown_name_of_a_row_is_refused(bench) -> None:
    bench.tenant("red")
    assert "amounts has 'shn', which is not a resource; the resources are" in bench.refusal(
        "a", cpu=1, amounts={"shn": 1}
    )
    with pytest.raises(Refused, match="shm, which is a part of ram and is not kept free by itself"):
        check_no_parts("reserved", Quota(amounts={"shm": 1}))


def test_jobs_wait_for_their_quota_of_it_and_nodes_do_not_matter() -> None:
    red = TenantQueue("red", Quota(amounts={"shm": 1000}))
    jobs = [replace(job(name), per_worker=shm(600, cpu=1000, ram=1024)) for name in ("a", "b")]
    decided = plan_cycle(snapshot(*jobs, tenants=(red,)), 100.0)
    assert [type(each) for each in decided] == [Admit, Wait]
    waits = decided[1]
    assert waits.verdict.reason is Reason.WAITING_FOR_QUOTA
    assert "600 MiB shm" in render(waits.verdict.headline, ENGLISH)


def test_a_job_that_asks_for_more_than_the_quota_has_can_never_run() -> None:
    red = TenantQueue("red", Quota(amounts={"shm": 500}))
    asked = replace(job("a"), per_worker=shm(600, cpu=1000, ram=1024))
    never = check_possible(snapshot(tenants=(red,)), asked)
    assert never is not None
    assert never.reason is Reason.EXCEEDS_MAX_QUOTA
    assert render(never.headline, ENGLISH).endswith("may use 500. Use --shm 500.")


def test_the_last_check_of_an_admission_counts_it_in_the_quota_alone(bench, make_node) -> None:
    bench.tenant("red", amounts={"shm": 1000})
    bench.nodes = [make_node("n1")]
    each = shm(600, cpu=1000, ram=1024)
    admit = Admit("a", ("n1",), 1, each)
    with bench.db.begin() as tx:
        check = LedgerCheck(tx, bench.nodes, bench.now)
        assert check.reserve_ranks("red", each, admit) is not None
        assert check.reserve_ranks("red", each, admit) is None, "beyond the quota"


def test_a_request_of_a_tenant_has_it_by_name() -> None:
    assert api.TenantCreate(name="red", amounts={"shm": 5}).amounts == {"shm": 5}
