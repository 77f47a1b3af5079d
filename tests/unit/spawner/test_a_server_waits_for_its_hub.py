"""A notebook server asks a hub that is restarted again; any other failure is its user's to see at once."""

from __future__ import annotations

from typing import Any

import pytest
from jupyterhub.services.auth import HubAuth
from tornado.web import HTTPError

from mlp_spawner import launcher

AWAY = HTTPError(500, "Failed to connect to Hub API at 'http://hub:8081/hub/api'.")


def asking(monkeypatch: pytest.MonkeyPatch, *comes: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Have the hub answer so, one after the other; return what it is asked."""
    asked, answers = [], list(comes)

    async def ask(_auth: Any, method: str, url: str, /, **more: Any) -> Any:
        more.pop("allow_403")  # as JupyterHub does
        asked.append((method, url, more))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(HubAuth, "_api_request", ask)
    monkeypatch.setattr(launcher, "_HUB_AGAIN_S", 0.0)
    launcher._wait_for_hub()
    return asked


async def test_a_hub_that_takes_no_connection_is_asked_again_with_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = asking(monkeypatch, AWAY, AWAY, {"name": "ann"})
    auth: Any = HubAuth
    found = await auth._api_request(
        None, "GET", "/user", headers={"Authorization": "token x"}, allow_403=True
    )
    assert found == {"name": "ann"}
    assert asked == [("GET", "/user", {"headers": {"Authorization": "token x"}})] * 3


@pytest.mark.parametrize(
    ("error", "patience_s"),
    [(HTTPError(502, "Failed to check authorization (upstream problem)"), 30.0), (AWAY, 0.0)],
)
async def test_other_failures_and_a_hub_that_stays_away_are_told(
    monkeypatch: pytest.MonkeyPatch, error: HTTPError, patience_s: float
) -> None:
    asked = asking(monkeypatch, error)
    monkeypatch.setattr(launcher, "_HUB_S", patience_s)
    auth: Any = HubAuth
    with pytest.raises(HTTPError):
        await auth._api_request(None, "GET", "/user", allow_403=True)
    assert len(asked) == 1
