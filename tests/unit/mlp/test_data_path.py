"""Where a program finds datasets: in a job, in a notebook, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlp
from mlp.mounted_data import data_path

JOB = {
    "MLP_JOB": "train",
    "MLP_USER": "ann",
    "MLP_DATA": "/data",
    "MLP_DATASETS": "digits:bob/pets",
    "MLP_DATA_PATHS": "/data/digits:/data/theirs",
}


def test_in_a_job_it_is_where_the_job_has_it() -> None:
    assert data_path("digits", JOB) == Path("/data/digits")
    assert data_path("ann/digits", JOB) == Path("/data/digits")
    assert data_path("bob/pets", JOB) == Path("/data/theirs")


def test_one_that_the_job_was_not_submitted_with_is_named_with_the_way_out() -> None:
    with pytest.raises(
        mlp.UsageError, match="no dataset cats, but digits, bob/pets; submit it with --data cats"
    ):
        data_path("cats", JOB)
    with pytest.raises(mlp.UsageError, match="no dataset cats, but none"):
        data_path("cats", {"MLP_JOB": "train"})


def test_in_a_notebook_it_is_one_of_its_users_own(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    env = {"MLP_DATA": str(tmp_path), "JUPYTERHUB_USER": "ann"}
    assert data_path("digits", env) == data_path("ann/digits", env) == tmp_path / "digits"
    for other in ("bob/digits", "none", "", "..", "../digits"):
        with pytest.raises(mlp.UsageError, match=r"dataset .*is not available here"):
            data_path(other, env)


def test_elsewhere_there_are_none() -> None:
    with pytest.raises(mlp.UsageError, match="datasets are not available here"):
        data_path("digits", {})
