"""Models: registered from what a job wrote, copied, charged, staged and deleted; whatever dies, nothing is left over."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mlp_api import types as api
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.stored.models import Model, ModelCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume import workspace
from mlp_hub.executors.shared_volume.models import detector_client
from mlp_hub.executors.shared_volume.trees import file_copy
from mlp_hub.service.models.worker import KIND
from support.files.model_files import FORMATS, NO_MODELS, WEIGHTS
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

FILES = FORMATS["safetensors"]
SIZE = sum(map(len, FILES.values()))


async def wrote(rig: Rig, files: Mapping[str, bytes], at: str = "ckpt", job: str = "digits") -> Path:
    """Have a job that is there written these files; return its directory."""

    def write() -> Path:
        top = rig.workspace("ann", job)
        for name, data in files.items():
            (top / at / name).parent.mkdir(parents=True, exist_ok=True)
            (top / at / name).write_bytes(data)
        return top

    return await asyncio.to_thread(write)


async def job(rig: Rig, files: Mapping[str, bytes] = FILES, **fields: Any) -> Path:
    await rig.submit("digits", sim={"DURATION": 600}, **fields)
    await rig.until("digits", "running")
    return await wrote(rig, files)


async def register(rig: Rig, src: str = "jobs/digits/ckpt", name: str = "net", **more: Any) -> Model:
    return await rig.platform.models.register(SYSTEM, "ann", ModelCreate(name=name, src=src, **more))


async def at_rest(rig: Rig, name: str = "net") -> Model:
    async def look() -> Model | None:
        found = await rig.platform.models.get(SYSTEM, "ann", name)
        return found if found.state in ("ready", "error") else None

    found: Model = await until(look, what=f"model {name} to be at rest")
    return found


async def gone(rig: Rig, name: str = "net") -> None:
    async def look() -> bool:
        try:
            await rig.platform.models.get(SYSTEM, "ann", name)
        except Refused as refused:
            return refused.reason is Reason.NOT_FOUND
        return False

    await until(look, what=f"model {name} to be gone")


async def held(rig: Rig, tenant: str = "default") -> int:
    return (await asyncio.to_thread(rig.held, tenant)).rom


def kept(rig: Rig) -> dict[str, bytes]:
    top = rig.root / "models"
    return {p.relative_to(top).as_posix(): p.read_bytes() for p in top.rglob("*") if p.is_file()}


async def files(rig: Rig) -> dict[str, bytes]:
    return await asyncio.to_thread(kept, rig)


async def test_a_checkpoint_becomes_a_model_with_where_it_comes_from(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig, code="print(1)", args=["--lr", "3"])
        points = [
            MetricPoint(n=n, t=1.0, v={"loss": 1 / n, "first": 7} if n == 1 else {"loss": 1 / n})
            for n in (1, 2)
        ]
        await rig.platform.metrics.append(SYSTEM, "ann", "digits", MetricBatch(source="0.0.a", points=points))
        made = await register(rig)
        assert (made.state, made.name, made.version, made.src) == ("creating", "net", 1, "jobs/digits@1/ckpt")
        ready = await at_rest(rig)
        assert (ready.state, ready.size, ready.files, ready.format) == ("ready", SIZE, 2, "safetensors")
        assert (ready.pickled, ready.main, ready.stage) == (False, "model.safetensors", "none")
        assert await files(rig) == {f"ann/net@1/{name}": data for name, data in FILES.items()}
        assert await held(rig) == SIZE
        lineage = ready.lineage
        assert (lineage.job, lineage.run, lineage.args) == ("digits", 1, ["--lr", "3"])
        assert lineage.code_sha256 == hashlib.sha256(b"print(1)").hexdigest()
        assert lineage.metrics == {"loss": 0.5, "first": 7.0}
        text = await rig.platform.models.mlmodel(SYSTEM, "ann", "net")
        assert "flavors:\n  safetensors:\n" in text
        assert f"model_uuid: {json.dumps(ready.uid)}" in text


async def test_each_registration_is_a_version_and_one_is_in_production(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        models = rig.platform.models
        top = await job(rig)
        for n in (1, 2, 3):
            await asyncio.to_thread((top / "ckpt/config.json").write_bytes, b"x" * n)
            assert (await register(rig)).version == n
            await at_rest(rig)
        assert (await files(rig))["ann/net@2/config.json"] == b"xx"
        assert (await models.get(SYSTEM, "ann", "net")).version == 3
        for version in (1, 2):
            await models.move(SYSTEM, "ann", f"net@{version}", "production", actor="ann")
        stages = {m.version: m.stage for m in (await models.list(SYSTEM, "ann"))[0]}
        assert stages == {1: "archived", 2: "production", 3: "none"}
        assert [m.version for m in (await models.list(SYSTEM, "ann", stage="production"))[0]] == [2]
        first, cursor = await models.list(SYSTEM, "ann", limit=2)
        assert cursor is not None
        rest, end = await models.list(SYSTEM, "ann", limit=2, cursor=cursor)
        assert ([m.version for m in (*first, *rest)], end) == ([3, 2, 1], None)
        await models.delete(SYSTEM, "ann", "net@2", actor="ann")
        await gone(rig, "net@2")
        assert {n.split("/")[1] for n in await files(rig)} == {"net@1", "net@3"}
        assert await held(rig) == sum(map(len, (await files(rig)).values()))


async def test_a_model_may_come_from_the_home_and_from_the_paths_of_the_storage_tree(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig)
        home = Path(rig.directories.home("ann"))

        def write() -> None:
            home.mkdir(parents=True, exist_ok=True)
            (home / "net.safetensors").write_bytes(WEIGHTS)

        await asyncio.to_thread(write)
        sources = {
            "home/net.safetensors": "home/net.safetensors",
            "/mlp/datasets/ann/.home/net.safetensors": "home/net.safetensors",
            "/mlp/jobs/ann/digits/ckpt/model.safetensors": "jobs/digits@1/ckpt/model.safetensors",
            "jobs/digits@1/ckpt": "jobs/digits@1/ckpt",
        }
        for n, (asked, found) in enumerate(sources.items()):
            made = await register(rig, asked, name=f"m{n}")
            assert made.src == found
            assert (await at_rest(rig, f"m{n}")).state == "ready"
        assert (await at_rest(rig, "m0")).lineage.job is None


@pytest.mark.parametrize(
    ("src", "reason"),
    [
        ("jobs/digits/../../bob", Reason.INVALID),
        ("jobs/digits//etc", Reason.INVALID),
        ("jobs/digits/ckpt/\0", Reason.INVALID),
        ("jobs/../digits/ckpt", Reason.INVALID),
        ("jobs/digits@0/ckpt", Reason.INVALID),
        ("jobs/digits", Reason.INVALID),
        ("jobs", Reason.INVALID),
        ("nothing", Reason.NOT_FOUND),
        ("jobs/" + "x" * 4000, Reason.INVALID),
        ("jobs/digits/" + "x" * 4000, Reason.INVALID),
        ("/etc/passwd", Reason.INVALID),
        ("https://example.com/model", Reason.INVALID),
        ("%2e%2e/%2e%2e", Reason.INVALID),
        ("jobs/%64igits/ckpt", Reason.INVALID),
        ("jobs/nothing/ckpt", Reason.NOT_FOUND),
        ("jobs/digits@2/ckpt", Reason.NOT_FOUND),
        ("jobs/digits/nothing", Reason.NOT_FOUND),
        ("/mlp/jobs/bob/digits/ckpt", Reason.NOT_FOUND),
        ("/mlp/datasets/bob/.home/x", Reason.NOT_FOUND),
        ("/mlp/models/ann/net", Reason.INVALID),
        ("home/../bob/x", Reason.INVALID),
        ("jobs/digits/empty", Reason.INVALID),
        ("jobs/digits/link", Reason.INVALID),
        ("jobs/digits/link/passwd", Reason.INVALID),
        ("jobs/digits/linked", Reason.INVALID),
    ],
)
async def test_an_invalid_model_source_is_refused_and_nothing_is_kept(
    src: str, reason: Reason, tmp_path: Path
) -> None:
    async with running_rig(tmp_path) as rig:
        top = await job(rig)

        def write() -> None:
            (top / "empty").mkdir()
            (top / "link").symlink_to("/etc")
            (top / "linked").mkdir()
            (top / "linked" / "model.safetensors").symlink_to("/etc/passwd")

        await asyncio.to_thread(write)
        with pytest.raises(Refused) as caught:
            await register(rig, src)
        assert caught.value.reason is reason
        assert len(caught.value.msg) < 500
        assert (await rig.platform.models.list(SYSTEM, "ann"))[0] == []
        assert (await held(rig), await files(rig)) == (0, {})


async def test_a_model_is_of_its_jobs_tenant_and_of_no_other(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for name in ("red", "blue"):
            await rig.platform.tenants.create(api.TenantCreate(name=name))
        await rig.platform.tenants.set_member("red", "ann")
        await job(rig, tenant="red")
        with pytest.raises(Refused, match="the job belongs to red"):
            await register(rig, tenant="blue")
        with pytest.raises(Refused) as caught:
            await register(rig, "home/x", tenant="blue")
        assert caught.value.reason is Reason.NOT_FOUND
        assert (await register(rig)).tenant == "red"
        await at_rest(rig)
        assert (await held(rig, "red"), await held(rig)) == (SIZE, 0)


async def test_a_quota_that_has_no_room_refuses_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(api.TenantCreate(name="red", rom=2 * SIZE - 1))
        await rig.platform.tenants.set_member("red", "ann")
        await job(rig, tenant="red")
        results = await asyncio.gather(*(register(rig) for _ in range(5)), return_exceptions=True)
        refused = [r for r in results if isinstance(r, Refused)]
        assert len(refused) == 4
        assert {r.reason for r in refused} <= {Reason.WAITING_FOR_QUOTA, Reason.EXCEEDS_MAX_QUOTA}
        await at_rest(rig)
        assert await held(rig, "red") == SIZE


@pytest.mark.parametrize("kind", ["text", "a header that is no JSON"])
async def test_a_directory_without_a_model_is_reported_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig, NO_MODELS[kind])
        await register(rig)
        found = await at_rest(rig)
        assert found.state == "error"
        assert "it contains no model, but " in str(found.message)
        assert (await files(rig), await held(rig), found.size) == ({}, 0, 0)
        await register(rig, any_files=True)
        kept = await at_rest(rig)
        assert (kept.version, kept.state, kept.format) == (2, "ready", "files")
        await rig.platform.models.delete(SYSTEM, "ann", "net@1", actor="ann")
        await gone(rig, "net@1")


class Held:
    """Holds a copy between its first file and its second, until the test has done what it does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        whole = file_copy._Copier.file

        def file(copier: Any, *args: Any) -> None:
            whole(copier, *args)
            self.reached.set()
            self.go.wait()

        monkeypatch.setattr(file_copy._Copier, "file", file)

    async def wait(self) -> None:
        await asyncio.to_thread(self.reached.wait)


async def test_a_file_that_changes_while_it_is_copied_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        top = await job(rig)
        held_back = Held(monkeypatch)
        await register(rig)
        await held_back.wait()
        await asyncio.to_thread((top / "ckpt/model.safetensors").write_bytes, WEIGHTS * 3)
        held_back.go.set()
        found = await at_rest(rig)
        assert found.state == "error"
        assert "changed while it was copied" in str(found.message)
        assert (await files(rig), await held(rig)) == ({}, 0)


async def test_a_directory_swapped_for_a_link_while_it_is_copied_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        top = await job(rig, {"a.txt": b"1", "b/model.safetensors": WEIGHTS})
        held_back = Held(monkeypatch)
        await register(rig)
        await held_back.wait()

        def swap() -> None:
            (top / "ckpt/b").rename(top / "aside")
            (top / "ckpt/b").symlink_to("/etc")

        await asyncio.to_thread(swap)
        held_back.go.set()
        found = await at_rest(rig)
        assert (found.state, await files(rig), await held(rig)) == ("error", {}, 0)
        assert "is a link" in str(found.message)


async def test_one_that_is_deleted_while_it_is_copied_goes_with_all_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig)
        held_back = Held(monkeypatch)
        await register(rig)
        await held_back.wait()
        assert (await rig.platform.models.delete(SYSTEM, "ann", "net", actor="ann")).state == "deleting"
        with pytest.raises(Refused, match="cannot become deleting"):
            await rig.platform.models.delete(SYSTEM, "ann", "net", actor="ann")
        held_back.go.set()
        await gone(rig)
        assert (await files(rig), await held(rig)) == ({}, 0)


async def test_a_job_that_is_deleted_takes_no_model_with_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig)
        await register(rig)
        await at_rest(rig)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "digits")
        await rig.until("digits", "cancelled")
        await rig.platform.jobs.delete(SYSTEM, "ann", "digits")
        await until(
            lambda: asyncio.to_thread(lambda: not rig.workspace("ann", "digits").exists()),
            what="the job's files to go",
        )
        assert len(await files(rig)) == 2
        assert (await rig.platform.models.get(SYSTEM, "ann", "net")).lineage.job == "digits"


async def test_a_full_disk_is_an_error_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    async with running_rig(tmp_path) as rig:
        await job(rig)
        monkeypatch.setattr(file_copy._Copier, "_content", full)
        await register(rig)
        found = await at_rest(rig)
        assert found.state == "error"
        assert "disk is full" in str(found.message)
        assert (await files(rig), await held(rig)) == ({}, 0)


@pytest.mark.parametrize("at", ["first file", "copied", "erased"])
async def test_a_service_that_dies_while_it_copies_begins_again(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig, NO_MODELS["text"] if at == "erased" else FILES)
        died = asyncio.Event()
        loop = asyncio.get_running_loop()

        def die(*_: Any) -> Any:
            loop.call_soon_threadsafe(died.set)
            raise OSError(errno.EIO, "killed here")

        with monkeypatch.context() as patched:
            if at == "first file":
                whole = file_copy._Copier.file

                def once(copier: Any, *args: Any) -> None:
                    whole(copier, *args)
                    die()

                patched.setattr(file_copy._Copier, "file", once)
            elif at == "copied":
                patched.setattr(detector_client.ModelLooks, "recognise", die)
            else:
                remove = workspace.remove_directory

                def removed(*args: Any) -> None:
                    remove(*args)
                    die()

                patched.setattr(workspace, "remove_directory", removed)
            await register(rig)
            await died.wait()
            rig.crash()
        assert await held(rig) > 0
        await rig.start()
        found = await at_rest(rig)
        assert found.state == ("error" if at == "erased" else "ready")
        expected = {} if at == "erased" else {f"ann/net@1/{name}": data for name, data in FILES.items()}
        assert await files(rig) == expected
        assert await held(rig) == sum(map(len, expected.values()))


async def test_a_service_that_dies_during_a_deletion_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig)
        await register(rig)
        await at_rest(rig)
        with monkeypatch.context() as patched:
            add = rig.platform.queue.add
            patched.setattr(rig.platform.queue, "add", lambda key: None if key[0] == KIND else add(key))
            await rig.platform.models.delete(SYSTEM, "ann", "net", actor="ann")
            rig.crash()
        assert await held(rig) == SIZE
        await rig.start()
        await gone(rig)
        assert (await files(rig), await held(rig)) == ({}, 0)


async def test_a_model_that_lies_further_down_is_named_as_it_is_registered(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig, {f"export/best/{name}": data for name, data in FILES.items()})
        await register(rig)
        found = await at_rest(rig)
        assert found.state == "error"
        assert "directories below it are: register jobs/digits@1/ckpt/export/best" in str(found.message)
        assert "--any-files" in str(found.message)
        (seen,) = await rig.platform.models.found_in(SYSTEM, "ann", "digits")
        assert (seen.src, seen.format) == ("jobs/digits@1/ckpt/export/best", "safetensors")
        await register(rig, seen.src)
        assert (await at_rest(rig)).state == "ready"


@pytest.mark.parametrize(
    ("src", "right"),
    [
        ("jobs/digits", "write digits for the checkpoints, jobs/digits/ckpt"),
        ("job/digits", "did you mean jobs/digits/ckpt?"),
        ("job/digits/out/net", "did you mean jobs/digits/out/net?"),
    ],
)
async def test_a_source_that_is_nearly_right_is_told_what_would_be(
    src: str, right: str, tmp_path: Path
) -> None:
    async with running_rig(tmp_path) as rig:
        with pytest.raises(Refused, match=right.replace("?", r"\?")):
            await register(rig, src)


async def test_files_written_beside_the_program_are_reported_to_be_in_the_home(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await job(rig)
        home = Path(rig.directories.home("ann"))

        def write() -> None:
            (home / "ckpt/deep").mkdir(parents=True, exist_ok=True)
            (home / "ckpt/deep/model.safetensors").write_bytes(WEIGHTS)

        await asyncio.to_thread(write)
        with pytest.raises(Refused, match=r"not to /workspace/ckpt/deep\. Write home/ckpt/deep"):
            await register(rig, "jobs/digits/ckpt/deep")
        await register(rig, "home/ckpt/deep")
        assert (await at_rest(rig)).state == "ready"
        with pytest.raises(
            Refused, match="digits@1 has no ckpt/none: that is /workspace/ckpt/none in its program"
        ):
            await register(rig, "jobs/digits/ckpt/none")
