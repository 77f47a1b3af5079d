from __future__ import annotations

import pytest

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.workload.ledger import RequestPhase
from support.stores.admissions import admit_one


def refused(reason: Reason, *words: str):
    return pytest.raises(Refused, match="(?s)" + ".*".join([f"^{reason}: ", *words]))


def test_a_try_holds_and_a_cancel_gives_back(bench) -> None:
    bench.try_("a", cpu=1.5, ram=512)
    assert bench.in_use() == Resources(cpu=1500, ram=512)
    bench.cancel("a")
    assert bench.in_use() == ZERO
    assert bench.phase("a") == "cancelled"


def test_a_try_that_expires_gives_back_what_it_held_whether_swept_or_not(bench) -> None:
    bench.try_("a", cpu=2)
    bench.now += 59.9
    with refused(Reason.WAITING_FOR_QUOTA):
        bench.try_("b", cpu=1)
    bench.now += 0.1
    assert bench.in_use() == ZERO
    bench.try_("b", cpu=2)
    with bench.db.begin() as tx:
        assert bench.ledger.expire(tx, bench.now) == 1
    assert bench.phase("a") == "expired"


def test_a_confirmed_request_holds_for_ever(bench) -> None:
    bench.held("a", cpu=2)
    bench.now += 10**9
    assert bench.in_use().cpu == 2000


def test_an_expired_try_cannot_be_confirmed_but_tried_again(bench) -> None:
    bench.try_("a", cpu=2)
    bench.now += 61
    with refused(Reason.WRONG_STATE, "expired before it was confirmed", "try it again", "60 s"):
        bench.confirm("a")
    bench.held("a", cpu=2)
    assert bench.in_use().cpu == 2000


def test_try_confirm_and_cancel_may_be_repeated(bench) -> None:
    for _ in range(3):
        bench.try_("a", cpu=1)
    for _ in range(3):
        bench.confirm("a")
    bench.try_("a", cpu=1)
    assert bench.in_use().cpu == 1000
    bench.try_("b", cpu=1)
    for _ in range(3):
        bench.cancel("b")
    assert bench.in_use().cpu == 1000


def test_confirm_and_cancel_without_a_request_are_ok(bench) -> None:
    bench.confirm("nobody")
    bench.cancel("nobody")
    assert bench.try_("nobody", release=True) is None


def test_the_same_id_of_another_applier_is_another_request(bench) -> None:
    bench.held("a", cpu=1)
    bench.held("a", applier="dm", cpu=1)
    assert bench.in_use().cpu == 2000


def test_a_repeated_try_over_another_amount_is_a_conflict(bench) -> None:
    bench.try_("a", cpu=1)
    with refused(Reason.CONFLICT, "for 1 cpu of red, not for 2 cpu of red"):
        bench.try_("a", cpu=2)
    with refused(Reason.CONFLICT, "of default"):
        bench.try_("a", cpu=1, tenant="default")


def test_a_confirmed_request_is_released_not_cancelled(bench) -> None:
    bench.held("a", cpu=1)
    with refused(Reason.WRONG_STATE, "is confirmed and cannot be cancelled; release it"):
        bench.cancel("a")
    bench.try_("a", release=True)
    assert bench.in_use().cpu == 1000
    bench.try_("a", release=True, cpu=1)
    bench.confirm("a")
    assert bench.in_use() == ZERO
    bench.confirm("a")
    assert bench.try_("a", release=True).phase is RequestPhase.RELEASED
    bench.held("a", cpu=2)
    assert bench.in_use().cpu == 2000


def test_a_release_that_is_cancelled_or_expires_leaves_the_request_held(bench) -> None:
    bench.held("a", cpu=1)
    bench.try_("a", release=True)
    bench.cancel("a")
    bench.cancel("a")
    assert bench.phase("a") == "confirmed"
    bench.try_("a", release=True)
    bench.now += 61
    assert bench.in_use().cpu == 1000
    with refused(Reason.WRONG_STATE, "expired before it was confirmed"):
        bench.confirm("a")
    with bench.db.begin() as tx:
        bench.ledger.expire(tx, bench.now)
    assert bench.phase("a") == "confirmed"
    assert bench.in_use().cpu == 1000


def test_a_whole_release_of_a_part_or_of_a_try_is_refused(bench) -> None:
    bench.held("a", cpu=2)
    with refused(Reason.INVALID, "for 2 cpu and is released as a whole", "leave 1 cpu out"):
        bench.try_("a", release=True, cpu=1)
    bench.try_("b", ram=512)
    with refused(Reason.WRONG_STATE, "is tried and cannot be released; cancel it"):
        bench.try_("b", release=True)


def test_an_anonymous_release_gives_back_from_the_oldest_requests(bench) -> None:
    bench.held("a", cpu=0.5, ram=512)
    bench.now += 1
    bench.held("b", cpu=1, ram=512)
    bench.try_("r", release=True, cpu=1)
    assert bench.in_use().cpu == 1500
    bench.confirm("r")
    assert bench.in_use() == Resources(cpu=500, ram=1024)
    bench.try_("s", release=True, ram=512)
    bench.confirm("s")
    assert bench.phase("a") == "released"
    assert bench.in_use() == Resources(cpu=500, ram=512)


def test_an_anonymous_release_that_is_repeated_gives_back_once(bench) -> None:
    bench.held("a", cpu=2)
    for _ in range(3):
        bench.try_("r", release=True, cpu=0.5)
        bench.confirm("r")
    assert bench.in_use().cpu == 1500
    with refused(Reason.WRONG_STATE, "ask for the amount again"):
        bench.cancel("r")
    with refused(Reason.CONFLICT, "belongs to a release"):
        bench.try_("r", cpu=0.5)


def test_an_anonymous_release_is_bounded_by_the_holdings_of_its_applier_in_the_tenant(bench) -> None:
    bench.tenant("blue", cpu=4000)
    bench.held("a", cpu=1)
    bench.held("b", cpu=1, applier="dm")
    bench.held("c", cpu=1, tenant="blue")
    with refused(Reason.WRONG_STATE, "jm holds 1 cpu in red", "gives back 1.5 cpu"):
        bench.try_("r", release=True, cpu=1.5)
    bench.try_("r", release=True, cpu=0.75)
    with refused(Reason.WRONG_STATE, "jm holds 0.25 cpu in red"):
        bench.try_("s", release=True, cpu=0.5)
    bench.cancel("r")
    bench.try_("s", release=True, cpu=0.5)
    bench.now += 61
    bench.try_("t", release=True, cpu=1)
    with refused(Reason.WRONG_STATE, "expired"):
        bench.confirm("s")
    bench.confirm("t")
    assert (bench.in_use().cpu, bench.in_use("blue").cpu) == (1000, 1000)


def test_an_anonymous_release_does_not_touch_what_sits_on_a_node(bench) -> None:
    bench.held("ann", applier="sp", cpu=1, ram=512, user="ann")
    with refused(Reason.WRONG_STATE, "sp holds nothing in red"):
        bench.try_("r", applier="sp", release=True, cpu=1)


def test_gpus_of_a_kind_and_of_any_kind_are_given_back_apart(bench, make_node) -> None:
    bench.nodes = [make_node(gpu=4000, gpu_kind="a100")]
    bench.tenant("red", gpu=4000)
    bench.held("a", gpu=1, gpu_kind="a100")
    bench.held("b", gpu=2)
    with refused(Reason.WRONG_STATE, "gives back 3 gpu"):
        bench.try_("r", release=True, gpu=3)
    bench.try_("r", release=True, gpu=1, gpu_kind="a100")
    bench.confirm("r")
    assert bench.in_use() == Resources(gpu=2000)


def test_an_unknown_tenant_is_not_found(bench) -> None:
    for release in (False, True):
        with refused(Reason.NOT_FOUND, "team blue does not exist"):
            bench.try_("a", tenant="blue", cpu=1, release=release)


def test_an_admission_holds_at_once_and_its_end_gives_back(bench) -> None:
    amount = Resources(cpu=2000, ram=1024)
    with bench.db.begin() as tx:
        assert admit_one(tx, bench.nodes, "j.0", "red", amount, bench.now, "n1")
        assert tx.ledger.node_use(bench.now) == {"n1": amount}
    assert bench.in_use() == amount
    with bench.db.begin() as tx:
        tx.ledger.release_many("jm", ["j.0", "j.0", "nobody"])
        assert tx.ledger.node_use(bench.now) == {}
    assert (bench.in_use(), bench.phase("j.0")) == (ZERO, "released")


def test_an_admission_is_refused_where_a_notebook_took_the_node_in_the_meantime(bench) -> None:
    bench.tenant("red")
    bench.held("ann", applier="sp", ram=7000, user="ann", tenant="default")
    with bench.db.begin() as tx:
        assert not admit_one(tx, bench.nodes, "j.0", "red", Resources(ram=2048), bench.now, "n1")
        assert admit_one(tx, bench.nodes, "k.0", "red", Resources(ram=1192), bench.now, "n1")
    assert bench.in_use() == Resources(ram=1192)


def test_rows_that_ended_long_ago_are_forgotten_and_held_ones_never(bench) -> None:
    bench.held("a", cpu=1)
    bench.try_("b", cpu=0.5)
    bench.cancel("b")
    bench.now += 8 * 86_400
    with bench.db.begin() as tx:
        assert tx.ledger.purge(bench.now - 7 * 86_400) == 1
    assert (bench.phase("a"), bench.phase("b")) == ("confirmed", None)
