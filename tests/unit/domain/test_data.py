"""Datasets of jobs: how they are named, and where they are seen."""

from __future__ import annotations

import pytest

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.data import DataUse, parse, targets


def seen(*asked: str) -> dict[str, str]:
    uses = [parse(each, "ann") for each in asked]
    return {path: use.title("ann") for path, use in targets(uses, "ann").items()}


def test_a_dataset_is_seen_by_its_name_and_where_it_was_asked_for() -> None:
    assert seen("digits") == {"/data/digits": "digits"}
    assert seen("digits:train/a") == {"/data/train/a": "digits", "/data/digits": "digits"}
    assert seen("bob/pets:/mnt/pets/") == {"/mnt/pets": "bob/pets", "/data/pets": "bob/pets"}
    assert seen("ann/digits") == {"/data/digits": "digits"}


def test_of_two_with_one_name_the_one_with_a_path_is_seen_there_alone() -> None:
    assert seen("pets", "bob/pets:theirs") == {"/data/pets": "pets", "/data/theirs": "bob/pets"}


@pytest.mark.parametrize("asked", ["digits", "bob/digits", "digits:a", "bob/digits:/mnt/a"])
def test_it_is_written_as_it_was_asked_for(asked: str) -> None:
    assert parse(asked, "ann").asked("ann") == asked


@pytest.mark.parametrize(
    "asked",
    [
        "", "Digits", ".home", "a b", "bob/", "/digits", "bob:x/digits/..", "../digits", "digits\n", "di\0gits",
        "digits:", "digits:/", "digits:..", "digits:../home", "digits:a/../b", "digits:./a", "digits:a//b", "digits:/etc",
        "digits:/data", "digits:/data/", "digits:/database/x", "digits:/data/../etc", "digits:/workspace/x",
        "digits:/home/ann/x", "digits:/proc/self", "digits:a\0b", "digits:a:b", "digits:" + "a/" * 100 + "a",
    ],
)  # fmt: skip
def test_a_text_without_a_dataset_or_an_allowed_place_is_refused(asked: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(asked, "ann")
    assert refused.value.reason is Reason.INVALID
    assert "; write " in str(refused.value)


@pytest.mark.parametrize(
    "asked",
    [
        ("digits", "digits"),
        ("pets", "bob/pets"),
        ("digits:x", "pets:x"),
        ("digits:pets", "pets"),
        ("digits:x", "pets:x/y"),
        ("digits:x/y", "pets:x"),
        ("pets", "digits:pets/inside"),
    ],
)
def test_two_in_one_place_are_refused(asked: tuple[str, str]) -> None:
    with pytest.raises(Refused, match="would both be at"):
        seen(*asked)


def test_datasets_with_different_uids_are_different() -> None:
    assert DataUse("ann", "digits", uid="1") != DataUse("ann", "digits", uid="2")
