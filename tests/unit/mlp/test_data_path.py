"""Where a program finds datasets: in a job, in a notebook, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

import mlp
from mlp import data
from mlp.data.places import DataPlace
from mlp.data.pushing import Pushed
from mlp.data.results import as_pushed
from mlp.errors import UsageError
from mlp.inputs.mounted_data import data_path

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


@pytest.mark.parametrize("name", ["..", "a%2Fb", "x" * 256])
def test_a_path_that_no_dataset_has_is_refused_with_the_rule_for_names(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        DataPlace.parse(f"pets:a/{name}")
    assert str(refused.value) == (
        f"pets:a/{name} cannot be a path in a dataset, because of {name}: a name in it is text of at most 255 bytes, without an "
        "encoded /, and not . or .."
    )


def test_a_push_says_why_it_leaves_a_file_out() -> None:
    found = Pushed(DataPlace("pets", ""), dataset={}, sent=["a"], left_out=["a%2Fb"], there=0, size=1)
    assert as_pushed(found).lines[-1] == (
        "1 was not sent, because it is a link or not a file, or its name has an encoded / or is not text: a%2Fb"
    )


def test_a_dataset_that_is_named_before_the_files_is_told_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    with pytest.raises(UsageError) as refused:
        data.push("photos", "./pictures")
    assert "mlp data push ./pictures photos" in str(refused.value)
