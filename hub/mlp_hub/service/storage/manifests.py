"""Digests of the files of datasets when a run reads them, for a later comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mlp_hub.domain.errors import MLPError
from mlp_hub.domain.jobs.run import UsedDataset
from mlp_hub.domain.stored.storage import StoredKind
from mlp_hub.executors.workspace import StoredPlace, Workspace


async def with_digests(
    workspace: Workspace, tenant: str, data: Sequence[UsedDataset], *, but: Collection[str]
) -> tuple[UsedDataset, ...]:
    """Return datasets with the present digests of their files, except `but`; unreadable ones stay as known."""
    return tuple([used if used.uid in but else await with_digest(workspace, tenant, used) for used in data])


async def with_digest(workspace: Workspace, tenant: str, used: UsedDataset) -> UsedDataset:
    """Return one of them."""
    try:
        found = await workspace.manifest(StoredPlace(StoredKind.DATASET.value, used.user, used.name, tenant))
    except (MLPError, OSError):  # a tree that is away: the start of the job says so itself
        return used
    if found is None:
        return used
    return replace(used, digest=found.digest, files=found.files, checked=found.checked)
