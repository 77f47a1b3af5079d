"""A request as the job that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlp_hub.service.jobs.resolving import requested_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlp_api.jobs.jobs import JobCreate
    from mlp_hub.domain.jobs.job import JobSpec
    from mlp_hub.domain.runtime.runtime import Runtime
    from mlp_hub.executors.workspace import Workspace


async def requested(
    asked: JobCreate, workspace: Workspace, own: Mapping[str, Runtime] | None = None
) -> JobSpec:
    """Return what ann asks for, who is in the team red, which has its `own` runtimes."""

    async def own_of(_: JobSpec) -> Mapping[str, Runtime]:
        return own or {}

    return await requested_spec(asked, "ann", ({"red"}, "red"), workspace, own_of)
