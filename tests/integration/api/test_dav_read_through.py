"""Files of datasets that are read through, over WebDAV and by `mlp data`: straight from a source, which may be hostile."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

import mlp.data
from support.rigs.api_rig import Answer, ApiRig
from support.rigs.dav_rig import DavAt
from support.stores.object_stores import KEYS, FalseStore, RealStore, real_store
from support.waiting import wait_for

BIG = os.urandom(3 << 20)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def store() -> Iterator[RealStore]:
    with real_store() as found:
        found.make("photos")
        for key, data in {
            "cats/one": b"0123456789",
            "cats/deep/big": BIG,
            "cats/deep/odd & 百 +%41": b"odd",
            "cats-of-others": b"x",
            "cats/deep.txt": b"text",
        }.items():
            found.put("photos", f"pets/{key}", data)
        found.put("photos", "secret", b"of somebody else")
        yield found


@pytest.fixture(scope="module")
def false() -> Iterator[FalseStore]:
    with FalseStore() as found:
        yield found


@pytest.fixture(scope="module")
def rig(store: RealStore, false: FalseStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    made = ApiRig(tmp_path_factory.mktemp("api"))
    made.endpoints = (store.host, false.host)
    with made as found:
        found.run(found.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann"))
        yield found


@pytest.fixture(scope="module")
def dav(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavAt]:
    found = DavAt(rig, tmp_path_factory.mktemp("files"))
    found.start()
    yield found
    found.stop()


def add(rig: ApiRig, url: str, endpoint: str, secret: str | None = None) -> str:
    name = f"pets{next(_numbers)}"
    source = {"url": url, "endpoint": endpoint, "secret": secret, "mode": "read-through"}
    made = rig.ask("POST", "/users/ann/datasets", {"name": name, "size": 0, "source": source}, token=rig.ann)
    assert made.status == 201, made.body
    path = f"/users/ann/datasets/{name}"
    wait_for(
        lambda: rig.ask("GET", path, token=rig.ann).json["state"] == "ready",
        message=f"for {name} to be looked at",
    )
    return name


@pytest.fixture(scope="module")
def pets(rig: ApiRig, store: RealStore, dav: DavAt) -> str:
    del dav
    return add(rig, "s3://photos/pets/cats", store.url, "store")


def test_files_are_listed_and_come_as_they_are_at_the_source(
    dav: DavAt, rig: ApiRig, pets: str, tmp_path: Path
) -> None:
    client = dav.client()
    listed = mlp.data.ls(pets, client=client).data
    assert [(one["name"], one.get("size")) for one in listed] == [
        ("deep", 0),
        ("deep.txt", 4),
        ("one", 10),
    ]
    mlp.data.pull(pets, tmp_path / "here", client=client, progress=False)
    found = {
        str(p.relative_to(tmp_path / "here")): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()
    }
    assert found == {"one": b"0123456789", "deep/big": BIG, "deep.txt": b"text", "deep/odd & 百 +%41": b"odd"}
    mlp.data.pull(f"{pets}:deep.txt", tmp_path / "text", client=client, progress=False)
    assert (tmp_path / "text").read_bytes() == b"text"
    assert rig.ask("GET", f"/users/ann/datasets/{pets}", token=rig.ann).json["used"] == 0, (
        "nothing of it is here"
    )
    assert not list(rig.root.rglob("*big*"))


def test_a_range_comes_from_the_source_and_no_more_of_it(dav: DavAt, pets: str) -> None:
    part = dav.ask(
        "GET", f"/data/ann/{pets}/one", {"Authorization": "Bearer ann-token", "Range": "bytes=3-5"}
    )
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"345", "bytes 3-5/10")
    end = {"Authorization": "Bearer ann-token", "Range": f"bytes={len(BIG) - 5}-"}
    assert dav.ask("GET", f"/data/ann/{pets}/deep/big", end).body == BIG[-5:]
    head = dav.ask("HEAD", f"/data/ann/{pets}/deep/big")
    assert (head.status, head.headers["content-length"]) == (200, str(len(BIG)))
    same = {"Authorization": "Bearer ann-token", "If-None-Match": head.headers["etag"]}
    assert dav.ask("GET", f"/data/ann/{pets}/deep/big", same).status == 304


@pytest.mark.parametrize("method", ["PUT", "MKCOL", "DELETE", "PROPPATCH", "LOCK", "MOVE"])
def test_nothing_is_written_to_it(dav: DavAt, pets: str, method: str) -> None:
    headers = {"Authorization": "Bearer ann-token", "Destination": f"/data/ann/{pets}/two"}
    said = dav.ask(method, f"/data/ann/{pets}/one", headers, b"x" if method == "PUT" else None)
    assert (said.status, said.json["reason"]) == (403, "WrongState")
    assert "is read through from s3://photos/pets/cats/" in said.json["msg"]


def test_requests_cannot_leave_the_contents_of_the_dataset(dav: DavAt, rig: ApiRig, pets: str) -> None:
    for path in ("../../secret", "%2e%2e/%2e%2e/secret", "deep/../../../secret", "..%2f..%2fsecret"):
        assert dav.ask("GET", f"/data/ann/{pets}/{path}").status in {403, 404}, path
    for path in ("none", "on", "dee", "one/below"):
        assert dav.ask("GET", f"/data/ann/{pets}/{path}").status == 404, path
    bob = {"Authorization": "Bearer bob-token"}
    assert dav.ask("GET", f"/data/ann/{pets}/one", bob).status == 404
    uid = rig.ask("GET", f"/users/ann/datasets/{pets}:read", token=rig.ann).json["uid"]
    for token in ("ann-token", "bob-token", rig.rita, rig.notebook):
        said = rig.ask("PUT", "/stored:open", {"uid": uid, "path": "one"}, token=token)
        assert said.status == 403, "who reads gets no address that others can use"
    mine = rig.ask("PUT", "/stored:open", {"uid": uid, "path": "one"}, token=rig.data)
    assert mine.status == 200
    assert KEYS["secret_access_key"] not in mine.body.decode()


def page(*items: tuple[str, int, str], more: str = "") -> bytes:
    found = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>&quot;{tag}&quot;</ETag>"
        "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key, size, tag in items
    )
    return f"<?xml version='1.0'?><ListBucketResult>{found}{more}</ListBucketResult>".encode()


@pytest.fixture
def hostile(rig: ApiRig, false: FalseStore, dav: DavAt) -> Iterator[tuple[str, FalseStore]]:
    del dav
    false.listed = [("k", 3, "tag")]
    name = add(rig, "s3://photos/", false.url)
    yield name, false
    false.pages, false.elsewhere = None, ""


BOMB = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<ListBucketResult><Contents><Key>&b;</Key></Contents></ListBucketResult>"""


@pytest.mark.parametrize(
    "said",
    [
        BOMB,
        b"no XML",
        b"",
        page(("k", -3, "tag")),
        page(("k", 3, "t\u00e4g")),
        page(("k", 1 << 70, "tag")),
        page(("k", 3, "t" * 300)),
        b"<a>" + b"x" * (9 << 20),
    ],
)
def test_a_list_that_is_none_is_an_error_of_the_source(
    dav: DavAt, hostile: tuple[str, FalseStore], said: bytes
) -> None:
    name, false = hostile
    false.pages = lambda _: said
    assert dav.ask("GET", f"/data/ann/{name}/k").status == 502
    listed = dav.ask("PROPFIND", f"/data/ann/{name}/", {"Authorization": "Bearer ann-token", "Depth": "1"})
    assert (listed.status, b"object" in listed.body or b"answer" in listed.body) == (502, True)


def test_impossible_names_are_not_shown_and_no_listing_is_endless(
    dav: DavAt, hostile: tuple[str, FalseStore]
) -> None:
    name, false = hostile
    odd = [(key, 1, "tag") for key in ("..", "a//b", "x" * 300, "fine")]
    false.pages = lambda _: page(*odd, more="<NextContinuationToken>again</NextContinuationToken>")
    listed = dav.ask("PROPFIND", f"/data/ann/{name}/", {"Authorization": "Bearer ann-token", "Depth": "1"})
    assert listed.status == 207
    assert listed.body.count(b"<ns0:href>") + listed.body.count(b"<D:href>") == 2, listed.body


def ask_object(dav: DavAt, hostile: tuple[str, FalseStore], *answer: Any) -> Answer:
    name, false = hostile
    false.pages = lambda _: page(("k", 3, "tag"))
    false.answer = lambda _key, _headers: answer
    return dav.ask("GET", f"/data/ann/{name}/k")


def test_an_object_that_changed_is_a_conflict_and_one_that_is_refused_says_so(
    dav: DavAt, hostile: tuple[str, FalseStore]
) -> None:
    assert ask_object(dav, hostile, 200, {}, b"123").body == b"123"
    assert ask_object(dav, hostile, 412, {}, b"").status == 409
    assert ask_object(dav, hostile, 200, {}, b"12345").status == 409
    assert ask_object(dav, hostile, 404, {}, b"<Error><Code>NoSuchKey</Code></Error>").status == 404
    denied = ask_object(dav, hostile, 403, {}, b"<Error><Code>AccessDenied</Code></Error>")
    assert (denied.status, "AccessDenied" in denied.json["msg"]) == (502, True)
    odd = ask_object(dav, hostile, 500, {}, b"<script>alert(1)</script>")
    assert (odd.status, "script" in odd.json["msg"]) == (502, False)


def test_a_response_that_the_source_cuts_is_never_reported_as_whole(
    dav: DavAt, hostile: tuple[str, FalseStore]
) -> None:
    name, false = hostile
    size = 2 << 20
    false.pages = lambda _: page(("k", size, "tag"))
    false.answer = lambda _key, _headers: (200, {"Content-Length": str(size)}, b"x" * (1 << 20))
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        dav.ask("GET", f"/data/ann/{name}/k")


def test_no_redirect_is_followed(dav: DavAt, hostile: tuple[str, FalseStore]) -> None:
    name, false = hostile
    false.elsewhere = "http://127.0.0.1:1/secret"
    said = dav.ask("GET", f"/data/ann/{name}/k")
    assert (said.status, json.loads(said.body)["msg"].endswith("returns 307 for photos")) == (502, True)


LIST = {"Authorization": "Bearer ann-token", "Depth": "1"}


@pytest.mark.parametrize(
    "said",
    [
        b"<a>" + b"<b/>" * 2_000_000 + b"</a>",
        b"<a>" * 1_000_000,
        b"<a " + b" ".join(b'a%x=""' % n for n in range(700_000)) + b"/>",
        b"<a>" + b"<Contents>" * 20 + b"</Contents>" * 20 + b"<b>" + b"x" * (2 << 20) + b"</b></a>",
    ],
    ids=["elements", "depth", "attributes", "text"],
)
def test_attacks_a_listing_that_is_small_on_the_wire_and_huge_in_memory_is_rejected(
    dav: DavAt, hostile: tuple[str, FalseStore], said: bytes
) -> None:
    name, false = hostile
    false.pages = lambda _: said
    assert dav.process is not None
    before = peak_of(dav.process.pid)
    asked = [
        threading.Thread(target=dav.ask, args=("PROPFIND", f"/data/ann/{name}/", LIST)) for _ in range(3)
    ]
    for one in asked:
        one.start()
    for one in asked:
        one.join()
    assert dav.ask("PROPFIND", f"/data/ann/{name}/", LIST).status == 502
    assert peak_of(dav.process.pid) - before < 150 << 20


def peak_of(pid: int) -> int:
    """Return how much memory a process had at most so far, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def test_attacks_a_list_with_ever_another_page_and_nothing_in_it_comes_to_an_end(
    dav: DavAt, hostile: tuple[str, FalseStore]
) -> None:
    name, false = hostile
    numbers = itertools.count()
    false.pages = lambda _: page(more=f"<NextContinuationToken>{next(numbers)}</NextContinuationToken>")
    said = dav.ask("PROPFIND", f"/data/ann/{name}/", LIST)
    assert (said.status, said.json["msg"]) == (
        502,
        "the source lists this directory without an end; list one below it",
    )
    assert next(numbers) <= 201


def test_attacks_dates_and_keys_of_a_hostile_source_break_no_list(
    dav: DavAt, hostile: tuple[str, FalseStore]
) -> None:
    name, false = hostile
    for when in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1960-01-01T00:00:00", "2026-01-01"):
        told = page(("k", 3, "tag")).replace(b"2026-01-01T00:00:00.000Z", when.encode())
        false.pages = lambda _, told=told: told  # type: ignore[misc]
        false.answer = lambda _key, _headers: (200, {}, b"123")
        assert dav.ask("PROPFIND", f"/data/ann/{name}/", LIST).status in {207, 502}, when
        assert dav.ask("GET", f"/data/ann/{name}/k").status in {200, 502}, when
    odd = [
        "%00",
        "a%0d%0aX: y",
        "%2e%2e/%2e%2e/etc/passwd",
        "..%2fsecret",
        "a\\..\\b",
        "<b>&",
        "%ff",
        "a%252fb",
    ]
    for key in odd:
        false.pages = lambda _, key=key: page((key, 1, "tag"))  # type: ignore[misc]
        said = dav.ask("PROPFIND", f"/data/ann/{name}/", LIST)
        assert said.status in {207, 502}, key
        assert b"passwd" not in said.body
        assert "x" not in said.headers, key


def test_attacks_no_part_of_a_secret_appears_in_answers_or_logs(
    dav: DavAt, rig: ApiRig, false: FalseStore, caplog: pytest.LogCaptureFixture
) -> None:
    false.listed = [("k", 3, "tag")]
    name = add(rig, "s3://photos/", false.url, "store")
    uid = rig.ask("GET", f"/users/ann/datasets/{name}:read", token=rig.ann).json["uid"]
    asked = rig.ask("PUT", "/stored:open", {"uid": uid, "path": "k"}, token=rig.root_user)
    assert (asked.status, asked.json["reason"]) == (403, "Forbidden"), "an administrator is not told either"
    mirrored: list[str] = []

    def mirror(_: object) -> bytes:
        mirrored.append(false.asked[-1])
        return f"<Error><Code>{false.asked[-1]}</Code><Message>{false.asked[-1]}</Message></Error>".encode()

    false.pages = mirror
    try:
        for method, path in (("PROPFIND", ""), ("GET", "k"), ("HEAD", "k")):
            said = dav.ask(method, f"/data/ann/{name}/{path}", LIST)
            assert said.status == 502
            for hidden in (*KEYS.values(), "X-Amz-"):
                assert hidden not in f"{said.headers}{said.body!r}"
    finally:
        false.pages = None
    assert "X-Amz-Signature" in mirrored[0]
    written = dav.socket.with_name("dav.log").read_text() + caplog.text
    assert "X-Amz-" not in written
    assert KEYS["access_key_id"] not in written


def test_attacks_files_of_a_source_do_not_come_together(
    dav: DavAt, rig: ApiRig, pets: str, false: FalseStore
) -> None:
    """Each name would be some requests, each of which a source may answer slowly: no thread waits for that."""
    mine = {"Authorization": "Bearer ann-token"}
    answer = dav.ask("GET", f"/data/ann/{pets}?contents=one&contents=none&contents=deep.txt", mine)
    assert (answer.status, answer.body) == (200, b"")
    false.listed = [(f"k{n}", 1, "tag") for n in range(10)]
    hostile = add(rig, "s3://photos", false.url)
    asked = len(false.asked)
    names = "&".join(f"contents=k{n}" for n in range(10))
    assert dav.ask("GET", f"/data/ann/{hostile}?{names}", mine).status == 200
    assert len(false.asked) == asked
    kind = {**mine, "Content-Type": "application/vnd.mlp-hub.files"}
    assert dav.ask("POST", f"/data/ann/{pets}", kind, b"1 x y\nz").status == 403
