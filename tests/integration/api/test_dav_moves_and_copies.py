"""Files of datasets that are moved or copied: in one step, within their dataset, and as far as there is room."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.isolation import tenant_roots
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import LOCK, MIB, DavRig, in_use, left_over, on_disk, settled, sha
from support.waiting import wait_for


@pytest.mark.parametrize("verb", ["COPY", "MOVE"])
def test_files_leave_their_dataset_by_no_way(rig: ApiRig, dav: DavRig, data: str, verb: str) -> None:
    dav.ask("PUT", f"{data}/f", b"x")
    for to in (
        "/data/ann/pets/f",
        "/data/bob/x/f",
        f"{data}/../pets/f",
        f"{data}/%2e%2e/pets/f",
        f"{data}/%252e%252e/%252e%252e/f",
        "http://elsewhere/f",
        "/etc/x",
    ):
        answer = dav.ask(verb, f"{data}/f", headers={"Destination": to})
        assert answer.status in (400, 403, 409, 502), (to, answer.status)
    assert dav.ask("GET", f"{data}/f").body == b"x"


def test_a_file_that_is_moved_over_another_takes_its_place_in_one_step(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    dav.ask("PUT", f"{data}/at", b"a longer one")
    at = on_disk(rig, data) / "at"
    missed: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            if not at.exists():
                missed.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for n in range(10):
            dav.ask("PUT", f"{data}/new", b"%d" % n)
            assert dav.ask("MOVE", f"{data}/new", headers={"Destination": f"{data}/at"}).status == 204
    finally:
        over.set()
        watcher.join()
    assert missed == []
    assert dav.ask("GET", f"{data}/at").body == b"9"
    assert dav.ask("GET", f"{data}/new").status == 404
    assert dav.ask("LOCK", f"{data}/at", LOCK.format(owner="ann").encode()).status == 200
    dav.ask("PUT", f"{data}/new", b"longer")
    assert dav.ask("MOVE", f"{data}/new", headers={"Destination": f"{data}/at"}).status == 423
    assert dav.ask("GET", f"{data}/at").body == b"9"
    settled(rig, team, len(b"9") + len(b"longer"))


@pytest.mark.parametrize("verb", ["COPY", "MOVE"])
@pytest.mark.parametrize("to", ["dir", "dir/", "dir/a/below", "kept%3B1", "kept%3F1", "kept%231"])
def test_a_copy_or_move_into_itself_its_parent_or_an_ambiguous_path_is_refused(
    dav: DavRig, data: str, verb: str, to: str
) -> None:
    assert dav.ask("MKCOL", f"{data}/dir").status == 201
    assert dav.ask("PUT", f"{data}/dir/a", b"a").status == 201
    assert dav.ask("PUT", f"{data}/kept", b"kept").status == 201
    assert dav.ask(verb, f"{data}/dir/a", headers={"Destination": f"{data}/{to}"}).status == 403
    assert dav.ask("GET", f"{data}/dir/a").body == b"a"
    assert dav.ask("GET", f"{data}/kept").body == b"kept"


def test_a_copy_that_finds_no_room_leaves_what_is_in_its_place(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    dav.ask("MKCOL", f"{data}/big")
    for name in ("one", "two"):
        assert dav.ask("PUT", f"{data}/big/{name}", bytes(3 * MIB)).status == 201
    dav.ask("MKCOL", f"{data}/old")
    assert dav.ask("PUT", f"{data}/old/kept", b"kept").status == 201
    assert dav.ask("PUT", f"{data}/file", b"file").status == 201
    for source, to in (("big", "old"), ("big/one", "file"), ("big", "file"), ("big/one", "old")):
        full = dav.ask("COPY", f"{data}/{source}", headers={"Destination": f"{data}/{to}"})
        if "/" in source:  # one file has room
            assert full.status == 204, full.body
            dav.ask("DELETE", f"{data}/{to}")
            # what was removed is charged until the files are looked at, which may be a moment later
            wait_for(lambda: in_use(rig, team) <= 6 * MIB + 8)
            dav.ask("MKCOL", f"{data}/old")
            dav.ask("PUT", f"{data}/old/kept", b"kept")
            dav.ask("PUT", f"{data}/file", b"file")
            continue
        assert full.status == 507, full.body
        assert dav.ask("GET", f"{data}/old/kept").body == b"kept"
        assert dav.ask("GET", f"{data}/file").body == b"file"
    settled(rig, team, 6 * MIB + 8)
    assert left_over(rig) == []


def test_a_copy_of_a_directory_has_all_that_was_in_it(rig: ApiRig, dav: DavRig, data: str, team: str) -> None:
    dav.ask("MKCOL", f"{data}/a")
    dav.ask("MKCOL", f"{data}/a/b")
    dav.ask("PUT", f"{data}/a/b/f", b"deep")
    assert dav.ask("COPY", f"{data}/a", headers={"Destination": f"{data}/c"}).status == 201
    assert dav.ask("COPY", f"{data}/a", headers={"Destination": f"{data}/c"}).status == 204
    assert dav.ask("GET", f"{data}/c/b/f").body == b"deep"
    alone = {"Destination": f"{data}/d", "Depth": "0"}
    assert dav.ask("COPY", f"{data}/a", headers=alone).status == 201
    assert dav.ask("GET", f"{data}/d/b/f").status == 404
    settled(rig, team, 8)


def test_a_moved_tenants_files_are_served_from_where_they_are_and_written_to_by_nobody_meanwhile(
    rig: ApiRig, dav: DavRig, data: str, team: str, tmp_path: Path
) -> None:
    """Which tree it is the dataset says, and no header: another tenant's name in one changes nothing."""
    root, body = tmp_path / "own", os.urandom(MIB)
    assert dav.ask("PUT", f"{data}/one", body).status == 201
    roots = tenant_roots(rig.root, rig.root / "isolation", rig.root / "secrets" / "isolation_key")
    asked = {"isolation": "dedicated", "data_root": str(root), "rom": 10 * MIB}

    def move() -> dict[str, Any]:
        found: dict[str, Any] = rig.ask("GET", f"/tenants/{team}", token=rig.root_user).json["move"]
        return found

    with roots.using(team):  # as somebody who reads a file
        assert rig.ask("PUT", f"/tenants/{team}", asked, token=rig.root_user).status == 200
        wait_for(lambda: "in progress" in move()["message"], message="for it to wait for who reads")
        refused = dav.ask("PUT", f"{data}/two", b"late")
        assert (refused.status, refused.json["reason"]) == (403, "TenantMoves")
        assert dav.ask("GET", f"{data}/one").body == body
    wait_for(lambda: move()["state"] == "done", message="for the files to be moved")
    forged = {"X-Tenant-ID": "default", "X-MLP-Tenant": "default"}
    got = dav.ask("GET", f"{data}/one", headers=forged)
    assert (got.status, got.body, got.headers["repr-digest"]) == (200, body, sha(body))
    assert dav.ask("PUT", f"{data}/two", b"after", headers=forged).status == 201
    assert (root / "datasets" / Path(data).relative_to("/data") / "two").read_bytes() == b"after"
    assert not on_disk(rig, data).exists()
    assert list((root / ".uploads").iterdir()) == []
    settled(rig, team, len(body) + len(b"after"))
    nobody = dav.ask("GET", f"{data}/one", token="bob-token", headers={"X-Tenant-ID": team})
    assert nobody.status == 404
    name = data.rpartition("/")[2]
    ready = {"state": "ready", "progress": 100}
    assert rig.ask("PUT", f"/users/ann/datasets/{name}:heartbeat", ready, token=rig.ann).status == 200
    assert dav.ask("DELETE", data).status == 204
    settled(rig, team, 0)
    wait_for(
        lambda: not (root / "datasets" / Path(data).relative_to("/data")).exists(),
        message="for all of it to be gone",
    )
