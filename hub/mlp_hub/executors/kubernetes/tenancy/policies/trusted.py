"""Identities with more rights in tenants' namespaces than people, as conditions of admission policies.

The conditions are in CEL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.kubernetes.kinds import Object

_ACCOUNT = "system:serviceaccount:"
CONTROLLERS = (
    f"{_ACCOUNT}mpi-operator:mpi-operator",
    f"{_ACCOUNT}kubeflow:mpi-operator",
    f"{_ACCOUNT}kubeflow:training-operator",
    f"{_ACCOUNT}kubeflow-system:training-operator",
    f"{_ACCOUNT}volcano-system:volcano-controllers",
    f"{_ACCOUNT}volcano-system:volcano-scheduler",
    f"{_ACCOUNT}volcano-system:volcano-admission",
)
"""Given: accounts of the operators, by their own manifests. Others are named in the installation."""
USER = "request.userInfo.username"
_ANY_ACCOUNT = f'{USER}.startsWith("{_ACCOUNT}")'
CLUSTER = (
    f'({USER}.startsWith("system:") && {USER} != "system:anonymous" && !{_ANY_ACCOUNT}) || '
    f'{USER}.startsWith("{_ACCOUNT}kube-system:")'
)
"""Contract: parts of the cluster itself, its nodes among them."""
PERSON = f'!{_ANY_ACCOUNT} || {USER}.startsWith("{_ACCOUNT}" + request.namespace + ":")'
"""Contract: people, and what runs in the tenant's own namespace; accounts from elsewhere have what rights they were given."""


def literal(words: Sequence[str]) -> str:
    """Return a list of strings in CEL."""
    return json.dumps(sorted(set(words)))


def is_hub(at: Installation, own: str) -> str:
    """Say that who asks is a part of the hub; `own` is who keeps the tenants."""
    return f"{USER} in {literal([own, *at.identities])}"


def not_trusted(at: Installation, own: str, policy: str) -> list[Object]:
    """Return the conditions under which a policy applies.

    It does not apply to the hub, to controllers, and to callers with the right to change the policy.
    The last are the cluster's administrators, who could remove the policy anyway.
    """
    may_change = (
        'authorizer.group("admissionregistration.k8s.io").resource("validatingadmissionpolicies")'
        f'.name("{policy}").check("update").allowed()'
    )
    return [
        {"name": "not-the-hub", "expression": f"!({is_hub(at, own)})"},
        {"name": "not-the-cluster", "expression": f"!({CLUSTER})"},
        {
            "name": "not-an-operator",
            "expression": f"!({USER} in {literal([*CONTROLLERS, *at.controllers])})",
        },
        {"name": "not-an-administrator", "expression": f"!{may_change}"},
    ]
