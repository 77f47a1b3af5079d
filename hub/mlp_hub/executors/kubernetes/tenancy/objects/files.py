"""A tenant's claim to the volume of all files, and the volume that is bound to it and to no other.

Pods mount single directories of it, by `subPath`; the admission policies refuse all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Object

SIZE = "1Ti"
"""Given: a volume has to have a size; that of a shared one says nothing."""
_SHARED = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}


def volume_name(at: Installation, tenant: str) -> str:
    """Return the name of a tenant's volume."""
    return names.dns_name(f"{at.name}-files-{tenant}")


def volume(at: Installation, tenant: str) -> Made:
    """Return the volume, which names its claim, so that no other claim takes it.

    Its files stay when it is deleted.
    """
    of = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": at.namespace_of(tenant),
        "name": FILES_CLAIM,
    }
    spec = {
        **at.volume,
        **_SHARED,
        "capacity": {"storage": SIZE},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": of,
    }
    return made(PERSISTENT_VOLUMES, at, volume_name(at, tenant), tenant, spec=spec)


def claim(at: Installation, tenant: str) -> Made:
    """Return the claim, as it is once it is bound; it is made `unnamed`."""
    spec = {
        **_SHARED,
        "volumeName": volume_name(at, tenant),
        "resources": {"requests": {"storage": SIZE}},
    }
    return made(PERSISTENT_VOLUME_CLAIMS, at, FILES_CLAIM, tenant, spec=spec)


def unnamed(wanted: Object) -> Object:
    """Return a claim as it is made: without its volume's name, which the cluster writes there; the volume names the claim.

    If the claim named its volume, two workers of the cluster's controller would write the volume's phase at once. The binding
    then fails in every other case, and the cluster looks again only after 15 s.
    """
    return {**wanted, "spec": {key: value for key, value in wanted["spec"].items() if key != "volumeName"}}


AVAILABLE = "Available"
"""Given: phase of a volume that takes the claim it names at once."""
BOUND = "Bound"
"""Given: phase of a volume that its claim has."""
RELEASED = "Released"
"""Given: phase of a volume whose claim was deleted; it takes no other by itself."""


def phase(found: Object) -> str:
    """Return the phase of a volume."""
    said: str = found.get("status", {}).get("phase", "Pending")
    return said


def bound_as(wanted: Object, found: Object) -> Object:
    """Return a volume as wanted, with the cluster's record of its claim: without it, it would be unbound."""
    here, there = wanted["spec"]["claimRef"], found["spec"].get("claimRef", {})
    if any(there.get(key) != here[key] for key in ("namespace", "name")):
        return wanted
    return {**wanted, "spec": {**wanted["spec"], "claimRef": there}}


def is_as(wanted: Object, found: Object) -> bool:
    """Whether a volume or a claim has all that is wanted of it.

    Then it is left alone. A write while the cluster binds it to its claim would make the binding fail,
    and the cluster looks again only after 15 s. The cluster's record of the claim is an additional
    field.
    """
    return all(_has(found.get(key), wanted[key]) for key in ("metadata", "spec"))


def _has(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_has(found.get(key), wanted[key]) for key in wanted)
    return bool(found == wanted) or (found is None and wanted == "")  # the API leaves out what is empty


FREED: Object = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
"""Given: patch by which a volume whose claim was deleted takes one of the same name."""
