"""What is remarked of ranks that run: that one has ended while others go on, and that nothing happens."""

from __future__ import annotations

from types import SimpleNamespace

from mlp_hub.sandbox.shim.diagnosis.messages import english
from mlp_hub.sandbox.shim.diagnosis.remarks import ENDED_S, QUIET_S, Remarks
from mlp_hub.sandbox.shim.ranks import RankProcess
from mlp_hub.service.lifecycle.messages import REMARKS

BEGAN = 1000.0


def gang(*roles: str) -> SimpleNamespace:
    ranks = [RankProcess(number, role) for number, role in enumerate(roles)]
    for rank in ranks:
        rank.state = "running"
    return SimpleNamespace(ranks=ranks, stopping=False)


def text(remarks: Remarks) -> str:
    if remarks.now is None:
        return ""
    assert remarks.now["said"]["id"] in REMARKS
    return english(remarks.now["said"])


def test_ranks_that_only_wait_are_remarked_upon_and_work_takes_that_back() -> None:
    remarks = Remarks(gang("worker", "worker"))  # type: ignore[arg-type]
    assert not remarks.look(BEGAN, 1.0)
    assert not remarks.look(BEGAN + QUIET_S - 1, 1.0)
    assert remarks.look(BEGAN + QUIET_S, 1.0)
    assert text(remarks).startswith("no rank has written anything or used the processor for 60 s")
    assert not remarks.look(BEGAN + QUIET_S + 1, 1.0)
    assert remarks.look(BEGAN + QUIET_S + 2, 1.5)
    assert text(remarks) == ""


def test_a_rank_that_is_alone_may_be_quiet() -> None:
    remarks = Remarks(gang("worker"))  # type: ignore[arg-type]
    remarks.look(BEGAN, 1.0)
    assert not remarks.look(BEGAN + 10 * QUIET_S, 1.0)


def test_the_end_of_a_rank_is_told_once_the_others_have_gone_on_for_a_while() -> None:
    sandbox = gang("worker", "worker", "worker", "ps")
    remarks = Remarks(sandbox)  # type: ignore[arg-type]
    remarks.look(BEGAN, 1.0)
    sandbox.ranks[1].over_at = BEGAN
    assert not remarks.look(BEGAN + ENDED_S - 1, 30.0)
    assert remarks.look(BEGAN + ENDED_S, 31.0)
    assert text(remarks) == "rank 1 ended; the others (2) still run"
    remarks.look(BEGAN + ENDED_S + QUIET_S, 31.0)
    assert text(remarks).startswith("rank 1 ended; the others (2) have written nothing and used no processor")
    sandbox.stopping = True
    remarks.look(BEGAN + ENDED_S + QUIET_S + 1, 31.0)
    assert text(remarks) == ""
