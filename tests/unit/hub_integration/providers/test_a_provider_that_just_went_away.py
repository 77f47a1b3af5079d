"""Who comes to log in is sent to a provider that is there, also right after it went away; who is inside goes on meanwhile."""

from __future__ import annotations

import pytest

from mlp_hub.hub_integration.providers.protocols.discovery import NOW_S, READ_AGAIN_S, Discovery
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway, ProviderClient
from support.login.stand_in_issuer import StandIn

DOCUMENT = "/.well-known/openid-configuration"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_known_document_does_not_send_newcomers_to_a_provider_that_is_away(issuer: StandIn) -> None:
    clock = Clock()
    discovery = Discovery(issuer.issuer, "Stand-in", ProviderClient("Stand-in"), clock)
    await discovery.document(within_s=NOW_S)
    issuer.down = True
    clock.now += NOW_S
    for _ in range(20):  # all are told, and the provider is asked once
        with pytest.raises(ProviderAway):
            await discovery.document(within_s=NOW_S)
    assert issuer.requests[DOCUMENT] == 2
    assert (await discovery.document()).issuer == issuer.issuer, "for those inside the old one holds"
    assert issuer.requests[DOCUMENT] == 2
    issuer.down = False
    clock.now += NOW_S
    assert (await discovery.document(within_s=NOW_S)).issuer == issuer.issuer


async def test_a_document_is_read_again_when_it_is_old_and_not_before(issuer: StandIn) -> None:
    clock = Clock()
    discovery = Discovery(issuer.issuer, "Stand-in", ProviderClient("Stand-in"), clock)
    for _ in range(3):
        await discovery.document()
    clock.now += READ_AGAIN_S - 1
    await discovery.document()
    assert issuer.requests[DOCUMENT] == 1
    clock.now += 1
    await discovery.document()
    assert issuer.requests[DOCUMENT] == 2
