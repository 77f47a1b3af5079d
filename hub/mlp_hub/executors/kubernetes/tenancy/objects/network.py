"""Network policies of a tenant's namespace: nothing is open, and these are the doors.

They hold where the cluster's network enforces policies; `probe` tells. Ranks of one job reach each other by `between_ranks`, a
policy of the attempt, which goes with it: no policy can say "who has the same label as I".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import APP_PORT, NOTEBOOK_PORT, Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import NETWORK_POLICIES, Object
from mlp_language.message import msg

OUTBOUND = "outbound"
"""Contract: value of the label `mlp-hub/network` of pods that may reach the outside."""
DNS_PORT = 53
"""Given: port of name servers."""
NODES_OWN_DNS = "169.254.20.10/32"
"""Given: address of the cache of names that clusters may have on each node."""
PRIVATE = {
    "0.0.0.0/0": (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "224.0.0.0/3",
    ),
    "::/0": ("::/127", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8"),
}
"""Safety: networks that are not the outside: pods, services, nodes, the metadata of clouds, and whatever else lies beside the
cluster. The last of IPv6 that lead to IPv4 are among them."""
_HOST = "kubernetes.io/metadata.name"


def policies(at: Installation, tenant: str, near: Collection[str] = ()) -> Sequence[Made]:
    """Return the policies. `near` are public addresses of the cluster's own: of its nodes, of its API."""
    platform = [(each, _host(at, each[0])) for each in (at.service, at.hub, at.data) if each is not None]
    hosts = list({repr(peer): peer for _, peer in platform}.values())
    return [
        _policy(at, tenant, "mlp-closed", {}, ingress=[], egress=[]),
        _policy(at, tenant, "mlp-names", {}, egress=[{"to": _name_servers(at), "ports": _dns()}]),
        _policy(
            at,
            tenant,
            "mlp-platform",
            {},
            ingress=[{"from": hosts, "ports": [_port(NOTEBOOK_PORT)]}],
            egress=[{"to": [peer], "ports": [_port(address[1])]} for address, peer in platform],
        ),
        _policy(
            at,
            tenant,
            "mlp-apps",
            {names.APP: None},
            ingress=[{"from": hosts, "ports": [_port(APP_PORT)]}],
        ),
        _policy(
            at,
            tenant,
            "mlp-outbound",
            {names.NETWORK: OUTBOUND},
            egress=[{"to": _outside(at, near)}],
        ),
    ]


def between_ranks(at: Installation, tenant: str, attempt: str, name: str) -> Made:
    """Return the policy by which an attempt's ranks reach each other; an attempt of one rank needs none.

    `attempt` is the value of their label, `name` that of the policy. The caller adds the owner that the
    policy is deleted with.
    """
    ranks = {names.ATTEMPT: attempt}
    peers = [{"podSelector": {"matchLabels": ranks}}]
    kind, found = _policy(at, tenant, name, ranks, ingress=[{"from": peers}], egress=[{"to": peers}])
    found["metadata"]["labels"] |= {names.COMPONENT: "job", names.ATTEMPT: attempt}
    return kind, found


def _policy(
    at: Installation, tenant: str, name: str, labels: Mapping[str, str | None], **rules: Sequence[Object]
) -> Made:
    """Return a policy of pods with these labels, of any value where it is None; a direction that it does not tell is none of its business."""
    exact = {key: value for key, value in labels.items() if value is not None}
    there = [{"key": key, "operator": "Exists"} for key, value in labels.items() if value is None]
    spec: dict[str, Any] = {
        "podSelector": ({"matchLabels": exact} if exact else {})
        | ({"matchExpressions": there} if there else {}),
        "policyTypes": [each.capitalize() for each in rules],
        **rules,
    }
    return made(NETWORK_POLICIES, at, name, tenant, spec=spec)


def _port(number: int, protocol: str = "TCP") -> Object:
    return {"port": number, "protocol": protocol}


def _dns() -> list[Object]:
    return [_port(DNS_PORT, "UDP"), _port(DNS_PORT)]


def _name_servers(at: Installation) -> list[Object]:
    pods = {
        "namespaceSelector": {"matchLabels": {_HOST: "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return [pods, *({"ipBlock": {"cidr": cidr}} for cidr in (NODES_OWN_DNS, *at.dns))]


def _host(at: Installation, host: str) -> Object:
    """Return a host of the platform as a peer: an address, or whatever pods of the namespace that a service's name tells."""
    try:
        address = ip_address(host)
    except ValueError:
        _, *rest = host.split(".")
        if len(rest) > 1 and rest[1] != "svc":
            raise MessageError(
                msg(
                    "pods reach the hub at {host}, which no network policy can name: it must be an address, or a service of the cluster such as NAME.NAMESPACE.svc",
                    host=host,
                )
            ) from None
        return {"namespaceSelector": {"matchLabels": {_HOST: rest[0] if rest else at.namespace}}}
    return {"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}


def _outside(at: Installation, near: Collection[str]) -> list[Object]:
    """Return all networks but those that are the cluster's or private, and such of them as were opened."""
    closed = [ip_network(each) for each in {*near, *at.closed}]
    found: list[Object] = []
    for everything, private in PRIVATE.items():
        everywhere = ip_network(everything)
        own = [
            each
            for each in closed
            if each.version == everywhere.version and not any(_within(each, ip_network(p)) for p in private)
        ]
        block = {"cidr": everything, "except": [*private, *map(str, sorted(own, key=str))]}
        found.append({"ipBlock": block})
    return [*found, *({"ipBlock": {"cidr": cidr}} for cidr in at.open)]


def _within(one: Any, other: Any) -> bool:
    return bool(one.version == other.version and one.subnet_of(other))
