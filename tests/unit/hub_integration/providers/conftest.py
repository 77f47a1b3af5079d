from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider
from mlp_hub.hub_integration.providers.protocols.provider import PendingLogin
from mlp_hub.settings import Settings
from support.login.stand_in_issuer import StandIn, stand_in


@pytest.fixture
def issuer() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def provider_with(issuer: StandIn, tmp_path: Path) -> Callable[..., OidcProvider]:
    """Make the provider of a hub with these settings."""
    return lambda **environ: OidcProvider(
        Settings.load({"MLP_HOME": str(tmp_path), **issuer.environ(**environ)})
    )


@pytest.fixture
def provider(provider_with: Callable[..., OidcProvider]) -> OidcProvider:
    return provider_with()


@pytest.fixture
def begun(issuer: StandIn) -> PendingLogin:
    return PendingLogin(
        issuer=issuer.issuer,
        redirect_uri="http://localhost:8000/hub/oauth_callback",
        state="0" * 32,
        nonce="nonce",
        verifier="verifier",
        next="",
        at=time.time(),
    )
