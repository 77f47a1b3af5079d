"""Rights of a tenant's members who come with kubectl: they see what stands in their namespace, and ask for jobs there."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.made import Made, made, rule
from mlp_hub.kubernetes.kinds import ROLE_BINDINGS, ROLES

NAME = "mlp-member"
AT_ONCE = 1_000
"""Safety: people of one binding: an object of the cluster has an upper bound of its size."""
_RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
BRINGS = (*READ, "create", "delete")
RULES = (
    rule([""], ["pods", "pods/log", "events", "resourcequotas", "limitranges"], READ),
    rule(["events.k8s.io"], ["events"], READ),
    rule(["scheduling.volcano.sh"], ["podgroups"], READ),
    rule(["batch.volcano.sh"], ["jobs"], READ),
    rule(["batch"], ["jobs"], BRINGS),
    rule(["kubeflow.org"], ["mpijobs", "tfjobs", "pytorchjobs"], BRINGS),
)
"""Contract: what members may. What they create and delete goes through the admission policies. No Secrets, no ConfigMaps, and no
way into a pod: tokens of servers and jobs are in Secrets, of jobs of an older hub in ConfigMaps, and a pod names both and holds neither."""


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
