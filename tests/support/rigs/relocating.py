"""A tenant with files of each kind, whose files are moved; for tests of moves on a rig."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path

from mlp_api.stored.datasets import DatasetCreate, DatasetHeartbeat
from mlp_api.types import IsolationMove, TenantCreate, TenantUpdate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import StoredPlace
from support.rigs.platform_rig import Rig
from support.waiting import until

TENANT = "red"
CONTENT = b"bytes of pets " * 1000


async def furnish(rig: Rig, tenant: str = TENANT, user: str = "ann") -> None:
    """Make the tenant with a member, a dataset of theirs and a job of theirs that has ended."""
    p = rig.platform
    await p.tenants.create(TenantCreate(name=tenant))
    await p.tenants.set_member(tenant, user)
    await p.datasets.create(user, DatasetCreate(name="pets", size=0, tenant=tenant))
    await asyncio.to_thread(_write, dataset(rig, "pets", user, tenant))
    await asyncio.to_thread(_write, arriving(rig, "pets", user, tenant))
    await p.datasets.heartbeat(SYSTEM, user, "pets", DatasetHeartbeat(state="ready", progress=100))
    await rig.submit("fit", user, tenant=tenant)
    await rig.until("fit", "finished", user=user)
    await asyncio.to_thread(_leave_checkpoint, rig.workspace(user, "fit", tenant=tenant))
    await asyncio.to_thread(_write, dataset(rig, "other", "bob", ""))


def dataset(rig: Rig, name: str, user: str = "ann", tenant: str = TENANT) -> Path:
    """Return the directory of a dataset, where it is now."""
    return rig.directories.stored(StoredPlace("dataset", user, name, tenant))


def arriving(rig: Rig, name: str, user: str = "ann", tenant: str = TENANT) -> Path:
    """Return the directory of what is on its way into a dataset, where it is now."""
    return rig.directories.all_of(StoredPlace("dataset", user, name, tenant))[1]


def _write(place: Path) -> None:
    (place / "sub").mkdir(parents=True)
    (place / "sub" / "a").write_bytes(CONTENT)
    (place / "link").symlink_to("sub/a")


def _leave_checkpoint(workspace: Path) -> None:
    (workspace / "ckpt").mkdir(parents=True, exist_ok=True)
    (workspace / "ckpt" / "model").write_bytes(CONTENT[:100])


def content(top: Path) -> Mapping[str, str]:
    """Return what lies below a directory, by path: digests of files, targets of links."""
    found = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(top))
        if stat.S_ISLNK(mode):
            found[name] = f"-> {path.readlink()}"
        elif stat.S_ISREG(mode):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def of_tenant(rig: Rig) -> Mapping[str, str]:
    """Return all files of the tenant, where they are now."""
    with rig.roots.using(TENANT):
        places = [dataset(rig, "pets"), arriving(rig, "pets"), rig.workspace("ann", "fit", tenant=TENANT)]
        return {
            f"{place.parent.name}/{place.name}/{name}": value
            for place in places
            for name, value in content(place).items()
        }


def left_in_shared(rig: Rig) -> list[str]:
    """Return what is left of the tenant in the tree of all."""
    tops = [rig.root / "datasets" / "ann" / "pets", rig.root / "jobs" / "ann" / "fit"]
    return [str(top) for top in tops if top.exists()]


async def ask(rig: Rig, isolation: str, data_root: str = "") -> None:
    """Have the tenant kept so."""
    await rig.platform.tenants.update(
        TENANT,
        TenantUpdate(isolation=isolation, data_root=data_root),  # type: ignore[arg-type]
        actor="root",
    )


async def state(rig: Rig) -> IsolationMove:
    """Return where the move stands."""
    move = (await rig.platform.tenants.get(TENANT)).move
    assert move is not None
    return move


async def over(rig: Rig, *states: str) -> IsolationMove:
    """Wait until the move is in one of these states."""

    async def look() -> IsolationMove | None:
        found = await state(rig)
        return found if found.state in states else None

    found: IsolationMove = await until(look, what=f"the move to be {' or '.join(states)}")
    return found


@contextlib.contextmanager
def no_mounts_left(rig: Rig) -> object:
    """See to it that no mount outlives a test, whatever became of it."""
    try:
        yield
    finally:
        mounts = rig.roots.mounts
        assert mounts is not None
        for tenant in mounts.mounted_tenants():
            mounts.rest(tenant)
