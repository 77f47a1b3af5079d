"""Lists of tenants, members and tokens: page by page, and nothing of them is left out or comes twice."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from support.rigs.api_rig import ApiRig

MANY = 7


def walked(rig: ApiRig, path: str, token: str, limit: int = 3) -> list[Any]:
    """Return a list, fetched page by page."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = rig.ask("GET", f"{path}?limit={limit}{cursor}", token=token)
        assert page.status == 200, page.body
        assert len(page.json) <= limit
        found += page.json
        following = page.headers.get("x-next-cursor")
        if following is None:
            return found
        assert len(page.json) == limit
        cursor = f"&cursor={quote(following, safe='')}"


def test_tenants_and_members_come_in_pages_by_name(rig: ApiRig) -> None:
    for n in range(MANY):
        rig.tenant(f"pages{n}", "rita", members=("ann",))
    for token in (rig.root_user, rig.ann):
        names = [one["name"] for one in walked(rig, "/tenants", token)]
        assert names == sorted(set(names))
        assert {f"pages{n}" for n in range(MANY)} <= set(names)
        assert names == [one["name"] for one in rig.ask("GET", "/tenants", token=token).json]
    whole = rig.ask("GET", "/tenants/red/members", token=rig.rita).json
    assert walked(rig, "/tenants/red/members", rig.rita, limit=1) == whole
    assert len(whole) > 1


def test_tokens_come_in_pages_the_newest_first(rig: ApiRig) -> None:
    for n in range(MANY):
        asked = {"note": f"page {n}"}
        assert rig.ask("POST", "/users/ann/tokens", asked, token=rig.ann).status == 201
    found = walked(rig, "/users/ann/tokens", rig.ann)
    assert found == rig.ask("GET", "/users/ann/tokens?limit=1000", token=rig.ann).json
    assert len({one["id"] for one in found}) == len(found) >= MANY
    assert len(walked(rig, "/users/ann/tokens", rig.ann, limit=1)) == len(found)


@pytest.mark.parametrize("path", ["/tenants", "/tenants/red/members", "/users/rita/tokens"])
@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=", "page=2"])
def test_an_invalid_page_is_refused(rig: ApiRig, path: str, query: str) -> None:
    said = rig.ask("GET", f"{path}?{query}", token=rig.rita)
    assert (said.status, said.json["reason"]) == (403, "Invalid")


@pytest.mark.parametrize("path", ["/tenants", "/tenants/red/members"])
def test_a_cursor_is_a_place_and_opens_nothing(rig: ApiRig, path: str) -> None:
    said = rig.ask("GET", f"{path}?cursor=~~~", token=rig.rita)
    assert (said.status, said.json) == (200, [])
    if path != "/tenants":
        assert rig.ask("GET", f"{path}?cursor=a", token=rig.bob).status == 403
