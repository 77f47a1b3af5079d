"""How an attempt in a cluster stands, from what its pods and its ranks tell."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Cause, Failure
from mlp_hub.domain.jobs.stages import StageTimes
from mlp_hub.executors.base import AskedToEnd, AttemptPhase
from mlp_hub.executors.kubernetes import no_pods
from mlp_hub.executors.kubernetes.attempt_claims import ABOUT, CLAIM, END, About, AttemptClaim, End, claim_of
from mlp_hub.executors.kubernetes.metering.believed import PodUse
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.executors.kubernetes.records import RankRecord, RankUse, read
from mlp_hub.executors.kubernetes.stages import refined
from mlp_hub.executors.kubernetes.verdict import LEFT_S, SEEN_S, Scene, judge
from mlp_hub.executors.kubernetes.views import MainView, PodView, main_view, pod_view
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.errors import (
    ClusterUnreachable,
    ForbiddenError,
    InvalidObjectError,
    WebhookUnreachable,
    error_of,
)

A = AttemptPhase
NOW = 1000.0
ABOUT_TWO = About("a.0", "ann", "a", 1, ("worker", "worker"), ("n1", "n2"), ("batch/v1", "Job", "jobs"))
CLAIM_OF_TWO = AttemptClaim("a-1", "mlp-t", "uid", ABOUT_TWO)
MAIN = MainView("a-1", "mlp-t", "main", "a.0")


def pod(rank: int, **more: Any) -> PodView:
    made = PodView(f"a-1-{rank}", "a.0", rank, f"n{rank + 1}", "Running", NOW - 50)
    return replace(made, **{"started_at": NOW - 40, **more})


RUNS = RankRecord(started_at=NOW - 39)
ASKED = RankRecord("stopped", True, NOW - 39, NOW - 1, None, 15)
FINISHED = RankRecord("finished", started_at=NOW - 39, finished_at=NOW - 1, exit_code=0)


def scene(**more: Any) -> Scene:
    fields: dict[str, Any] = {
        "claim": CLAIM_OF_TWO,
        "main": MAIN,
        "made": True,
        "pods": (pod(0), pod(1)),
        "records": {0: RUNS, 1: RUNS},
        "now": NOW,
    }
    return Scene(**{**fields, **more})


def test_it_runs_from_the_first_rank_that_does() -> None:
    assert judge(scene(pods=(), records={})).seen.phase is A.STARTING
    begins = pod(0, started_at=NOW - 1)
    seen = judge(scene(pods=(begins, pod(1)), records={1: RUNS})).seen
    assert (seen.phase, seen.started_at) == (A.RUNNING, NOW - 39)
    assert [(rank.state, rank.node) for rank in seen.ranks] == [("pending", "n1"), ("running", "n2")]


def test_a_claim_without_created_objects_is_started_again() -> None:
    assert judge(scene(main=None, made=False, pods=(), records={})).seen.phase is A.ABSENT


def test_it_has_succeeded_once_all_ranks_have_and_nobody_needs_to_end_it() -> None:
    verdict = judge(scene(records={0: FINISHED, 1: FINISHED}))
    assert (verdict.seen.phase, verdict.end) == (A.SUCCEEDED, None)
    assert verdict.seen.finished_at == NOW - 1


def test_a_rank_that_ended_just_before_is_told_with_the_failure_and_an_earlier_one_is_not() -> None:
    failed = RankRecord(
        "failed", False, NOW - 39, NOW - 1, 1, None, Cause.PROGRAM_ERROR, "rank 1: lost a peer"
    )
    end = judge(scene(records={0: replace(FINISHED, finished_at=NOW - 3), 1: failed})).seen.failure
    assert end is not None
    assert (end.rank, end.message) == (
        1,
        "rank 1: lost a peer; rank 0 had ended 2.0 s before, with exit status 0",
    )
    late = judge(scene(records={0: replace(FINISHED, finished_at=NOW - 90), 1: failed})).seen.failure
    assert late is not None


def test_that_a_rank_ended_while_another_runs_is_told_once_that_has_lasted() -> None:
    early = replace(FINISHED, finished_at=NOW - 31)
    seen = judge(scene(records={0: RUNS, 1: early})).seen
    assert str(seen.remark) == "rank 1 ended; the others (1) still run"
    assert seen.remark_at == NOW - 31
    assert judge(scene(records={0: RUNS, 1: FINISHED})).seen.remark is None


def test_the_outcome_of_a_request_to_end_is_reported() -> None:
    asked = RankRecord("stopped", True, NOW - 39, NOW - 4, None, 15, asked_at=NOW - 10)
    end = End(A.STOPPED, NOW - 11)
    gone = scene(
        claim=replace(CLAIM_OF_TWO, end=end),
        main=None,
        pods=(),
        records={0: asked, 1: replace(asked, killed=True)},
    )
    assert judge(gone).seen.ending == AskedToEnd(NOW - 10, killed=True)


def test_a_rank_that_failed_ends_the_others_and_is_the_one_that_is_named() -> None:
    failed = RankRecord("failed", False, NOW - 39, NOW - 2, 3, None, Cause.PROGRAM_ERROR, "boom")
    killed = RankRecord("failed", False, NOW - 39, NOW - 3, None, 9, Cause.SIGNAL, "killed")
    verdict = judge(scene(records={0: RUNS, 1: failed}))
    assert verdict.seen.phase is A.RUNNING
    assert verdict.end is not None
    assert verdict.end.failure is not None
    assert (verdict.end.phase, verdict.end.failure.rank) == (A.FAILED, 1)
    seen = judge(scene(records={0: killed, 1: failed})).seen
    assert seen.failure is not None
    assert (seen.failure.rank, seen.failure.exit_code, seen.failure.message) == (1, 3, "boom")
    assert [rank.state for rank in seen.ranks] == ["stopped", "failed"]


def test_an_end_that_was_written_down_has_come_once_nothing_is_alive() -> None:
    stopped = CLAIM_OF_TWO.ending(End(A.STOPPED, NOW - 5, 5.0))
    asked = RankRecord("stopped", True, NOW - 39, NOW - 4, None, 15)
    records = {0: asked, 1: asked}
    assert judge(scene(claim=stopped, records=records)).seen.phase is A.RUNNING
    assert (
        judge(scene(claim=stopped, records=records, pods=())).seen.phase is A.RUNNING
    )  # its main object is there
    seen = judge(scene(claim=stopped, records=records, pods=(), main=None)).seen
    assert (seen.phase, seen.failure) == (A.STOPPED, None)
    assert [(rank.state, rank.signal) for rank in seen.ranks] == [("stopped", 15)] * 2


def test_a_deleted_pod_whose_node_is_silent_is_waited_for_and_then_given_up() -> None:
    stopped = CLAIM_OF_TWO.ending(End(A.STOPPED, NOW - 5, 5.0))
    for left_at, phase in ((NOW - 1, A.RUNNING), (NOW - LEFT_S - 1, A.STOPPED)):
        silent = (pod(0, leaves_at=left_at),)
        assert judge(scene(claim=stopped, pods=silent, main=None)).seen.phase is phase


def test_pods_seen_before_their_job_do_not_count_as_a_loss() -> None:
    claim = replace(CLAIM_OF_TWO, about=replace(ABOUT_TWO, at=NOW - 1))
    early = {"claim": claim, "main": None, "told": False}
    assert judge(scene(**early)).end is None
    verdict = judge(scene(**early, now=NOW + SEEN_S))
    assert verdict.end is not None, "it was not there when this process began, and does not come"
    assert verdict.end.phase is A.LOST
    assert judge(scene(**{**early, "told": True})).end is not None


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"pods": (pod(0),)}, "the pod of rank 1 on node n2 vanished without a reason"),
        ({"pods": (pod(0), pod(1, leaves_at=NOW + 5))}, "somebody deleted the pod a-1-1 of rank 1"),
        (
            # its program wrote down how it ended before its pod had gone
            {"pods": (pod(0), pod(1, leaves_at=NOW + 5)), "records": {0: RUNS, 1: ASKED}},
            "somebody deleted the pod a-1-1 of rank 1",
        ),
        ({"pods": (pod(0),), "records": {0: RUNS, 1: ASKED}}, "rank 1 was asked to end by the cluster"),
        (
            {"pods": (pod(0), pod(1, disrupted="preempted"))},
            "the cluster removed the pod of rank 1: preempted",
        ),
        ({"main": None}, "somebody deleted its Job a-1"),
        ({"pods": (), "records": {}, "lost_nodes": {"n2"}}, "node n2 does not answer, and none"),
        (
            {"pods": (pod(0), pod(1, phase="Failed", reason="Evicted", message="low on memory"))},
            "the pod of rank 1 was evicted: low on memory",
        ),
    ],
)
def test_deletion_of_a_part_loses_the_whole_gang(more: dict[str, Any], text: str) -> None:
    verdict = judge(scene(**more))
    assert verdict.end is not None
    assert verdict.end.phase is A.LOST
    assert verdict.end.failure is not None
    assert verdict.end.failure.cause is Cause.NODE_LOST
    assert text in verdict.end.failure.message


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"reason": "OOMKilled", "signal": 9}, Cause.OUT_OF_MEMORY),
        ({"reason": "Evicted", "message": "Pod ephemeral local storage usage exceeds"}, Cause.DISK),
        ({"reason": "DeadlineExceeded"}, Cause.TIME_LIMIT),
        ({"reason": "StartError", "exit_code": 128}, Cause.START_FAILED),
        ({"reason": "Error", "signal": 11}, Cause.SIGNAL),
        ({"reason": "Error", "exit_code": 4}, Cause.PROGRAM_ERROR),
    ],
)
def test_a_pod_that_failed_says_why_where_its_rank_could_not(more: dict[str, Any], cause: Cause) -> None:
    over = pod(1, phase="Failed", finished_at=NOW - SEEN_S - 1, **more)
    end = judge(scene(pods=(pod(0), over))).end
    assert end is not None
    assert end.failure is not None
    assert (end.failure.cause, end.failure.rank) == (cause, 1)


@pytest.mark.parametrize(
    "more",
    [
        {"phase": "Failed", "reason": "StartError", "exit_code": 128},
        {"phase": "Pending", "started_at": None, "waits": "CreateContainerError"},
    ],
    ids=["failed", "waits"],
)
def test_an_image_that_lacks_what_runs_ranks_is_told_at_once_with_the_way_out(more: dict[str, Any]) -> None:
    said = 'runc create failed: unable to start: exec: "python3": executable file not found in $PATH: unknown'
    end = judge(scene(pods=(pod(0), pod(1, message=said, made_at=NOW - 1, **more)))).end
    assert end is not None
    assert end.failure is not None
    assert (end.failure.cause, end.failure.rank) == (Cause.START_FAILED, 1)
    assert end.failure.message == "the image has no python3, which runs the ranks: install it there"


def test_pods_that_are_no_longer_schedulable_are_a_loss_and_bound_pods_continue() -> None:
    waits = pod(1, node="", phase="Pending", started_at=None, waits="Unschedulable")
    seen = scene(pods=(pod(0), waits), records={0: RUNS}, grouped=False)
    end = judge(seen).end
    assert end is not None
    assert end.phase is A.LOST
    assert end.failure is not None
    assert end.failure.cause is Cause.NODE_LOST
    assert "somebody deleted its PodGroup" in end.failure.message
    young = replace(CLAIM_OF_TWO, about=replace(ABOUT_TWO, at=NOW - SEEN_S / 2))
    assert judge(replace(seen, claim=young)).end is None  # its news may be on the way
    assert judge(replace(seen, grouped=True)).end is None
    assert judge(scene(grouped=False)).end is None


def test_the_leaders_end_is_the_gangs_at_once_with_parameter_servers_and_later_without() -> None:
    led = replace(CLAIM_OF_TWO, about=replace(ABOUT_TWO, roles=("chief", "worker"), ends_with="chief"))
    assert judge(scene(claim=led, records={0: FINISHED, 1: RUNS})).end is None
    late = judge(scene(claim=led, records={0: FINISHED, 1: RUNS}, now=NOW + 20)).end
    assert late is not None
    assert (late.phase, late.failure) == (A.SUCCEEDED, None)
    with_ps = replace(led, about=replace(led.about, roles=("chief", "ps"), has_ps=True))
    assert judge(scene(claim=with_ps, records={0: FINISHED, 1: RUNS})).end is not None


def test_a_waiting_start_shows_the_reason_and_a_hopeless_one_fails() -> None:
    full = pod(0, phase="Pending", started_at=None, waits="Unschedulable", message="0/1 nodes")
    seen = judge(scene(pods=(full, pod(1, phase="Pending", started_at=None)), records={})).seen
    assert "no room for its pod a-1-0 now: 0/1 nodes" in str(seen.waits)
    refused = scene(pods=(), records={}, complaint=Complaint("exceeded quota", final=False))
    assert "makes no pods of it yet: exceeded quota" in str(judge(refused).seen.waits)
    end = judge(replace(refused, complaint=Complaint("exceeded quota", final=True))).end
    assert end is not None
    assert end.failure is not None
    assert end.failure.cause is Cause.START_FAILED


def test_no_room_is_told_only_once_all_pods_of_a_gang_are_there() -> None:
    # Volcano calls the pods of a gang unschedulable until the last of them is made
    said = "pod group is not ready, 1 Pending, 2 minAvailable"
    held = [
        pod(n, phase="Pending", node="", started_at=None, waits="Unschedulable", message=said) for n in (0, 1)
    ]
    first = scene(claim=CLAIM_OF_TWO, pods=tuple(held[:1]), records={})
    assert str(judge(first).seen.waits) == "1 of its 2 pods are made"
    refused = replace(first, complaint=Complaint("exceeded quota", final=False))
    assert "exceeded quota" in str(judge(refused).seen.waits)
    assert "no room for its pod a-1-0 now" in str(judge(replace(first, pods=tuple(held))).seen.waits)


def test_a_pod_ignored_by_every_scheduler_is_reported_after_a_moment() -> None:
    left = pod(0, phase="Pending", started_at=None, node="", made_at=NOW - 6)
    assert judge(scene(pods=(replace(left, made_at=NOW - 4),), records={})).seen.waits is None
    told = str(judge(scene(pods=(left,), records={})).seen.waits)
    assert (
        told
        == "its pod a-1-0 has no node, and no scheduler gives a reason: the scheduler is perhaps down, which make doctor checks"
    )


def test_a_job_ignored_by_every_operator_is_reported_whatever_a_scheduler_reports_about_its_group() -> None:
    found = {
        "metadata": {"name": "a-1", "namespace": "mlp-t", "uid": "main", "labels": {names.ATTEMPT: "a.0"}}
    }
    untouched = main_view(found)
    assert untouched is not None
    said = Complaint("0/0 tasks in gang unschedulable", final=False)
    told = str(judge(scene(main=untouched, pods=(), records={}, complaint=said)).seen.waits)
    assert (
        told
        == "nothing in the cluster handles its Job: the operator is perhaps down, which make doctor checks"
    )
    taken = main_view({**found, "status": {"conditions": [{"type": "Created", "status": "True"}]}})
    seen = judge(scene(main=taken, pods=(), records={}, complaint=said)).seen
    assert "makes no pods of it yet: 0/0 tasks" in str(seen.waits)


def test_the_complaint_of_a_node_about_its_pod_is_shown() -> None:
    bound = pod(0, phase="Pending", started_at=None)
    event = {
        "involvedObject": {"name": "a-1-0"},
        "reason": "FailedMount",
        "message": "no relationship found between node 'n1' and this object",
        "lastTimestamp": "2026-11-28T20:00:05Z",
    }
    old = {**event, "message": "of long ago", "lastTimestamp": "2026-11-28T19:00:00Z"}
    stale = {
        **event,
        "reason": "FailedScheduling",
        "message": "0/1 nodes",
        "lastTimestamp": "2026-11-28T20:00:06Z",
    }
    since = datetime(2026, 11, 28, 20, tzinfo=UTC).timestamp()
    said = no_pods.of_nodes([old, event, stale], CLAIM_OF_TWO, since)
    assert said is not None
    assert not said.final
    seen = judge(
        scene(pods=(bound, pod(1, phase="Pending", started_at=None)), records={}, complaint=said)
    ).seen
    assert str(seen.waits) == (
        "node n1 cannot start its pod yet, and tries again: no relationship found between node 'n1' and this object"
    )
    assert no_pods.of_nodes([old, stale], CLAIM_OF_TWO, since) is None


def test_records_are_read_of_the_right_type_or_not_at_all(tmp_path: Any) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "a.0.0.json").write_text('{"state": "failed", "exit_code": "x", "cause": "nonsense", "tail": 3}')
    (log / "a.0.1.json").write_text("[" * 10_000)
    (log / "a.0.2.json").symlink_to("/etc/passwd")
    (log / "a.0.3.json").write_text('{"state": "waiting"}')
    (log / "a.0.4.json").write_text('{"state": "running", "started_at": %s}' % ("9" * 4000))
    (log / "a.0.4.use").write_text(
        '{"cpu": -1, "ram": true, "cpu_peak": NaN, "ram_peak": 1e9, "first_line_at": 1e300}'
    )
    assert read(str(tmp_path), "a.0", 5) == {0: RankRecord("failed"), 4: RankRecord("running")}
    assert read(str(tmp_path / "none"), "a.0", 5) == {}


SAID: dict[str, Any] = {
    "nothing": {},
    "no template": {"args": {}},
    "a template that is none": {"id": {"id": "x"}},
    "a hole that is not filled": {"id": "{why}"},
    "a hole of the interpreter's": {"id": "{who.__class__}", "args": {"who": "a"}},
    "a form that takes all memory": {"id": "{who:>2000000000}", "args": {"who": "a"}},
    "half a brace": {"id": "{", "args": {}},
    "a number that is none": {"id": "{n}", "args": {"n": None}},
    "another's job": {
        "id": "{n}",
        "args": {"n": {"job": None, "user": 1, "tenant": [], "uid": 0, "kind": 0}},
    },
    "a time that is none": {"id": "{n}", "args": {"n": {"at": "x", "said": []}}},
    "a plural": {"id": "{n} job", "plural": "{n:>2000000000}", "args": {"n": 2}},
    "arguments that are none": {"id": "a", "args": []},
}


def told_by(tmp_path: Any, **record: Any) -> RankRecord:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.0.0.json").write_text(json.dumps({"state": "failed", **record}))
    return read(str(tmp_path), "a.0", 1)[0]


@pytest.mark.parametrize("what", SAID)
def test_a_forged_reason_of_a_program_is_not_shown_as_a_message(tmp_path: Any, what: str) -> None:
    """Rendering each would raise, or never end, for everybody who lists jobs."""
    record = told_by(tmp_path, said=SAID[what], message="it failed")
    assert record.said is None
    failure = judge(scene(records={0: record, 1: RUNS})).end
    assert failure is not None
    assert failure.failure is not None
    assert str(failure.failure.localized_message) == "it failed"


def test_a_reason_that_is_deep_is_none(tmp_path: Any) -> None:
    said: dict[str, Any] = {"id": "x", "args": {}}
    for _ in range(200):
        said = {"id": "{a}", "args": {"a": said}}
    assert told_by(tmp_path, said=said).said is None


def test_a_reason_that_a_rank_tells_is_told(tmp_path: Any) -> None:
    who = {"id": "rank {n}", "args": {"n": 0}}
    said = {
        "id": "{who}: {error} (exit status {code})",
        "args": {"who": who, "error": "a {b}\x1b[2J", "code": 3},
    }
    record = told_by(tmp_path, said=said)
    assert (
        str(Failure(Cause.PROGRAM_ERROR, said=record.said).localized_message)
        == "rank 0: a {b} (exit status 3)"
    )


def test_times_that_a_rank_tells_are_those_of_its_attempt() -> None:
    """What it used is counted by them, and whoever lists jobs sorts by them."""
    claim = replace(CLAIM_OF_TWO, about=replace(ABOUT_TWO, at=NOW - 60))
    long_ago = RankRecord("finished", started_at=1.0, finished_at=2.0, exit_code=0)
    ahead = RankRecord("finished", started_at=NOW + 1e9, finished_at=9e10, exit_code=0)
    seen = judge(scene(claim=claim, records={0: long_ago, 1: ahead})).seen
    assert (seen.started_at, seen.finished_at) == (NOW - 60, NOW)


def test_text_of_a_rank_can_be_stored_and_shown(tmp_path: Any) -> None:
    """Half a character cannot be encoded, PostgreSQL takes no NUL, and escapes steer whose terminal shows them."""
    nasty = "a\ud800\x00\x1b]0;x\x07\u202eb"
    record = told_by(tmp_path, message=nasty + "\nc", tail=nasty + "\nc", hint=nasty, said={"id": nasty})
    assert (record.message, record.tail, record.hint) == ("ab | c", "ab\nc", "ab")
    assert record.said == {"id": "ab", "args": {}}


def test_stages_are_those_of_all_ranks_and_of_those_that_were_there_when_the_first_began() -> None:
    waits = {"phase": "Pending", "started_at": None}
    both = (pod(0, bound_at=NOW - 49, **waits), pod(1, bound_at=NOW - 47, **waits))
    assert judge(scene(pods=both, records={})).seen.stages == StageTimes(NOW - 50, NOW - 47)
    assert judge(scene(pods=both[:1], records={})).seen.stages == StageTimes()
    runs = RankRecord(started_at=NOW - 44, first_line_at=NOW - 30)
    late = (pod(0, bound_at=NOW - 49, started_at=NOW - 45), pod(1, bound_at=NOW - 9, started_at=NOW - 8))
    assert judge(scene(pods=late, records={0: runs})).seen.stages == StageTimes(
        NOW - 50, NOW - 49, NOW - 45, NOW - 30
    )
    # who ends at once is quicker than the cluster tells that it runs
    quick = replace(FINISHED, container_at=NOW - 40.5)
    bound = tuple(pod(n, bound_at=NOW - 42, started_at=None) for n in (0, 1))
    assert judge(scene(pods=bound, records={0: quick, 1: quick})).seen.stages.pulled == NOW - 40.5
    # what is told in whole seconds may seem to be later than what a rank says itself
    near = (pod(0, bound_at=NOW - 44, started_at=NOW - 43.5),) * 2
    assert judge(scene(pods=near, records={0: runs})).seen.stages.pulled == NOW - 44


def test_times_in_whole_seconds_are_refined_by_observation_and_stay() -> None:
    first = refined(pod(0, made_at=990.0, bound_at=990.0, started_at=None), None, 990.4)
    assert (first.made_at, first.bound_at, first.started_at) == (990.4, 990.4, None)
    later = refined(pod(0, made_at=990.0, bound_at=990.0, started_at=992.0), first, 999.0)
    assert (later.made_at, later.bound_at, later.started_at) == (990.4, 990.4, 992.5)
    another = refined(pod(0, made_at=993.0, started_at=None), later, 995.0)
    assert (another.made_at, another.bound_at, another.started_at) == (993.5, None, None)


def test_ranks_show_what_they_use_while_they_run_and_what_it_was_afterwards() -> None:
    use = RankUse(0.5, 20, 0.4, 0.9, 18, 30)
    seen = judge(scene(records={0: replace(RUNS, use=use), 1: replace(FINISHED, use=use)})).seen
    now, then = ((r.cpu, r.ram, r.cpu_mean, r.cpu_peak, r.ram_mean, r.ram_peak) for r in seen.ranks)
    assert now == (0.5, 20, None, None, None, None)
    assert then == (None, None, 0.4, 0.9, 18, 30)


def test_a_ranks_report_of_its_use_counts_up_to_the_measure_of_the_cluster() -> None:
    lie = RankUse(8.0, 9000, 7.0, 8.0, 9000, 9000)
    measured = {rank: PodUse(0.01, 100, 0.02, 0.03, 90, 110) for rank in (0, 1)}
    told = {0: replace(RUNS, use=lie), 1: replace(FINISHED, use=lie)}
    now, then = judge(replace(scene(records=told), measured=measured)).seen.ranks
    assert (now.cpu, now.ram, now.reported) == (0.01, 100, True)
    assert (then.cpu_mean, then.cpu_peak, then.ram_mean, then.reported) == (0.02, 0.03, 90, True)
    honest = {rank: replace(one, use=RankUse(0.01, 80, 0.02, 0.5, 70, 100)) for rank, one in told.items()}
    ranks = judge(replace(scene(records=honest), measured=measured)).seen.ranks
    assert [(rank.ram, rank.ram_peak, rank.reported) for rank in ranks] == [
        (80, None, False),
        (None, 100, False),
    ]
    assert [(rank.cores_reported, rank.memory_reported) for rank in (now, then, *ranks)] == [
        (False, False),
        (False, False),
        (False, False),
        (False, True),
    ], "only the means of ranks that ended have a source"
    alone = judge(scene(records=honest)).seen.ranks
    assert [(rank.reported, rank.cores_reported, rank.memory_reported) for rank in alone] == [
        (True, False, False),
        (True, True, True),
    ]


def test_the_usage_of_a_rank_is_read_while_it_runs_and_after_its_end(tmp_path: Any) -> None:
    log = tmp_path / "log"
    log.mkdir()
    use = {"cpu": 0.5, "ram": 20, "cpu_mean": 0.4, "cpu_peak": 0.9, "ram_mean": 18, "ram_peak": 30}
    (log / "a.0.0.json").write_text('{"state": "running", "started_at": 10}')
    (log / "a.0.0.use").write_text(json.dumps({**use, "first_line_at": 12.5}))
    (log / "a.0.1.json").write_text(
        json.dumps({"state": "finished", "exit_code": 0, **use, "first_line_at": 11})
    )
    (log / "a.0.1.use").write_text('{"ram": 1}')
    found = read(str(tmp_path), "a.0", 2)
    assert [found[rank].use for rank in (0, 1)] == [RankUse(**use)] * 2
    assert [found[rank].first_line_at for rank in (0, 1)] == [12.5, 11.0]


def test_a_claim_is_read_as_it_was_written() -> None:
    import msgspec

    end = End(A.FAILED, 5.0, 1.0)
    said = {ABOUT: msgspec.json.encode(ABOUT_TWO).decode(), END: end.text()}
    labels = {names.COMPONENT: CLAIM}
    meta = {"name": "a-1", "namespace": "mlp-t", "uid": "uid", "labels": labels, "annotations": said}
    assert claim_of({"metadata": meta}) == CLAIM_OF_TWO.ending(end)
    assert claim_of({"metadata": {**meta, "annotations": {ABOUT: "{"}}}) is None
    assert claim_of({"metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}}) is None


def test_views_of_objects_contain_only_relevant_fields() -> None:
    meta = {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {names.ATTEMPT: "a.0", names.FIRST_RANK: "2"},
        "creationTimestamp": "1970-01-01T00:00:10Z",
    }
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "back-off"}}
    found = {
        "metadata": meta,
        "spec": {"containers": [{"name": "rank"}]},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "rank", "state": waiting}]},
    }
    seen = pod_view(found)
    assert seen is not None
    assert (seen.rank, seen.waits, seen.message, seen.made_at) == (2, "ImagePullBackOff", "back-off", 10.0)
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "R", "message": "m"}]}
    main = main_view({"metadata": meta, "status": failed})
    assert main is not None
    assert (main.reason, main.failed) == ("R", "m")
    assert pod_view({"metadata": {**meta, "labels": {}}}) is None


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (
            500,
            "failed to create typed patch object (n/a; batch/v1, Kind=Job): .spec.x: field not declared",
            InvalidObjectError,
        ),
        (500, 'Internal error occurred: failed calling webhook "w": connection refused', WebhookUnreachable),
        (500, 'admission webhook "w" denied the request: no', InvalidObjectError),
        (429, "too many requests", ClusterUnreachable),
        (503, "", ClusterUnreachable),
        (422, "is invalid", InvalidObjectError),
        (403, 'pods is forbidden: User "u" cannot list resource "pods" in API group ""', ForbiddenError),
    ],
)
def test_an_api_answer_maps_to_an_error_that_shows_whose_fault_it_is(
    status: int, said: str, kind: type[Exception]
) -> None:
    assert type(error_of("create jobs", status, {"message": said}, "https://c")) is kind
