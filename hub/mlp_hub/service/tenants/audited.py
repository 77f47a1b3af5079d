"""Tenants as the audit log has them."""

from __future__ import annotations

from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.service.tenants import wire


def difference(before: Tenant, after: Tenant) -> dict[str, object]:
    """Return for the audit log the fields of a tenant that changed, as they were and as they are; null where nothing is set."""
    was, now = described(before), described(after)
    changed = [f for f in {**was, **now} if was.get(f) != now.get(f)]
    return {"before": {f: was.get(f) for f in changed}, "after": {f: now.get(f) for f in changed}}


def described(tenant: Tenant) -> dict[str, object]:
    """Return a tenant for the audit log."""
    shown = wire.tenant_to(tenant, ZERO)
    left_out = {
        "name",
        "lowered",
        "members",
        "running",
        "waiting",
        "borrowed",
        "lent",
        "lendable",
        "free",
        "notes",
        "job_network",
        "move",
    }
    return {
        f: getattr(shown, f)
        for f in shown.__struct_fields__
        if f not in left_out and not f.endswith("_inuse") and getattr(shown, f) not in (None, "", {})
    }
