from __future__ import annotations

import os

import pytest

from mlp_hub.sandbox import ensure_home
from mlp_spawner.homes import place_samples


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "package" / "first.ipynb"
    path.parent.mkdir()
    path.write_text("ours")
    return path


def test_a_home_is_made_for_its_user_only(tmp_path):
    home = ensure_home(tmp_path / "homes", "ann", None)
    assert home == tmp_path / "homes" / "ann"
    assert home.stat().st_mode & 0o777 == 0o700
    assert ensure_home(tmp_path / "homes", "ann", None) == home


def test_a_link_at_the_path_of_a_home_is_refused(tmp_path):
    (tmp_path / "homes").mkdir()
    (tmp_path / "homes" / "ann").symlink_to(tmp_path)
    with pytest.raises(OSError, match="ann"):
        ensure_home(tmp_path / "homes", "ann", None)


def test_samples_are_placed_once(tmp_path, sample):
    home = ensure_home(tmp_path / "homes", "ann", None)
    placed = tmp_path / "run" / "samples.json"
    assert place_samples(home, [sample], placed, None) == ["first.ipynb"]
    assert (home / "first.ipynb").read_text() == "ours"
    (home / "first.ipynb").rename(home / "mine.ipynb")
    assert place_samples(home, [sample], placed, None) == []
    assert not (home / "first.ipynb").exists()


def test_a_user_whose_home_is_new_gets_them_again(tmp_path, sample):
    placed = tmp_path / "run" / "samples.json"
    place_samples(ensure_home(tmp_path / "homes", "ann", None), [sample], placed, None)
    elsewhere = ensure_home(tmp_path / "files" / "homes", "ann", None)
    assert place_samples(elsewhere, [sample], placed, None) == ["first.ipynb"]
    assert place_samples(elsewhere, [sample], placed, None) == []


def test_a_file_of_the_users_is_never_overwritten(tmp_path, sample):
    home = ensure_home(tmp_path / "homes", "ann", None)
    (home / "first.ipynb").write_text("mine")
    assert place_samples(home, [sample], tmp_path / "samples.json", None) == []
    assert (home / "first.ipynb").read_text() == "mine"


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_that_was_planted_is_never_followed(tmp_path, sample, exists):
    home = ensure_home(tmp_path / "homes", "ann", None)
    target = tmp_path / "target"
    if exists:
        target.write_text("precious")
    (home / "first.ipynb").symlink_to(target)
    assert place_samples(home, [sample], tmp_path / "samples.json", None) == []
    assert target.exists() is exists
    assert not exists or target.read_text() == "precious"


def test_a_later_version_adds_its_new_samples(tmp_path, sample):
    home = ensure_home(tmp_path / "homes", "ann", None)
    placed = tmp_path / "samples.json"
    place_samples(home, [sample], placed, None)
    second = sample.with_name("second.ipynb")
    second.write_text("new")
    assert place_samples(home, [sample, second], placed, None) == ["second.ipynb"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_where_the_hub_is_root_all_belongs_to_the_user(tmp_path, sample):
    home = ensure_home(tmp_path / "homes", "ann", 300_001)
    place_samples(home, [sample], tmp_path / "samples.json", 300_001)
    assert (home.stat().st_uid, (home / "first.ipynb").stat().st_uid) == (300_001, 300_001)
