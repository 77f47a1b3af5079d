"""Parts of the cluster that the objects of tenants depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import ip_address

from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import ENDPOINT_SLICES, QUEUES, SELF_REVIEWS, Object

_API = "kubernetes"
"""Given: name of the API's own service, in the namespace `default`."""


def addresses_of(node: Object) -> frozenset[str]:
    """Return the addresses of a node that are in no private network: those that a way to the outside would lead to."""
    found = node.get("status", {}).get("addresses", ())
    return public(each["address"] for each in found if each["type"] in ("InternalIP", "ExternalIP"))


async def api_addresses(client: KubernetesClient) -> Collection[str]:
    """Return the same of the cluster's API."""
    found = await client.get(ENDPOINT_SLICES, _API, "default")
    endpoints = [] if found is None else found.get("endpoints") or []
    return public(address for each in endpoints for address in each["addresses"])


async def who_am_i(client: KubernetesClient) -> str:
    """Return the name by which the cluster knows who asks with this client."""
    found = await client.review(SELF_REVIEWS)
    name: str = found["userInfo"]["username"]
    return name


async def has_volcano(client: KubernetesClient) -> bool:
    """Whether there are queues."""
    return await client.serves(QUEUES)


def public(addresses: Iterable[str]) -> frozenset[str]:
    """Return those of these addresses that are in no private network, as networks of one address."""
    found = set()
    for each in addresses:
        try:
            address = ip_address(each)
        except ValueError:  # a host's name
            continue
        if not address.is_private:
            found.add(f"{address}/{address.max_prefixlen}")
    return frozenset(found)
