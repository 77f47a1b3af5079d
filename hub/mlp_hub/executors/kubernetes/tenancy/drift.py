"""Whether an object is still what it was made, and what of it others have added."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from mlp_hub.executors.kubernetes.tenancy.objects.files import RELEASED, phase
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import MANAGER
from mlp_hub.kubernetes.kinds import Object, labels_of

_COUNTED = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp"})
"""Given: metadata that change with every change, of the status too."""
_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Sighting:
    """Object as a watch reports it, with its digest and the label of its tenant.

    `going`: the object is being removed. `released`: it is a volume whose claim was deleted.
    """

    digest: bytes
    going: bool
    tenant: str
    released: bool


def sighting(found: Object) -> Sighting:
    """Return what is kept in mind of an object."""
    going = "deletionTimestamp" in found["metadata"]
    return Sighting(digest(found), going, labels_of(found).get(names.TENANT, ""), phase(found) == RELEASED)


def digest(found: Object) -> bytes:
    """Return what stands for an object as people and controllers left it: its status and how often it changed do not count."""
    kept = {key: value for key, value in found.items() if key not in ("metadata", "status")}
    kept["metadata"] = {k: v for k, v in found["metadata"].items() if k not in _COUNTED}
    return hashlib.sha256(_encode(kept)).digest()[:16]


def strangers(found: Object) -> list[str]:
    """Name who else than the hub has a say in an object, its metadata and its status left aside."""
    return sorted(
        {
            each["manager"]
            for each in found["metadata"].get("managedFields", ())
            if each["manager"] != MANAGER
            and each.get("subresource") != "status"
            and any(field not in ("f:metadata", "f:status") for field in each.get("fieldsV1", {}))
        }
    )


def without_more(wanted: Object, found: Object) -> Object:
    """Return the patch that makes an object as wanted, and removes its other fields except metadata."""
    return {
        key: _exactly(value, found.get(key))
        for key, value in wanted.items()
        if key not in ("metadata", "apiVersion", "kind")
    }


def _exactly(wanted: Any, found: Any) -> Any:
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return wanted
    more = {key: None for key in found if key not in wanted}
    return more | {key: _exactly(value, found.get(key)) for key, value in wanted.items()}
