"""The system uids of a hub's users: another hub's are others, and they never change."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlp_hub.cli.doctor import machine as checks_machine
from mlp_hub.cli.state import state_dir, uids
from mlp_hub.settings import Settings

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only a hub that is root has uids to give")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of which nothing is known yet."""
    monkeypatch.setattr(uids, "REGISTRY", tmp_path / "var" / "uids.json")
    monkeypatch.setattr(uids, "SUBUIDS", tmp_path / "subuid")
    return tmp_path


def hub(home: Path, **environ: str) -> Settings:
    settings = Settings.load({"MLP_HOME": str(home), **environ})
    state_dir.prepare(settings)
    return settings


def test_two_hubs_have_no_uid_in_common_and_keep_theirs(machine: Path) -> None:
    one, two = hub(machine / "one"), hub(machine / "two")
    assert uids.claim(one) == uids.claim(two) == []
    assert (one.uid_base, two.uid_base) == (300_000, 400_000)
    assert uids.claim(two) == uids.claim(one) == []
    assert (one.uid_base, two.uid_base) == (300_000, 400_000)
    assert checks_machine.uids(two).status == "ok"


def test_hubs_that_come_up_at_once_do_not_get_the_same(machine: Path) -> None:
    hubs = [hub(machine / f"h{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(uids.claim, hubs)) == [[]] * 8
    assert len({one.uid_base for one in hubs}) == 8


def test_a_state_directory_from_before_keeps_what_its_files_belong_to(machine: Path) -> None:
    old = hub(machine / "old")
    (old.homes_dir / "ann").mkdir()
    uids.claim(hub(machine / "new", MLP_FIRST_UID="500000"))
    assert uids.claim(old) == []
    assert old.uid_base == 300_000


def test_a_copy_is_told_whose_uids_it_has_and_so_is_the_original(machine: Path) -> None:
    one = hub(machine / "one")
    uids.claim(one)
    shutil.copytree(one.home, machine / "copy", symlinks=True)
    copy = hub(machine / "copy")
    (told,) = uids.claim(copy)
    assert f"the same system uids (300000 to 399999) as those of the hub in {one.home.resolve()}" in told
    assert copy.uid_base == 300_000  # its files belong to these
    found = checks_machine.uids(one)
    assert (found.status, str(copy.home.resolve()) in found.found) == ("warn", True)
    shutil.rmtree(copy.home)
    assert checks_machine.uids(one).status == "ok"


def test_a_moved_state_directory_is_not_a_copy(machine: Path) -> None:
    uids.claim(hub(machine / "one"))
    (machine / "one").rename(machine / "moved")
    assert uids.claim(hub(machine / "moved")) == []
    assert json.loads(uids.REGISTRY.read_text()) == {str((machine / "moved").resolve()): 300_000}


def test_the_operator_may_say_which(machine: Path) -> None:
    uids.claim(hub(machine / "one"))
    (told,) = uids.claim(hub(machine / "two", MLP_FIRST_UID="350000"))
    assert str((machine / "one").resolve()) in told
    again = hub(machine / "two", MLP_FIRST_UID="700000")
    (told,) = uids.claim(again)
    assert "moves users from system uids 350000 on to 700000 on" in told
    assert uids.claim(hub(machine / "two")) == []  # and it stays so
    assert hub(machine / "two").uid_base == 700_000


def test_uids_that_a_person_has_for_containers_are_left_to_them(machine: Path) -> None:
    uids.SUBUIDS.write_text("ann:100000:65536\nbob:361984:65536\nodd line\n")
    one = hub(machine / "one")
    uids.claim(one)
    assert one.uid_base == 500_000


def test_a_torn_list_is_rebuilt_and_an_unwritable_one_is_reported(machine: Path) -> None:
    one = hub(machine / "one")
    uids.claim(one)
    uids.REGISTRY.write_text('{"/x')
    assert uids.claim(one) == []
    assert json.loads(uids.REGISTRY.read_text()) == {str(one.home.resolve()): 300_000}
    shutil.rmtree(uids.REGISTRY.parent)
    uids.REGISTRY.parent.write_text("in the way")
    (told,) = uids.claim(hub(machine / "two"))
    assert "cannot be written" in told


@pytest.mark.parametrize("text", ["", "40", "\0\0\0\0\0\0\0", "4000", "[1]"])
def test_a_torn_note_is_rewritten_from_the_files_and_the_list(machine: Path, text: str) -> None:
    uids.claim(hub(machine / "first"))
    one = hub(machine / "one")
    uids.claim(one)
    one.uid_file.write_text(text)
    uids.claim(hub(machine / "new"))  # does not take what seems to be nobody's
    (told,) = uids.claim(one)
    assert str(one.uid_file) in told
    assert one.uid_base == 400_000
    (one.homes_dir / "ann").mkdir()
    os.chown(one.homes_dir / "ann", 400_003, -1)
    one.uid_file.write_text(text)
    uids.REGISTRY.unlink()
    uids.claim(one)
    assert one.uid_base == 400_000
    assert uids.claim(one) == []
