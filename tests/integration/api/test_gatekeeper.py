"""Requests and WebSockets pass one gatekeeper in one order: find, identify, check the browser, limit, authorise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from mlp_hub.api.edge.limits import Rate
from support.rigs.api_rig import PLENTY, ApiRig

Ask = Callable[..., int]
JOB = "/users/ann/jobs/a"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ApiRig]:
    with ApiRig(tmp_path, rates={**PLENTY, "api": Rate(0.001, 3)}) as rig:
        yield rig


@pytest.fixture(params=["request", "websocket"])
def ask(request: pytest.FixtureRequest, rig: ApiRig) -> Ask:
    """Give what asks for a path in either way and returns the status."""

    def http(path: str, **sent: str | Mapping[str, str] | None) -> int:
        return rig.ask("GET", path, **sent).status  # type: ignore[arg-type]

    def websocket(path: str, **sent: str | Mapping[str, str] | None) -> int:
        try:
            with rig.socket(f"{path}:stream", **sent):  # type: ignore[arg-type]
                return 200
        except InvalidStatus as refused:
            return refused.response.status_code

    return http if request.param == "request" else websocket


def test_an_unknown_caller_does_not_learn_which_routes_exist(ask: Ask) -> None:
    assert [ask(path) for path in (JOB, "/queue", "/nothing", "/users/ann/jobs/b")] == [401] * 4
    assert ask("/nothing", token="wrong") == 401


def test_another_sites_page_is_refused_before_it_takes_of_its_persons_share(rig: ApiRig, ask: Ask) -> None:
    _, browser = rig.session("ann", rig.ann)
    for _ in range(6):
        assert ask("/nothing", headers={**browser, "Sec-Fetch-Site": "cross-site"}) == 403
    assert ask("/nothing", headers=browser) == 403  # there is no such thing: its share is whole


def test_missing_and_forbidden_routes_count_as_requests(rig: ApiRig, ask: Ask) -> None:
    paths = ["/nothing", "/queue", "/users/bob/jobs/x", "/nothing", "/queue", JOB]
    assert [ask(path, token=rig.ann) for path in paths] == [403, 403, 403, 429, 429, 429]
    assert ask("/nothing", token=rig.bob) == 403
