"""Connections that network policies allow: the result of a network that enforces them (NetworkPolicy v1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Policy = Mapping[str, Any]


@dataclass(frozen=True)
class End:
    """A pod, or (with no namespace) something outside the cluster."""

    ip: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)


def reaches(policies: Sequence[Policy], source: End, target: End, port: int, protocol: str = "TCP") -> bool:
    """Whether a connection is let out of the source and into the target."""
    return _lets(policies, "Egress", source, target, port, protocol) and _lets(
        policies, "Ingress", target, source, port, protocol
    )


def _lets(policies: Sequence[Policy], way: str, pod: End, peer: End, port: int, protocol: str) -> bool:
    if not pod.namespace:
        return True
    chosen = [
        policy["spec"]
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and way in policy["spec"].get("policyTypes", ["Ingress"])
        and _selects(policy["spec"].get("podSelector", {}), pod.labels)
    ]
    if not chosen:
        return True  # no policy of this direction chooses the pod: all is open
    rules = [rule for spec in chosen for rule in spec.get(way.lower()) or ()]
    ends = "to" if way == "Egress" else "from"
    return any(
        _port(rule.get("ports"), port, protocol) and _peers(rule.get(ends), pod.namespace, peer)
        for rule in rules
    )


def _port(ports: Sequence[Mapping[str, Any]] | None, port: int, protocol: str) -> bool:
    if not ports:
        return True
    return any(
        each.get("protocol", "TCP") == protocol
        and ("port" not in each or each["port"] <= port <= each.get("endPort", each["port"]))
        for each in ports
    )


def _peers(peers: Sequence[Mapping[str, Any]] | None, namespace: str, peer: End) -> bool:
    return not peers or any(_is(each, namespace, peer) for each in peers)


def _is(said: Mapping[str, Any], namespace: str, peer: End) -> bool:
    if "ipBlock" in said:
        address, block = ip_address(peer.ip), said["ipBlock"]
        return _in(address, block["cidr"]) and not any(_in(address, but) for but in block.get("except", ()))
    if not peer.namespace:
        return False
    if "namespaceSelector" in said:
        if not _selects(said["namespaceSelector"], peer.namespace_labels):
            return False
    elif peer.namespace != namespace:
        return False
    return _selects(said.get("podSelector", {}), peer.labels)


def _in(address: Any, cidr: str) -> bool:
    network = ip_network(cidr)
    return address.version == network.version and address in network


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    for each in selector.get("matchExpressions", ()):
        there, values = each["key"] in labels, each.get("values", ())
        fits = {
            "In": there and labels.get(each["key"]) in values,
            "NotIn": not there or labels[each["key"]] not in values,
            "Exists": there,
            "DoesNotExist": not there,
        }
        if not fits[each["operator"]]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
