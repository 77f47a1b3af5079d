"""Common fields of all objects that are made for tenants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Kind, Object, labels_of

Made = tuple[Kind, Object]
"""Wanted object."""
TENANCY = "tenancy"
"""Contract: component of all that is made for tenants, so that what else the hub makes there is told from it."""
INSTALLATION = "mlp-hub/installation"
"""Contract: annotation with the name of the installation, by which an object is known to be ours without its labels too."""


def made(kind: Kind, at: Installation, name: str, tenant: str | None = None, **fields: Any) -> Made:
    """Return an object for a tenant, or for all of them."""
    namespace = at.namespace_of(tenant) if tenant is not None and kind.namespaced else None
    found = kind.named(name, namespace, **fields)
    labels = {**at.own, names.COMPONENT: TENANCY}
    if tenant is not None:
        labels[names.TENANT] = names.label_value(tenant)
    found["metadata"] |= {"labels": labels, "annotations": {INSTALLATION: at.name}}
    return kind, found


def selector(at: Installation) -> str:
    """Return the selector of all that an installation made for tenants."""
    return f"{at.selector},{names.COMPONENT}={TENANCY}"


def is_ours(at: Installation, found: Object) -> bool:
    """Whether this installation made an object, even if somebody has taken its labels away."""
    labels, notes = labels_of(found), found["metadata"].get("annotations") or {}
    if INSTALLATION in notes:
        return bool(notes[INSTALLATION] == at.name)
    return at.marks.items() <= labels.items()


def rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Object:
    """Return a rule of a role."""
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
