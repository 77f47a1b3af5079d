"""Datasets' files by WebDAV: whole or not at all, charged exactly, and nobody else's."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import LOCK, MIB, DavRig, in_use, left_over, on_disk, settled, sha, used
from support.waiting import wait_for


def test_a_new_dataset_has_its_directory_before_anything_is_sent_to_it(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    before = on_disk(rig, data).stat()
    assert dav.ask("PUT", f"{data}/one", b"1").status == 201
    after = on_disk(rig, data).stat()
    assert (before.st_ino, before.st_uid, before.st_gid, before.st_mode) == (
        after.st_ino,
        after.st_uid,
        after.st_gid,
        after.st_mode,
    )


def test_files_come_and_go_and_are_charged_exactly(rig: ApiRig, dav: DavRig, data: str, team: str) -> None:
    body = os.urandom(3 * MIB)
    assert dav.ask("PUT", f"{data}/one", body, headers={"Repr-Digest": sha(body)}).status == 201
    assert (used(rig, data), in_use(rig, team)) == (len(body), len(body))
    got = dav.ask("GET", f"{data}/one")
    assert (got.status, got.body, got.headers["repr-digest"]) == (200, body, sha(body))
    assert dav.ask("PUT", f"{data}/one", b"small").status == 204
    settled(rig, team, 5)  # at once or soon: files are looked at again after something is removed
    assert dav.ask("MKCOL", f"{data}/dir").status == 201
    assert dav.ask("COPY", f"{data}/one", headers={"Destination": f"{data}/dir/two"}).status == 201
    assert in_use(rig, team) == 10
    assert dav.ask("MOVE", f"{data}/dir", headers={"Destination": f"{data}/other"}).status == 201
    assert dav.ask("GET", f"{data}/other/two").body == b"small"
    assert dav.ask("DELETE", f"{data}/other").status == 204
    settled(rig, team, 5)
    assert dav.ask("GET", f"{data}/other/two").status == 404
    assert dav.ask("GET", f"/services/mlp{data}/one").body == b"small"


def test_a_range_is_what_was_asked_for(dav: DavRig, data: str) -> None:
    dav.ask("PUT", f"{data}/r", b"0123456789")
    part = dav.ask("GET", f"{data}/r", headers={"Range": "bytes=3-5"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"345", "bytes 3-5/10")
    assert dav.ask("GET", f"{data}/r", headers={"Range": "bytes=7-"}).body == b"789"
    assert dav.ask("GET", f"{data}/r", headers={"Range": "bytes=10-"}).status == 416


def test_a_body_that_is_not_what_was_announced_changes_nothing(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    dav.ask("PUT", f"{data}/f", b"old")
    wrong = dav.ask("PUT", f"{data}/f", b"new", headers={"Repr-Digest": sha(b"other")})
    assert wrong.status == 400
    assert "SHA-256" in wrong.json["msg"]
    for digest in ("sha-256=:x:", "sha-256=abc"):
        assert dav.ask("PUT", f"{data}/f", b"new", headers={"Repr-Digest": digest}).status == 400
    assert dav.ask("GET", f"{data}/f").body == b"old"
    settled(rig, team, 3)
    assert left_over(rig) == []


@pytest.mark.parametrize("name", ["f", "new"])
def test_an_upload_that_is_cut_leaves_the_old_file_or_none(
    rig: ApiRig, dav: DavRig, data: str, team: str, name: str
) -> None:
    dav.ask("PUT", f"{data}/f", b"old")
    connection = dav.connect()
    connection.putrequest("PUT", f"{data}/{name}")
    connection.putheader("Authorization", "Bearer ann-token")
    connection.putheader("Content-Length", str(MIB))
    connection.endheaders()
    connection.send(b"x" * 1000)
    settled(rig, team, 3 + MIB)
    connection.close()
    settled(rig, team, 3)
    assert dav.ask("GET", f"{data}/f").body == b"old"
    assert dav.ask("GET", f"{data}/new").status == 404
    wait_for(lambda: left_over(rig) == [], message="for the rest to be removed")


def test_a_process_that_is_killed_leaves_nothing_and_charges_nothing(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    dav.ask("PUT", f"{data}/f", b"old")
    connection = dav.connect()
    connection.putrequest("PUT", f"{data}/f")
    connection.putheader("Authorization", "Bearer ann-token")
    connection.putheader("Content-Length", str(5 * MIB))
    connection.endheaders()
    connection.send(b"x" * MIB)
    settled(rig, team, 3 + 5 * MIB)
    assert left_over(rig) != []
    dav.kill()
    connection.close()
    dav.start()
    settled(rig, team, 3)
    assert left_over(rig) == []
    assert dav.ask("GET", f"{data}/f").body == b"old"


def test_more_than_the_quota_is_refused_before_and_in_the_middle(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    refused = dav.ask("PUT", f"{data}/big", b"x" * (11 * MIB))
    assert refused.status == 507
    assert "quota" in refused.json["msg"]
    chunked = iter([b"x" * MIB] * 12)
    connection = dav.connect()
    headers = {"Authorization": "Bearer ann-token", "Transfer-Encoding": "chunked"}
    connection.request("PUT", f"{data}/big", chunked, headers, encode_chunked=True)
    assert connection.getresponse().status == 507
    connection.close()
    settled(rig, team, 0)
    assert left_over(rig) == []
    assert dav.ask("GET", f"{data}/big").status == 404


def test_a_body_that_is_longer_than_there_is_room_is_refused_before_any_of_it_comes(
    dav: DavRig, data: str
) -> None:
    with contextlib.closing(dav.connect()) as connection:
        connection.putrequest("PUT", f"{data}/big")
        connection.putheader("Authorization", "Bearer ann-token")
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (507, "close")
        assert "quota" in answer.read().decode()


@pytest.mark.parametrize(
    "path",
    [
        "/../x",
        "/%2e%2e/x",
        "/a/../../../etc/passwd",
        "/%2e%2e%2f%2e%2e%2fetc",
        "/a%00b",
        "/" + "x" * 300,
        "/a" * 100,
        "/.",
        "/%ff",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "MKCOL", "PROPFIND"])
def test_a_path_that_is_none_reaches_nothing(
    dav: DavRig, rig: ApiRig, data: str, path: str, method: str
) -> None:
    dav.ask("PUT", f"{data}/f", b"x")

    def there() -> list[str]:
        return sorted(str(p) for p in (rig.root / "datasets").rglob("*"))

    before = there()
    answer = dav.ask(method, data + path, b"x" if method == "PUT" else None)
    assert answer.status in (400, 403, 404, 409)
    assert b"root:" not in answer.body
    assert there() == before
    assert left_over(rig) == []


def test_empty_files_and_directories_take_room_and_are_refused_without_room(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    for n in range(60):
        assert dav.ask("MKCOL", f"{data}/d{n}").status == 201
        assert dav.ask("PUT", f"{data}/f{n}", b"").status == 201
    settled(rig, team, 20 * 4096)
    assert dav.ask("DELETE", f"{data}/f0").status == 204
    settled(rig, team, 19 * 4096)
    assert rig.ask("PUT", f"/tenants/{team}", {"rom": 19 * 4096}, token=rig.root_user).status == 200
    assert dav.ask("MKCOL", f"{data}/more").status == 507
    assert dav.ask("PUT", f"{data}/more", b"").status == 507
    prop = b'<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">text</x></prop></set></propertyupdate>'
    assert b"507" in dav.ask("PROPPATCH", f"{data}/f1", prop).body


def test_links_are_never_followed(rig: ApiRig, dav: DavRig, data: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    dav.ask("PUT", f"{data}/f", b"x")
    place = on_disk(rig, data)
    (place / "link").symlink_to(secret)
    (place / "dir").symlink_to(tmp_path)
    os.mkfifo(place / "pipe")
    for path in ("link", "dir/secret", "pipe"):
        assert dav.ask("GET", f"{data}/{path}").status == 404
    assert b"secret" not in dav.ask("PROPFIND", f"{data}/", headers={"Depth": "1"}).body
    assert dav.ask("PUT", f"{data}/dir/new", b"x").status == 409
    assert dav.ask("PUT", f"{data}/link", b"mine").status == 201
    assert secret.read_text() == "secret"
    assert not (place / "link").is_symlink()


def test_nobody_else_reads_or_writes(dav: DavRig, data: str) -> None:
    dav.ask("PUT", f"{data}/f", b"x")
    for token, status in ((None, 401), ("wrong", 401), ("bob-token", 404), ("blue-token", 404)):
        for method in ("GET", "PUT", "DELETE", "PROPFIND", "MKCOL", "LOCK"):
            assert dav.ask(method, f"{data}/f", token=token).status == status, (token, method)
    assert dav.ask("GET", f"{data}/f", token="rita-token").body == b"x"
    assert dav.ask("PUT", f"{data}/f", b"y", token="rita-token").status == 404
    basic = base64.b64encode(b"anything:ann-token").decode()
    assert dav.ask("GET", f"{data}/f", token=None, headers={"Authorization": f"Basic {basic}"}).body == b"x"
    for name in ("X-Forwarded-User", "X-Tenant-ID", "Remote-User"):
        assert dav.ask("GET", f"{data}/f", token=None, headers={name: "ann"}).status == 401


def test_files_of_tenants_are_not_served_as_pages_of_the_platform(dav: DavRig, data: str) -> None:
    dav.ask("PUT", f"{data}/x.html", b"<script>alert(1)</script>")
    got = dav.ask("GET", f"{data}/x.html")
    assert got.headers["content-type"] == "application/octet-stream"
    assert "sandbox" in got.headers["content-security-policy"]
    assert got.headers["content-disposition"] == "attachment"
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert dav.ask("PUT", f"{data}/x.html", b"y", headers=foreign).status == 403


def test_the_dataset_itself_is_deleted_by_its_own_path(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    dav.ask("PUT", f"{data}/f", b"x")
    assert dav.ask("DELETE", data).status == 403
    name = data.rpartition("/")[2]
    rig.ask("PUT", f"/users/ann/datasets/{name}:heartbeat", {"state": "error", "progress": 0}, token=rig.ann)
    assert dav.ask("DELETE", data).status == 204
    wait_for(lambda: dav.ask("GET", f"{data}/f").status == 404, message="for it to be gone")
    settled(rig, team, 0)
    wait_for(lambda: not on_disk(rig, data).exists(), message="for its files to be gone")


def test_locks_end_and_keep_others_out_until_then(dav: DavRig, data: str) -> None:
    body = (
        b'<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
        b"<D:locktype><D:write/></D:locktype></D:lockinfo>"
    )
    dav.ask("PUT", f"{data}/f", b"x")
    held = dav.ask("LOCK", f"{data}/f", body, headers={"Timeout": "Infinite"})
    assert held.status == 200
    assert b"Second-3" in held.body, held.body
    assert dav.ask("PUT", f"{data}/f", b"y").status == 423
    assert dav.ask("PUT", f"/services/mlp{data}/f", b"y").status == 423
    token = held.headers["lock-token"]
    assert dav.ask("PUT", f"{data}/f", b"y", headers={"If": f"({token})"}).status == 204
    assert dav.ask("UNLOCK", f"{data}/f", headers={"Lock-Token": token}).status == 204
    assert dav.ask("PUT", f"{data}/f", b"z").status == 204


@pytest.mark.skipif(shutil.which("litmus") is None, reason="litmus is not installed: apt-get install litmus")
def test_litmus_passes(dav: DavRig, data: str, tmp_path: Path) -> None:
    dav.ask("PUT", f"{data}/f", b"x")
    run: Any = subprocess.run(
        ["litmus", f"http://127.0.0.1:{dav.port}{data}/", "ann", "ann-token"],
        cwd=tmp_path,
        env={**os.environ, "TESTS": "basic copymove props locks http"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "FAIL" not in run.stdout, run.stdout


def test_the_owner_text_of_a_lock_is_bounded(dav: DavRig, data: str) -> None:
    dav.ask("PUT", f"{data}/f", b"x")
    long = dav.ask("LOCK", f"{data}/f", LOCK.format(owner="o" * 100_000).encode())
    assert (long.status, "at most 2048 are kept" in long.json["msg"]) == (413, True)
    held = dav.ask("LOCK", f"{data}/f", LOCK.format(owner="<D:href>me</D:href>").encode())
    assert held.status == 200
    token = {"Lock-Token": held.headers["lock-token"]}
    assert dav.ask("UNLOCK", f"{data}/f", headers=token).status == 204


@pytest.mark.parametrize("depth", [None, "infinity", "2"])
def test_all_that_is_below_is_not_listed_at_once(dav: DavRig, data: str, depth: str | None) -> None:
    dav.ask("MKCOL", f"{data}/dir")
    asked = dav.ask("PROPFIND", f"{data}/", headers={} if depth is None else {"Depth": depth})
    assert (asked.status, b"<D:propfind-finite-depth/>" in asked.body) == (403, True)
    assert dav.ask("PROPFIND", f"{data}/", headers={"Depth": "1"}).status == 207


def test_a_sparse_file_gives_back_no_storage_that_it_never_took(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    # the service may measure at any moment from the first removal on, and then counts the hole: there must be room for it
    hole = on_disk(rig, data) / "hole"
    assert dav.ask("PUT", f"{data}/real", bytes(4 * MIB)).status == 201
    with hole.open("wb") as file:
        file.truncate(5 * MIB)  # as the owner's notebook may
    assert dav.ask("DELETE", f"{data}/hole").status == 204
    settled(rig, team, 4 * MIB)
    with hole.open("wb") as file:
        file.truncate(5 * MIB)
    assert dav.ask("PUT", f"{data}/hole", b"now small").status == 204
    settled(rig, team, 4 * MIB + 9)
    assert dav.ask("PUT", f"{data}/more", bytes(7 * MIB)).status == 507, "the quota holds"


def test_a_request_of_megabytes_of_headers_is_refused(dav: DavRig, data: str) -> None:
    assert dav.ask("GET", f"{data}/f", headers={"X-Long": "x" * 200_000}).status == 413
    assert dav.ask("GET", f"{data}/{'f' * 200_000}").status in {413, 414}
