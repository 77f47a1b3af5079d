"""What a job's ranks are told, from what its user asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target, Trial
from mlp_hub.domain.jobs.tracing import traceparent
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.workspace import JobRun
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.lifecycle.launch import launch_spec

SPEC = JobSpec("digits", "ann", "red", "tf", Resources(1000, 0, 1024), workers_max=4, ps=1, code="x")


def launched(**asked: Any) -> LaunchSpec:
    job = Job(
        "uid", replace(SPEC, **asked), Phase.ADMITTED, Target.RUN, 1.0, restarts=2, placement=("n1",) * 4
    )
    return launch_spec(job, 300_001, "secret", RunPolicy(api_url="http+unix://x/api/v1"))


def test_ranks_are_told_whose_job_they_are_and_where_to_save() -> None:
    assert launched().env == {
        "MLP_JOB": "digits",
        "MLP_RUN": "1",
        "MLP_USER": "ann",
        "MLP_TENANT": "red",
        "MLP_API_URL": "http+unix://x/api/v1",
        "MLP_JOB_TOKEN": "secret",
        "MLP_CHECKPOINT_DIR": "/workspace/ckpt",
        "MLP_RESTART_COUNT": "2",
        "MLP_METRICS_MAX": str(64 * 2**20),
        "TRACEPARENT": traceparent("uid"),
    }


def test_every_attempt_of_a_run_is_in_one_trace_and_a_trace_of_the_user_stays() -> None:
    job = Job("uid", SPEC, Phase.ADMITTED, Target.RUN, 1.0, placement=("n1",) * 4)
    first, second, other = (
        launch_spec(one, None, "secret", RunPolicy()).env["TRACEPARENT"]
        for one in (job, replace(job, restarts=1), replace(job, uid="other", run=2))
    )
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", first)
    assert first == second != other
    own = f"00-{'a' * 32}-{'b' * 16}-00"
    assert launched(env={"TRACEPARENT": own}).env["TRACEPARENT"] == own


def test_ranks_are_told_the_request_that_submitted_their_job_and_nobody_else_says_which() -> None:
    assert "MLP_REQUEST_ID" not in launched().env
    given = launched(request_id="0123456789abcdef", env={"MLP_REQUEST_ID": "forged"})
    assert given.env["MLP_REQUEST_ID"] == "0123456789abcdef"


def test_ranks_are_told_where_files_of_datasets_are_if_not_beside_the_api() -> None:
    job = Job("uid", SPEC, Phase.ADMITTED, Target.RUN, 1.0, placement=("n1",) * 4)
    policy = RunPolicy(api_url="http://h:1/api/v1", data_url="http://h:2/data")
    assert launch_spec(job, None, "secret", policy).env["MLP_DATA_URL"] == "http://h:2/data"


def test_a_later_run_has_its_name_and_a_separate_directory() -> None:
    job = Job("uid", replace(SPEC, name="Big_run"), Phase.ADMITTED, Target.RUN, 1.0, run=2, placement=("n1",))
    spec = launch_spec(job, None, "secret", RunPolicy())
    assert (spec.env["MLP_JOB"], spec.env["MLP_RUN"]) == ("Big_run", "2")
    assert spec.of_run == JobRun("ann", "Big_run", 2)
    assert Directories(Path("/homes"), Path("/jobs")).workspace(spec.of_run) == "/jobs/ann/_big__run@2"


def test_ranks_are_told_how_often_to_save_in_seconds() -> None:
    assert launched(checkpoint_every=1800).env["MLP_CHECKPOINT_EVERY"] == "1800"


def test_ranks_start_where_their_user_said() -> None:
    assert (launched(workdir="project/src").workdir, launched().workdir) == ("project/src", None)


def test_ranks_are_told_where_event_files_are_not_to_be_drawn() -> None:
    assert launched(tensorboard="off").env["MLP_TENSORBOARD"] == "off"
    assert "MLP_TENSORBOARD" not in launched().env


def test_ranks_are_told_their_parameters_and_which_trial_they_are() -> None:
    env = launched(params={"lr": 0.1, "deep": True, "name": "a b"}, trial=Trial("uid", "search", 7, 12)).env
    assert env["MLP_PARAMS"] == '{"lr":0.1,"deep":true,"name":"a b"}'
    assert (env["MLP_SWEEP"], env["MLP_TRIAL"], env["MLP_ARRAY_INDEX"]) == ("search", "7", "12")


def test_the_users_variables_are_among_them_and_replace_none_of_the_platforms() -> None:
    env = launched(env={"SEED": "1", "MLP_USER": "root"}).env
    assert (env["SEED"], env["MLP_USER"]) == ("1", "ann")


def test_ranks_use_the_language_of_the_submitter_unless_they_set_another() -> None:
    assert launched(language="zh-CN").env["MLP_LANGUAGE"] == "zh-CN"
    assert launched(language="zh-CN", env={"MLP_LANGUAGE": "en"}).env["MLP_LANGUAGE"] == "en"
    assert "MLP_LANGUAGE" not in launched().env


def test_an_elastic_job_has_the_workers_that_it_was_given() -> None:
    spec = launched()
    assert (spec.workers, spec.ps, len(spec.placement)) == (3, 1, 4)
