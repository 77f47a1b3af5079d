"""A tenant's namespace, and the account that its pods have there."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes.kinds import NAMESPACES, SERVICE_ACCOUNTS

ACCOUNT = "default"
"""Given: the account of pods that name none; the cluster makes it."""
SECURITY = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
"""Contract: limits of pods: they get no access to their node."""


def namespace(at: Installation, tenant: str) -> Made:
    """Return the namespace; its objects are deleted with it."""
    kind, found = made(NAMESPACES, at, at.namespace_of(tenant), tenant)
    found["metadata"]["labels"] |= SECURITY
    return kind, found


def account(at: Installation, tenant: str) -> Made:
    """Return the account of its pods, who get no token by which they could ask the cluster anything."""
    return made(SERVICE_ACCOUNTS, at, ACCOUNT, tenant, automountServiceAccountToken=False)
