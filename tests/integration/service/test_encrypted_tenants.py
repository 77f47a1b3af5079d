"""Files of an encrypted tenant: in clear only while somebody uses them, with a key that stands nowhere where others could read it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_api.types import TenantCreate
from mlp_hub.domain.tenants.tenant import ENCRYPTED, Isolation
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.isolation import (
    KeyUnknownError,
    Mounts,
    RootEntry,
    TenantRoots,
    gocryptfs,
    lacking,
    tenant_roots,
)
from mlp_hub.isolation.mounts import _started
from support.rigs.platform_rig import running_rig
from support.rigs.relocating import (
    CONTENT,
    TENANT,
    ask,
    dataset,
    furnish,
    left_in_shared,
    no_mounts_left,
    of_tenant,
    over,
)
from support.waiting import until

pytestmark = pytest.mark.skipif(lacking() is not None, reason=f"no encrypted tenants here: {lacking()}")


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[TenantRoots]:
    """Roots of a hub with one encrypted tenant."""
    made = tenant_roots(tmp_path / "mlp", tmp_path / "isolation", tmp_path / "secrets" / "isolation_key")
    made.prepare(TENANT, Isolation(ENCRYPTED))
    made.enter(TENANT, RootEntry(Isolation(ENCRYPTED)))
    yield made
    for tenant in mounts(made).mounted_tenants():
        mounts(made).rest(tenant)


def mounts(roots: TenantRoots) -> Mounts:
    assert roots.mounts is not None
    return roots.mounts


def write(roots: TenantRoots, name: str = "a", text: str = "in clear") -> Path:
    with roots.using(TENANT, write=True) as root:
        (root / name).write_text(text)
        return root


def test_encrypted_files_are_nowhere_in_clear_once_nobody_uses_them(
    roots: TenantRoots, tmp_path: Path
) -> None:
    plain = write(roots, "telling-name")
    assert (plain / "telling-name").read_text() == "in clear"
    assert roots.rest(TENANT)
    assert list(plain.iterdir()) == []
    for path in tmp_path.rglob("*"):
        assert path.name != "telling-name"
        if path.is_file():
            assert b"in clear" not in path.read_bytes()
    with roots.using(TENANT) as root:
        assert (root / "telling-name").read_text() == "in clear"


def test_it_stays_while_somebody_uses_it_and_for_a_while_after(roots: TenantRoots) -> None:
    with roots.using(TENANT):
        assert not roots.rest(TENANT), "somebody uses it"
    assert not roots.rest(TENANT, idle_s=3600), "somebody did a moment ago"
    plain = write(roots)
    with (plain / "a").open():
        assert not roots.rest(TENANT), "a file is open"
    assert roots.rest(TENANT)
    assert mounts(roots).mounted_tenants() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a mount namespace by itself")
def test_a_process_that_outlives_the_mount_keeps_neither_it_nor_its_key_alive(
    roots: TenantRoots,
) -> None:
    plain = write(roots)
    pid = int((plain.parent / f".{TENANT}.pid").read_text().split()[0])
    watcher = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; exec sleep 600"]
    with subprocess.Popen(watcher, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            assert roots.rest(TENANT)
            assert not _started(pid)
            with pytest.raises(OSError, match="connect"):
                list(Path(f"/proc/{other.pid}/root{plain}").iterdir())
            with roots.using(TENANT) as root:
                assert (root / "a").read_text() == "in clear"
        finally:
            other.kill()


def test_a_mount_whose_process_was_killed_comes_back(roots: TenantRoots) -> None:
    plain = write(roots)
    pid = int((plain.parent / f".{TENANT}.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    while _started(pid):
        time.sleep(0.005)
    with pytest.raises(OSError, match=r"connect"):
        (plain / "a").read_text()
    with roots.using(TENANT) as root:
        assert (root / "a").read_text() == "in clear"


async def test_two_that_begin_at_a_time_mount_it_once(roots: TenantRoots, tmp_path: Path) -> None:
    others = [
        tenant_roots(roots.shared, tmp_path / "isolation", tmp_path / "secrets" / "isolation_key")
        for _ in range(6)
    ]
    await asyncio.gather(*(asyncio.to_thread(write, one, f"f{n}") for n, one in enumerate(others)))
    assert _processes_at(mounts(roots).cipher(TENANT)) == 1


def test_creating_files_at_once_in_a_new_mount_does_not_block(roots: TenantRoots) -> None:
    """A mount that stands does not serve yet; who makes something there in that moment would wait for good."""
    for n in range(20):
        with roots.using(TENANT, write=True) as root:
            (root / f"d{n}").mkdir()
        assert roots.rest(TENANT)


def test_no_process_shows_the_key(roots: TenantRoots, tmp_path: Path) -> None:
    write(roots)
    (key,) = mounts(roots).keys.keys(TENANT)
    master = (tmp_path / "secrets" / "isolation_key").read_text().strip()
    seen = 0
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                content = (process / name).read_bytes()
            except OSError:
                continue
            seen += 1
            assert key.encode() not in content
            assert master.encode() not in content
    assert seen > 2
    said = (tmp_path / "isolation" / "plain" / f".{TENANT}.log").read_text()
    assert key not in said


def test_the_ciphertext_is_of_no_use_without_the_key(roots: TenantRoots, tmp_path: Path) -> None:
    write(roots)
    roots.rest(TENANT)
    stolen = tmp_path / "stolen"
    shutil.copytree(mounts(roots).cipher(TENANT), stolen)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(OSError, match="Password incorrect"):
        gocryptfs.mount(stolen, place, "ab" * 32, tmp_path / "log")
    thief = tenant_roots(
        tmp_path / "other", tmp_path / "other-state", tmp_path / "other-secrets" / "isolation_key"
    )
    with pytest.raises(KeyUnknownError):
        mounts(thief).keys.keys(TENANT)
    mounts(thief).keys.ensure(TENANT)
    (tmp_path / "other" / "encrypted").mkdir(parents=True)
    stolen.rename(mounts(thief).cipher(TENANT))
    with pytest.raises(OSError, match="Password incorrect"):
        mounts(thief).ready(TENANT)


def test_a_rotated_key_opens_and_the_one_before_does_not(roots: TenantRoots, tmp_path: Path) -> None:
    plain = write(roots)
    (old,) = mounts(roots).keys.keys(TENANT)
    mounts(roots).rotate(TENANT)
    assert (plain / "a").read_text() == "in clear", "who uses it notices nothing"
    (new,) = mounts(roots).keys.keys(TENANT)
    cipher = mounts(roots).cipher(TENANT)
    assert (new != old, gocryptfs.opens(cipher, new), gocryptfs.opens(cipher, old)) == (True, True, False)
    assert mounts(roots).keys.rotate_master() == 1
    roots.rest(TENANT)
    with roots.using(TENANT) as root:
        assert (root / "a").read_text() == "in clear"


@pytest.mark.parametrize("wrapped", [False, True], ids=["before", "after"])
def test_a_rotation_that_was_killed_leaves_it_open_to_us_and_is_gone_on_with(
    roots: TenantRoots, monkeypatch: pytest.MonkeyPatch, *, wrapped: bool
) -> None:
    write(roots)
    roots.rest(TENANT)
    rewrap = gocryptfs.rewrap

    def killed(cipher: Path, old: str, new: str) -> None:
        if wrapped:
            rewrap(cipher, old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr(gocryptfs, "rewrap", killed)
    with pytest.raises(KeyboardInterrupt):
        mounts(roots).rotate(TENANT)
    with roots.using(TENANT) as root:
        assert (root / "a").read_text() == "in clear"
    roots.rest(TENANT)
    monkeypatch.setattr(gocryptfs, "rewrap", rewrap)
    mounts(roots).rotate(TENANT)
    with roots.using(TENANT) as root:
        assert (root / "a").read_text() == "in clear"


async def test_a_tenant_goes_into_encryption_and_out_of_it_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        with no_mounts_left(rig):
            await furnish(rig)
            before, held = await asyncio.to_thread(of_tenant, rig), await asyncio.to_thread(rig.held, TENANT)
            await ask(rig, "encrypted")
            done = await over(rig, "done", "failed")
            assert (done.state, str(done.message)) == ("done", "")
            assert await asyncio.to_thread(of_tenant, rig) == before
            assert left_in_shared(rig) == []
            assert await asyncio.to_thread(rig.held, TENANT) == held
            assert CONTENT[:50] not in await asyncio.to_thread(_all_bytes, rig.root / "encrypted")
            await rig.submit("next", "ann", tenant=TENANT)
            await rig.until("next", "finished")
            with rig.roots.using(TENANT):
                assert rig.workspace("ann", "next", tenant=TENANT).is_dir()
            rig.platform.storage_migration._idle_s = 0.0

            async def closed() -> bool:
                await rig.platform.storage_migration.remove_unused_mounts()
                return not await rig.executor.workspace.tenants.mounted()  # type: ignore[union-attr]

            await until(closed, what="what nobody uses to be closed")
            assert not dataset(rig, "pets").exists()
            root = tmp_path / "red"
            await ask(rig, "dedicated", str(root))
            assert (await over(rig, "done", "failed")).state == "done"
            assert await asyncio.to_thread(of_tenant, rig) == before
            assert not (rig.root / "encrypted" / TENANT).exists(), "no ciphertext is left"
            assert not (rig.root / "isolation" / "keys" / f"{TENANT}.json").exists(), "and no key"


async def test_while_a_job_runs_its_tenant_stays_open(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        with no_mounts_left(rig):
            await rig.platform.tenants.create(TenantCreate(name=TENANT, isolation="encrypted"))
            await rig.platform.tenants.set_member(TENANT, "ann")
            await over(rig, "done")
            await rig.submit("long", "ann", tenant=TENANT, sim={"DURATION": 600})
            await rig.until("long", "running")
            rig.platform.storage_migration._idle_s = 0.0
            await rig.platform.storage_migration.remove_unused_mounts()
            assert await rig.executor.workspace.tenants.mounted() == [TENANT]  # type: ignore[union-attr]


def test_the_clear_files_are_in_no_other_tenants_paths(roots: TenantRoots, tmp_path: Path) -> None:
    write(roots)
    directories = Directories(tmp_path / "homes", tmp_path / "mlp" / "jobs", roots)
    assert directories.roots.path("blue") == tmp_path / "mlp"
    assert directories.roots.path(TENANT) == tmp_path / "isolation" / "plain" / TENANT
    assert (tmp_path / "mlp" / "encrypted").stat().st_mode & 0o077 == 0


def _all_bytes(top: Path) -> bytes:
    return b"".join(path.read_bytes() for path in top.rglob("*") if path.is_file())


def _processes_at(cipher: Path) -> int:
    """Return how many processes of gocryptfs serve an encrypted directory."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            found += b"gocryptfs" in words[0] and str(cipher).encode() in words
    return found
