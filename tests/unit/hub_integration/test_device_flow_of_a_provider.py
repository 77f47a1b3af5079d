"""The hub's half of the device flow: which logins of a terminal are taken, once, and where the flow may begin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from mlp_hub.hub_integration.providers.login.device import FRESH_S, DeviceFlow, begins_at
from mlp_hub.hub_integration.providers.protocols.discovery import Document
from mlp_hub.hub_integration.providers.protocols.provider import (
    LoginEnded,
    ProviderIdentity,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway
from mlp_hub.hub_integration.tokens.cli_codes import Wrong
from mlp_language.message import msg
from support.hubs.jupyterhub_database import memory_of_logins

ANN = ProviderIdentity("https://sso.example", "s-1", "ann", "", False, (), False)
NOW = 1_000_000.0


def id_token(made: float = NOW, **more: Any) -> str:
    return jwt.encode({"iat": int(made), "sub": "s-1", **more}, "k" * 32, "HS256")


class Asked:
    """Stands for the provider: its answer is the test's."""

    title = "Example"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []
        self.discovery = self

    async def identity_of(self, access_token: str, id_token: str, *, client_id: str) -> Any:
        self.asked.append((access_token, id_token, client_id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def document(self) -> Document:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def db() -> Iterator[Any]:
    with memory_of_logins() as made:
        yield made


def flow_of(answer: Any, now: float = NOW) -> DeviceFlow:
    made = DeviceFlow.__new__(DeviceFlow)
    made.client_id, made.skew_s, made.clock = "cli", 0.0, lambda: now
    made.provider = Asked(answer)  # type: ignore[assignment]
    return made


def whose(db: Any, flow: DeviceFlow, token: str) -> ProviderIdentity:
    return asyncio.run(flow.whose(db, "at", token))


def test_a_login_is_checked_as_the_terminals_client_and_gives_one_token(db: Any) -> None:
    flow, token = flow_of(ANN), id_token()
    assert whose(db, flow, token) is ANN
    assert flow.provider.asked == [("at", token, "cli")]  # type: ignore[attr-defined]
    for again in (flow, flow_of(ANN)):  # the other one of a hub that was started anew
        with pytest.raises(Wrong, match="was used"):
            whose(db, again, token)
    assert whose(db, flow, id_token(jti="another")) is ANN


def test_a_login_is_the_same_however_its_signature_is_written(db: Any) -> None:
    flow, token = flow_of(ANN), id_token()
    whose(db, flow, token)
    with pytest.raises(Wrong, match="was used"):
        whose(db, flow, f"{token.rpartition('.')[0]}.{'A' * 43}")


def test_a_login_that_is_old_is_taken_no_more(db: Any) -> None:
    assert whose(db, flow_of(ANN, NOW + FRESH_S), id_token()) is ANN
    with pytest.raises(Wrong, match="too old"):
        whose(db, flow_of(ANN, NOW + FRESH_S + 1), id_token())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            TokenRefused(msg("The ID token is for another audience than {audience}.", audience="cli")),
            "for another audience than cli",
        ),
        (LoginEnded("session"), "no longer knows this login"),
        (LoginEnded("disabled"), "no longer knows this login"),
        (
            ProviderUnreachable(msg("{title} does not answer ({why}).", title="Example", why="x")),
            "does not answer",
        ),
    ],
)
def test_a_login_that_the_provider_does_not_confirm_gives_no_token(db: Any, answer: Any, said: str) -> None:
    with pytest.raises(Wrong, match=said):
        whose(db, flow_of(answer), id_token())


def document(**fields: str) -> Document:
    both = {
        "token_endpoint": "https://sso.example/token",
        "device_authorization_endpoint": "https://sso.example/device",
    }
    return Document("https://sso.example", {**both, **fields})


def test_a_terminal_is_told_where_to_begin() -> None:
    told = asyncio.run(flow_of(document()).device_endpoints())
    assert told == {
        "title": "Example",
        "client_id": "cli",
        "scope": "openid profile email",
        "begin": "https://sso.example/device",
        "token": "https://sso.example/token",
    }


def test_only_the_browser_login_remains_without_a_device_flow_or_a_provider() -> None:
    assert asyncio.run(flow_of(document(device_authorization_endpoint="")).device_endpoints()) is None
    assert asyncio.run(flow_of(ProviderAway(msg("gone"))).device_endpoints()) is None


@pytest.mark.parametrize(
    "where",
    [
        "http://sso.example/device",
        "http://localhost/device",
        "ftp://sso.example/",
        "//sso.example/",
        "x",
        "https://[/",
    ],
)
def test_nobody_is_sent_where_it_is_in_the_clear(where: str) -> None:
    assert begins_at(document(device_authorization_endpoint=where)) == ""


def test_a_provider_on_this_machine_may_be_in_the_clear_at_its_own_port() -> None:
    here = {"token_endpoint": "http://localhost:8080/token"}
    assert begins_at(document(**here, device_authorization_endpoint="http://localhost:8080/device"))
    assert not begins_at(document(**here, device_authorization_endpoint="http://localhost:8081/device"))
