"""Addresses of the internet, and the endpoints that an operator allows beside them. Pure: nothing is looked up here."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

_INNER = tuple(
    map(
        ipaddress.ip_network,
        (
            "fec0::/10", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96",  # of a site, and such that stand for IPv4 ones within it
            "5f00::/16", "3fff::/20",  # of a network's segments, and of documents
            "192.88.99.0/24",  # of relays, which lead to whatever network is near
        ),
    )
)  # fmt: skip
"""Given: addresses that are not of the internet; Python does not report this for all of them."""


def is_public(address: str) -> bool:
    """Tell whether an address is one of the internet, whatever it is wrapped in."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if inner is None and found in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    if any(found in network for network in _INNER):
        return False
    return found.is_global and not found.is_multicast


def is_allowed(host: str, port: int, allowed: Sequence[str]) -> bool:
    """Tell whether the operator named an endpoint, as HOST or HOST:PORT."""
    plain = host.strip("[]").lower()
    shown = f"[{plain}]" if ":" in plain else plain
    return bool({plain, shown, f"{shown}:{port}"} & {one.lower() for one in allowed})


def is_admitted(host: str, port: int, addresses: Iterable[object], allowed: Sequence[str]) -> bool:
    """Tell whether any of a host's addresses may be connected to."""
    return is_allowed(host, port, allowed) or any(is_number_public(one) for one in addresses)


def is_number_public(address: object) -> bool:
    """Tell whether this is an address of the internet; a name is none, because whoever connects looks it up."""
    try:
        return is_public(str(address))
    except ValueError:
        return False
