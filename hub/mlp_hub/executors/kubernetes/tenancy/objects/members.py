"""Rights of a tenant's members with kubectl: they see their namespace's objects, and ask for jobs there."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made, rule
from mlp_hub.kubernetes.kinds import ROLE_BINDINGS, ROLES

NAME = "mlp-member"
AT_ONCE = 1_000
"""Safety: people of one binding: an object of the cluster has an upper bound of its size."""
_RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
BRINGS = (*READ, "create", "delete")
RULES = (
    rule([""], ["pods", "events", "resourcequotas", "limitranges"], READ),
    rule([""], ["pods/log"], ["get"]),
    rule(["events.k8s.io"], ["events"], READ),
    rule(["scheduling.volcano.sh"], ["podgroups"], READ),
    rule(["batch.volcano.sh"], ["jobs"], READ),
    rule(["batch"], ["jobs"], BRINGS),
    rule(["kubeflow.org"], ["mpijobs", "tfjobs", "pytorchjobs"], BRINGS),
)
"""Contract: rights of members; the admission policies check the objects that they create and delete.

Members may not read Secrets or ConfigMaps, and may not enter a pod. Tokens of servers and jobs are
in Secrets, and those of an older hub's jobs in ConfigMaps. A pod names both and holds neither.
"""


def role(at: Installation, tenant: str) -> Made:
    """Return what members may."""
    return made(ROLES, at, NAME, tenant, rules=list(RULES))


def bindings(at: Installation, tenant: str, members: Sequence[str]) -> Sequence[Made]:
    """Return who the members are; none where there are none."""
    of = {"apiGroup": _RBAC, "kind": "Role", "name": NAME}
    people = [
        {"apiGroup": _RBAC, "kind": "User", "name": f"{at.user_prefix}{who}"} for who in sorted(members)
    ]
    return [
        made(
            ROLE_BINDINGS,
            at,
            f"{NAME}-{first // AT_ONCE}",
            tenant,
            roleRef=of,
            subjects=people[first : first + AT_ONCE],
        )
        for first in range(0, len(people), AT_ONCE)
    ]
