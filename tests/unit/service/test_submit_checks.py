"""What is refused at submission, and what is filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs import JobCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.job import JobSpec
from mlp_hub.domain.resources import Resources
from mlp_hub.service.config import Paths
from mlp_hub.service.submit import check_runtime, checked_spec, free_name, name_taken


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    home = tmp_path / "homes/ann"
    (home / "project").mkdir(parents=True)
    (home / "train.py").write_text("print(1)")
    (home / "project/a b.py").write_text("print(1)")
    (tmp_path / "secret.py").write_text("print(1)")
    (home / "link.py").symlink_to(tmp_path / "secret.py")
    return Paths(homes=tmp_path / "homes", jobs=tmp_path / "jobs")


def check(paths: Paths, **fields: Any) -> JobSpec:
    fields = {"name": "j", **({} if "entry" in fields else {"code": "x"}), **fields}
    return checked_spec(JobCreate(**fields), "ann", {"red"}, "red", paths)


def test_what_was_left_out_is_filled_in(paths: Paths) -> None:
    assert check(paths) == JobSpec("j", "ann", "red", "plain", Resources(1000, 0, 1024), code="x")


@pytest.mark.parametrize(
    ("fields", "runtime", "workers"),
    [
        ({}, "plain", (1, 1)),
        ({"workers": 2}, "mpi", (2, 2)),
        ({"workers": "1:4"}, "mpi", (1, 4)),
        ({"ps": 1}, "tf", (1, 1)),
        ({"workers": 2, "runtime": "torch"}, "torch", (2, 2)),
    ],
)
def test_the_runtime_follows_from_the_shape(
    paths: Paths, fields: dict[str, Any], runtime: str, workers: tuple[int, int]
) -> None:
    spec = check(paths, **fields)
    assert (spec.runtime, (spec.workers_min, spec.workers_max)) == (runtime, workers)


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        ("train.py", "train.py"),
        ("./train.py", "train.py"),
        ("~/train.py", "train.py"),
        ("/home/ann/train.py", "train.py"),
        ("project/a b.py", "project/a b.py"),
        ("project/../train.py", "train.py"),
    ],
)
def test_a_script_is_found_in_the_home_directory(paths: Paths, entry: str, want: str) -> None:
    assert check(paths, entry=entry).entry == want


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"entry": "missing.py"}, "there is no file missing.py in your home directory"),
        ({"entry": "project"}, "is a directory"),
        ({"entry": "../../secret.py"}, "leaves your home directory"),
        ({"entry": "../annie/train.py"}, "leaves your home directory"),
        ({"entry": "link.py"}, "leaves your home directory"),
        ({"entry": "/etc/passwd"}, "outside of your home directory"),
        ({"entry": "/home/bob/train.py"}, "outside of your home directory"),
        ({"entry": "train.py\0"}, "NUL"),
        ({"entry": "train.py", "code": "x"}, "exactly one of them"),
        ({"code": None}, "nothing to run"),
        ({"code": " \n"}, "code is empty"),
        ({"runtime": "spark"}, "there is no runtime spark; choose one of mpi, tf, torch, plain"),
        ({"ps": 1, "runtime": "mpi"}, "need runtime tf, not mpi"),
        ({"priority": "urgent"}, "choose one of low, normal, high"),
        ({"workers": "4:2"}, "as in 2:4"),
        ({"workers": 9999, "ps": 900, "runtime": "tf"}, "more than 10000 ranks"),
        ({"workers": "1:10001"}, "more than 10000 ranks"),
        ({"gpu_kind": "a100"}, "set gpu too"),
        ({"topology": "same-planet"}, "use same-node, same-rack, same-zone, spread, required:LABEL"),
        ({"env": {"MLP_RANK": "0"}}, "names that begin with MLP_ are reserved"),
        ({"env": {"1X": "0"}}, "no name of a variable"),
        ({"env": {"X": "a\0b"}}, "NUL"),
        ({"args": ["a\0b"]}, "NUL"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(
    paths: Paths, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused) as caught:
        check(paths, **fields)
    assert caught.value.reason is Reason.INVALID
    assert words in caught.value.msg


def test_a_tenant_that_one_is_not_in_does_not_exist(paths: Paths) -> None:
    with pytest.raises(Refused) as caught:
        check(paths, tenant="blue")
    assert (caught.value.reason, caught.value.msg) == (Reason.NOT_FOUND, "there is no tenant blue")


def test_a_free_name_is_suggested() -> None:
    assert free_name("digits", {"digits"}) == "digits-2"
    assert free_name("digits-2", {"digits", "digits-2", "digits-3"}) == "digits-4"
    assert free_name("a" * 50, {"a" * 50}) == "a" * 48 + "-2"
    assert "such as digits-2" in name_taken("digits", {"digits"}).msg


@pytest.mark.parametrize("user", ["..", ".", "", "a/b", "a\0b"])
def test_a_user_name_that_is_no_directory_name_is_refused(paths: Paths, user: str) -> None:
    with pytest.raises(Refused):
        paths.home(user)


def test_a_runtime_whose_package_is_missing_is_refused_with_those_that_are_there() -> None:
    lacking = {"torch": "torch", "tf": "tensorflow"}
    with pytest.raises(Refused, match=r"torch is not installed on this hub.* use one of mpi, plain, or ask"):
        check_runtime("torch", lacking.get, {})
    check_runtime("mpi", lacking.get, {})
    check_runtime("torch", lacking.get, {"PYTHONPATH": "/home/ann/packages"})
