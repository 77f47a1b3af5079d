"""Names of tenants' programs are no person's, whatever a provider calls them."""

from __future__ import annotations

import pytest

from mlp_hub.domain.tenants.account_names import is_valid
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity
from mlp_hub.hub_integration.providers.records.identities import new_name


@pytest.mark.parametrize(
    "claimed", ["svc-nightly", "SVC-nightly", "svc-nightly@example.org", " svc-x", "svc- x", "svc-é"]
)
def test_nobody_of_a_provider_is_called_like_a_tenants_program(claimed: str) -> None:
    identity = ProviderIdentity("https://sso.example", "s-1", claimed, "", False, (), False)
    name = new_name(identity, lambda _: False)
    assert is_valid(name)
    assert not is_service(name)
