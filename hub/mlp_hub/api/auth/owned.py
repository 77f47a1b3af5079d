"""Objects that a user owns within a tenant, of any kind: `/users/{user}/.../{kind}` in a path names one.

A kind is a row: authorisation, the checks of names and WebSockets follow from it. It is refused in the sentence that all kinds
share, unless `NOT_THERE` (`domain/errors.py`) has one that reads better in every language.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlp_api.jobs.jobs import JOB_PATTERN
from mlp_api.stored.datasets import DATASET_PATTERN
from mlp_api.stored.models import MODEL_PATTERN
from mlp_api.types import NAME_PATTERN

if TYPE_CHECKING:
    from mlp_hub.domain.tenants.tenant_context import TenantContext
    from mlp_hub.service.platform import Platform

TenantOf = Callable[[str, str], Awaitable[tuple[str, str] | None]]
"""Tenant of a user's object of that name, and what means that very object; None where there is none, as quickly in either case."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Checks of one kind of object; `must_exist` raises NotFound where a user has none of that name."""

    name: re.Pattern[str]
    tenant_of: Callable[[Platform], TenantOf]
    must_exist: Callable[[Platform, TenantContext, str, str], Awaitable[object]]


KINDS: dict[str, Owned] = {
    "job": Owned(
        re.compile(JOB_PATTERN),
        lambda platform: platform.jobs.tenant_of,
        lambda platform, context, user, name: platform.jobs.get(context, user, name),
    ),
    "sweep": Owned(
        re.compile(JOB_PATTERN),
        lambda platform: platform.sweeps.tenant_of,
        lambda platform, context, user, name: platform.sweeps.get(context, user, name),
    ),
    "model": Owned(
        re.compile(MODEL_PATTERN),
        lambda platform: platform.models.tenant_of,
        lambda platform, context, user, name: platform.models.get(context, user, name),
    ),
    "app": Owned(
        re.compile(NAME_PATTERN),
        lambda platform: platform.apps.tenant_of,
        lambda platform, context, user, name: platform.apps.get(context, user, name),
    ),
    "dataset": Owned(
        re.compile(DATASET_PATTERN),
        lambda platform: platform.datasets.tenant_of,
        lambda platform, context, user, name: platform.datasets.get(context, user, name),
    ),
}
"""Each kind by the name that its objects have in paths."""


def kind_in(params: Mapping[str, str]) -> str | None:
    """Return the kind of the object that a path names; None where it names none that is owned."""
    return next((kind for kind in KINDS if kind in params), None)
