"""Trees of more files than one listing may have: copied, moved and removed by one request, charged exactly, and in nobody's way."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.dav.files.dataset_copy import DEEPEST_COPIED
from mlp_hub.dav.files.tree import DEEPEST_REMOVED, MOST_NAMES
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY, FREE_ENTRIES, charge_of
from support.rigs.api_rig import Answer, ApiRig
from support.rigs.dav_rig import DavRig, serving
from support.waiting import PATIENCE_S, wait_for

GIB = 1 << 30
LOCK = (
    b'<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
    b"<D:locktype><D:write/></D:locktype></D:lockinfo>"
)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def dav(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavRig]:
    with serving(rig, tmp_path_factory.mktemp("dav")) as found:
        yield found


@pytest.fixture
def team(rig: ApiRig) -> str:
    """A tenant of ann's with a GiB of storage."""
    name = f"many{next(_numbers)}"
    rig.tenant(name, "rita", members=("ann",), rom=GIB)
    return name


@pytest.fixture
def data(rig: ApiRig, dav: DavRig, team: str) -> str:
    """A dataset of ann's with one file, by its path."""
    body = {"name": team, "size": 0, "tenant": team}
    assert rig.ask("POST", "/users/ann/datasets", body, token=rig.ann).status == 201
    assert dav.ask("PUT", f"/data/ann/{team}/first", b"1").status == 201
    return f"/data/ann/{team}"


def on_disk(rig: ApiRig, data: str) -> Path:
    return rig.root / "datasets" / Path(data).relative_to("/data")


def fill(top: Path, folders: int, files: int, body: bytes = b"") -> None:
    """Write many files, as a notebook of the owner may."""
    for d in range(folders):
        (top / f"d{d}").mkdir(parents=True)
        for n in range(files):
            (top / f"d{d}" / f"f{n}").write_bytes(body)


def is_charged_exactly(rig: ApiRig, team: str, data: str) -> None:
    size = charge_of([on_disk(rig, data)])
    wait_for(
        lambda: rig.ask("GET", f"/tenants/{team}", token=rig.root_user).json["rom_inuse"] == size,
        message=f"for {size} bytes to be charged",
    )


def test_a_tree_is_moved_and_removed_however_many_files_it_has(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    fill(on_disk(rig, data) / "tree", 2, MOST_NAMES // 2)
    moved = dav.ask("MOVE", f"{data}/tree", headers={"Destination": f"{data}/other"})
    assert moved.status == 201, moved.body
    assert len(list((on_disk(rig, data) / "other" / "d1").iterdir())) == MOST_NAMES // 2
    assert dav.ask("DELETE", f"{data}/other").status == 204
    assert not (on_disk(rig, data) / "other").exists()
    is_charged_exactly(rig, team, data)


@pytest.mark.whole
def test_a_directory_of_more_files_than_a_listing_has_is_removed(rig: ApiRig, dav: DavRig, data: str) -> None:
    fill(on_disk(rig, data) / "flat", 1, MOST_NAMES + 1)
    assert dav.ask("DELETE", f"{data}/flat").status == 204
    assert not (on_disk(rig, data) / "flat").exists()


def test_a_tree_is_copied_and_charged_exactly_while_others_are_answered(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    fill(on_disk(rig, data) / "tree", 5, 60, b"x" * 10)
    said: list[int] = []
    copies = threading.Thread(
        target=lambda: said.append(
            dav.ask("COPY", f"{data}/tree", headers={"Destination": f"{data}/two"}).status
        )
    )
    copies.start()
    answers = [dav.ask("GET", f"{data}/first").status]
    while copies.is_alive():
        answers.append(dav.ask("GET", f"{data}/first").status)
    copies.join()
    assert (said, set(answers)) == ([201], {200})
    assert len(list((on_disk(rig, data) / "two").rglob("f*"))) == 300
    is_charged_exactly(rig, team, data)
    over = dav.ask("COPY", f"{data}/two/d0", headers={"Destination": f"{data}/two/d1"})
    assert over.status == 204
    is_charged_exactly(rig, team, data)


def test_a_copy_of_empty_files_finds_no_more_room_than_there_is(rig: ApiRig, dav: DavRig) -> None:
    rig.tenant("names", "rita", members=("ann",), rom=600 * ENTRY)
    body = {"name": "names", "size": 0, "tenant": "names"}
    assert rig.ask("POST", "/users/ann/datasets", body, token=rig.ann).status == 201
    data = "/data/ann/names"
    assert dav.ask("PUT", f"{data}/first", b"1").status == 201
    fill(on_disk(rig, data) / "tree", 1, 5 * FREE_ENTRIES)
    dav.ask("DELETE", f"{data}/first")  # so that its files are looked at
    is_charged_exactly(rig, "names", data)
    full = dav.ask("COPY", f"{data}/tree", headers={"Destination": f"{data}/two"})
    assert full.status == 507, full.body
    assert not (on_disk(rig, data) / "two").exists()
    is_charged_exactly(rig, "names", data)


@pytest.mark.parametrize(
    ("method", "deepest"), [("DELETE", DEEPEST_REMOVED), ("COPY", DEEPEST_COPIED)], ids=["removed", "copied"]
)
def test_too_deeply_nested_directories_are_reported_without_a_claim_about_unfinished_work(
    rig: ApiRig, dav: DavRig, data: str, method: str, deepest: int
) -> None:
    top = on_disk(rig, data) / "deep"
    top.joinpath(*["d"] * (deepest + 1)).mkdir(parents=True)
    to = {"Destination": f"{data}/other"} if method == "COPY" else {}
    told = dav.ask(method, f"{data}/deep", headers=to)
    assert told.status == 409
    assert b"nested too deeply here" in told.body
    assert b"nothing was changed" not in told.body
    assert top.is_dir()
    assert not (on_disk(rig, data) / "other").exists()


@pytest.mark.parametrize("verb", ["MOVE", "DELETE"])
def test_a_lock_below_keeps_what_is_locked_where_it_is(
    rig: ApiRig, dav: DavRig, data: str, verb: str
) -> None:
    fill(on_disk(rig, data) / "tree", 1, 3)
    held = dav.ask("LOCK", f"{data}/tree/d0/f1", LOCK)
    assert held.status == 200
    to = {"Destination": f"{data}/other"} if verb == "MOVE" else {}
    assert dav.ask(verb, f"{data}/tree", headers=to).status == 423
    assert len(list((on_disk(rig, data) / "tree" / "d0").iterdir())) == 3, "nothing was changed"
    dav.ask("UNLOCK", f"{data}/tree/d0/f1", headers={"Lock-Token": held.headers["lock-token"]})
    assert dav.ask(verb, f"{data}/tree", headers=to).status in (201, 204)
    assert not (on_disk(rig, data) / "tree").exists()


@pytest.mark.parametrize("what", ["a lock", "a revoked token"])
def test_attack_a_copy_takes_nothing_away_that_was_locked_or_forbidden_meanwhile(
    rig: ApiRig, dav: DavRig, data: str, team: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(on_disk(rig, data) / "tree", 4, 200, b"x")
    fill(on_disk(rig, data) / "two", 1, 1, b"kept")
    beside = rig.root / ".uploads"
    rig.hub.user("ann", "stolen")
    to = {"Destination": f"{data}/two", "Authorization": "Bearer stolen"}
    under_way, may_go_on = threading.Event(), threading.Event()
    take = rig.platform.datasets.grant_bytes

    async def held_take(*asked: Any) -> None:
        under_way.set()
        await asyncio.to_thread(may_go_on.wait)
        await take(*asked)

    monkeypatch.setattr(rig.platform.datasets, "grant_bytes", held_take)
    told: list[Answer] = []
    copies = threading.Thread(target=lambda: told.append(dav.ask("COPY", f"{data}/tree", headers=to)))
    copies.start()
    try:
        assert under_way.wait(PATIENCE_S)
        if what == "a lock":
            assert dav.ask("LOCK", f"{data}/two/d0/f0", LOCK).status == 200
        else:
            del rig.hub.tokens["stolen"]
            # the service knows a token for a moment after it was revoked
            stolen = {"Authorization": "Bearer stolen"}
            wait_for(lambda: dav.ask("GET", f"{data}/two/d0/f0", headers=stolen).status == 401)
    finally:
        may_go_on.set()
    copies.join()
    [answer] = told
    assert answer.status == (423 if what == "a lock" else 403)
    assert what == "a lock" or b"nothing was replaced" in answer.body
    assert (on_disk(rig, data) / "two" / "d0" / "f0").read_bytes() == b"kept"
    wait_for(lambda: not list(beside.iterdir()), message="for nothing to be left beside")
    is_charged_exactly(rig, team, data)
