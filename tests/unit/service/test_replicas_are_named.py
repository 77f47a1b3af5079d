"""A replica of an app is called by the app and its number, from what is stored of it, wherever people read of it."""

from __future__ import annotations

import pytest

from mlp_hub.domain.apps.app import replica_name
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Replica, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest, replica_holder
from mlp_hub.service.admission.snapshot import waiting_job
from mlp_hub.service.jobs.wire import queue_to
from mlp_hub.service.quota.wire import holding_to
from mlp_language.message import JobRef, Viewer, from_data, msg, to_data
from mlp_language.render import plain

ROOM = Resources(cpu=1000, ram=1024)


def replica(slot: int | None = 1, app: str = "line") -> Job:
    spec = JobSpec(
        replica_name(app, 1), "ann", "red", "plain", ROOM, code="x", replica=Replica("u1", app, 1, "", slot)
    )
    return Job("j1", spec, Phase.RUNNING, Target.RUN, 1.0)


def holds(holder: str) -> ResourceRequest:
    return ResourceRequest("a1", "jm", "red", ROOM, RequestPhase.CONFIRMED, 1.0, holder=holder, user="ann")


@pytest.mark.parametrize("slot", [1, None], ids=["stored", "stored before it was kept"])
def test_sentences_name_the_app_and_which_replica(slot: int | None) -> None:
    job = replica(slot)
    said = msg("{job} runs", job=job.ref)
    assert plain(said) == "app line of ann, replica 1 runs"
    assert from_data(to_data(said)) == said
    assert waiting_job(job.spec, job.uid, 1.0).ref == job.ref


def test_a_long_name_is_told_whole_though_its_jobs_name_is_cut() -> None:
    name = "a" * 50
    assert name in plain(msg("{job}", job=replica(app=name).ref))


def test_a_holder_of_quota_links_to_its_app() -> None:
    found = holding_to(holds(replica_holder("line", 2)))
    assert plain(found.holder.message) == "app line of ann, replica 2"
    assert (found.job, found.app, found.replica) == (None, "line", 2)
    job = holding_to(holds("digits"))
    assert (job.job, job.app, job.replica) == ("digits", None, None)


def test_the_queue_tells_which_replica_waits() -> None:
    entry = queue_to(replica(), None, None)
    assert (entry.kind, entry.name, entry.replica) == ("app", "line", 1)


def test_a_replica_that_the_reader_may_not_see_is_shown_as_a_job() -> None:
    viewer = Viewer(own=frozenset({"blue"}))
    assert viewer.ref(replica().ref) == JobRef("", None, None, None)
