"""An environment of a team is an image: a job of it runs there, whatever its runtime's image, and one that is not there is named."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.stored.environments import EnvironmentCreate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.executors.kubernetes import pod_problems
from mlp_hub.executors.shared_volume.logs import read_log
from mlp_hub.executors.workspace import JobRun
from support.cluster.brought_rig import running_rig
from support.cluster.kube import Kube

TENSORFLOW, NOWHERE = "mlp.local/tf:dev", "mlp.local/nowhere:1"
FINDS = "import importlib.util; print('tensorflow' if importlib.util.find_spec('tensorflow') else 'none')"


async def test_a_job_runs_in_the_image_of_its_environment(
    kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_problems, "IMAGE_S", 0.0)

    async with running_rig(kube, tmp_path) as rig:
        service, jobs = rig.platform.environments, rig.platform.jobs
        await rig.platform.users.approve("ann", actor="admin")
        await rig.platform.tenants.create(TenantCreate(name="red"))
        await rig.platform.tenants.set_member("red", "ann")
        for name, image in (("flow", TENSORFLOW), ("nowhere", NOWHERE)):
            asked = EnvironmentCreate(name=name, image=image)
            with pytest.raises(Refused, match="is not allowed for environments of teams here"):
                await service.create("red", asked, actor="ann")
            await service.create("red", asked, actor="admin", admin=True)
        for name in ("flow", "nowhere"):
            given = JobCreate(name=f"in-{name}", code=FINDS, cpu=0.1, ram=256, env_name=name)
            await jobs.submit("ann", given)
        with pytest.raises(Refused, match="is used by job in-flow"):
            await service.delete("red", "flow", actor="admin", admin=True)
        await rig.until("in-flow", "finished")
        place = rig.at.directories.workspace(JobRun("ann", "in-flow", 1, "red"))
        lines = (await asyncio.to_thread(read_log, place, 0)).lines
        assert [line.text for line in lines] == ["tensorflow"]
        failed = await rig.until("in-nowhere", "failed")
        assert failed.failure is not None
        assert NOWHERE in str(failed.failure.message)
        assert "name one that the cluster's nodes can pull" in str(failed.failure.message)
