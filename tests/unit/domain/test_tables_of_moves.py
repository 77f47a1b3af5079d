from __future__ import annotations

from enum import StrEnum

import pytest

from mlp_hub.domain.errors import IllegalTransition, Reason
from mlp_hub.domain.jobs.job import FINAL, HOLDING, JOB_MACHINE, WAITING, Phase, State, state_of
from mlp_hub.domain.machine import Machine
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import (
    HELD,
    RELEASE_MACHINE,
    REQUEST_MACHINE,
    RequestPhase,
    ResourceRequest,
    check_request_move,
)
from mlp_language.message import Message

TRANSITIONS = JOB_MACHINE.transitions


def request(phase: RequestPhase, kind: str = "request", expires_at: float | None = None) -> ResourceRequest:
    return ResourceRequest("a", "jm", "red", Resources(), phase, 0.0, expires_at, kind=kind)


def test_each_phase_has_its_row_its_state_and_a_way_to_its_end() -> None:
    assert set(TRANSITIONS) == set(Phase)
    for phase in Phase:
        assert isinstance(state_of(phase), State)
        reached, todo = set(), [phase]
        while todo:
            for following in TRANSITIONS[todo.pop()] - reached:
                reached.add(following)
                todo.append(following)
        assert phase is Phase.DELETING or Phase.DELETING in reached


def test_final_waiting_and_holding_phases_do_not_overlap() -> None:
    assert not (FINAL & HOLDING) | (FINAL & WAITING) | (HOLDING & WAITING)
    assert FINAL | HOLDING | WAITING | {Phase.DELETING} == set(Phase)


def test_quota_is_taken_only_by_admission() -> None:
    for old, new in ((o, n) for o in Phase for n in TRANSITIONS[o]):
        if old not in HOLDING and new in HOLDING:
            assert (old, new) == (Phase.QUEUED, Phase.ADMITTED)


def test_only_the_moves_of_the_table_are_allowed() -> None:
    for old in Phase:
        for new in Phase:
            if new in TRANSITIONS[old]:
                JOB_MACHINE.check(old, new, name="j")
            else:
                with pytest.raises(IllegalTransition) as caught:
                    JOB_MACHINE.check(old, new, ("queued", "admitted"), name="j")
                assert caught.value.reason is Reason.WRONG_STATE
                assert "queued > admitted" in caught.value.msg


@pytest.mark.parametrize(
    ("kind", "table"), [("request", REQUEST_MACHINE.transitions), ("release", RELEASE_MACHINE.transitions)]
)
def test_only_the_moves_of_a_requests_table_are_allowed(kind, table) -> None:
    for old in RequestPhase:
        for new in RequestPhase:
            if new in table.get(old, ()):
                check_request_move(request(old, kind), new)
            else:
                with pytest.raises(IllegalTransition):
                    check_request_move(request(old, kind), new)


def test_a_release_holds_nothing_and_only_what_is_pending_or_tried_expires() -> None:
    for phase in RequestPhase:
        assert request(phase).held == (phase in HELD)
        assert not request(phase, "release").held
        assert not request(phase).expired(10**9)
        tried = phase in (RequestPhase.PENDING, RequestPhase.TRIED, RequestPhase.RELEASING)
        assert request(phase, expires_at=5.0).expired(5.0) == tried
        assert not request(phase, expires_at=5.0).expired(4.9)


class Thing(StrEnum):
    NEW = "new"
    READY = "ready"
    GONE = "gone"


def test_a_kind_of_object_is_given_a_life_by_a_table_and_a_sentence() -> None:
    things = Machine(
        {Thing.NEW: frozenset({Thing.READY}), Thing.READY: frozenset({Thing.GONE})},
        Message("thing {name} is {old}, not {new}"),
        {Thing.READY: Message("there")},
    )
    things.check(Thing.NEW, Thing.READY, name="a")
    for old, new in ((Thing.NEW, Thing.GONE), (Thing.GONE, Thing.NEW), (Thing.READY, Thing.READY)):
        with pytest.raises(IllegalTransition):
            things.check(old, new, name="a")
    with pytest.raises(IllegalTransition, match=r"thing a is there, not new$"):
        things.check(Thing.READY, Thing.NEW, name="a")
