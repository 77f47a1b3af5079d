"""A large file comes to a dataset in parts: what came of it stays, and nobody sees half of it."""

from __future__ import annotations

import os

from mlp_hub.executors.shared_volume.trees.sizes import ENTRY
from support.rigs.api_rig import Answer, ApiRig
from support.rigs.dav_rig import LOCK, MIB, DavRig, settled, sha
from support.waiting import wait_for


def part(dav: DavRig, path: str, body: bytes, begin: int, end: int, **more: str) -> Answer:
    headers = {"Content-Range": f"bytes {begin}-{end - 1}/{len(body)}", "Repr-Digest": sha(body), **more}
    return dav.ask("PUT", path, body[begin:end], headers=headers)


def here(dav: DavRig, path: str, body: bytes) -> Answer:
    asked = {"Content-Range": f"bytes */{len(body)}", "Repr-Digest": sha(body)}
    return dav.ask("PUT", path, b"", headers=asked)


def test_a_large_file_comes_in_parts_and_nobody_sees_half_of_it(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    body = os.urandom(3 * MIB)
    dav.ask("PUT", f"{data}/f", b"old")
    first = part(dav, f"{data}/f", body, 0, MIB)
    assert (first.status, first.headers["upload-offset"]) == (202, str(MIB))
    assert dav.ask("GET", f"{data}/f").body == b"old"
    settled(rig, team, 3 + MIB)
    listed = dav.ask("PROPFIND", f"{data}/", headers={"Depth": "1"})
    assert listed.body.count(b"<ns0:response>") + listed.body.count(b"<D:response>") == 2
    other = part(dav, f"{data}/f", body, 2 * MIB, 3 * MIB)
    assert (other.status, other.headers["upload-offset"]) == (409, str(MIB))
    dav.kill()
    dav.start()
    asked = here(dav, f"{data}/f", body)
    assert (asked.status, asked.headers["upload-offset"]) == (202, str(MIB))
    settled(rig, team, 3 + MIB)
    assert part(dav, f"{data}/f", body, MIB, 2 * MIB).status == 202
    assert part(dav, f"{data}/f", body, 2 * MIB, 3 * MIB).status == 204
    got = dav.ask("GET", f"{data}/f")
    assert (got.body, got.headers["repr-digest"]) == (body, sha(body))
    settled(rig, team, 3 * MIB)


def test_received_bytes_of_an_interrupted_part_are_kept(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    body = os.urandom(2 * MIB)
    connection = dav.connect()
    connection.putrequest("PUT", f"{data}/f")
    for name, value in {
        "Authorization": "Bearer ann-token",
        "Content-Length": str(len(body)),
        "Content-Range": f"bytes 0-{len(body) - 1}/{len(body)}",
        "Repr-Digest": sha(body),
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body[:MIB])
    settled(rig, team, 2 * MIB + ENTRY)
    connection.close()

    def came() -> int:
        asked = here(dav, f"{data}/f", body)
        return int(asked.headers["upload-offset"]) if asked.status == 202 else 0

    begin = wait_for(came, message="for what came to be told")
    settled(rig, team, begin)
    assert part(dav, f"{data}/f", body, begin, len(body)).status == 201
    assert dav.ask("GET", f"{data}/f").body == body
    settled(rig, team, len(body))


def test_parts_of_another_file_than_was_announced_change_nothing(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    body = os.urandom(1000)
    dav.ask("PUT", f"{data}/f", b"old")
    wrong = {"Content-Range": "bytes 0-999/1000", "Repr-Digest": sha(b"other")}
    answer = dav.ask("PUT", f"{data}/f", body, headers=wrong)
    assert (answer.status, "differs from Repr-Digest" in answer.json["msg"]) == (400, True)
    for bad in (
        "bytes 0-999/500",
        "bytes 5-4/1000",
        "bytes 0-998/1000",
        "bytes */*",
        "lines 0-999/1000",
        "bytes */0",
    ):
        headers = {"Content-Range": bad, "Repr-Digest": sha(body)}
        assert dav.ask("PUT", f"{data}/f", body, headers=headers).status == 400, bad
    assert dav.ask("PUT", f"{data}/f", body, headers={"Content-Range": "bytes 0-999/1000"}).status == 400
    assert part(dav, f"{data}/no/such", body, 0, 1000).status == 409
    assert dav.ask("GET", f"{data}/f").body == b"old"
    held = dav.ask("LOCK", f"{data}/f", LOCK.format(owner="me").encode())
    assert part(dav, f"{data}/f", body, 0, 1000).status == 423
    dav.ask("UNLOCK", f"{data}/f", headers={"Lock-Token": held.headers["lock-token"]})
    big = os.urandom(11 * MIB)
    assert part(dav, f"{data}/f", big, 0, len(big)).status == 507
