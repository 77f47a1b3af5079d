"""A copy of a cluster's objects goes on whatever happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from mlp_hub.kubernetes import reflector
from mlp_hub.kubernetes.client import KubernetesClient, Listed, WatchEvent
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, Object
from mlp_hub.kubernetes.reflector import Reflector, Selection
from support import waiting


def config_map(name: str, version: int) -> Object:
    made = CONFIG_MAPS.named(name, "n")
    made["metadata"] |= {"uid": name, "resourceVersion": str(version)}
    return made


class OneObject:
    """A cluster with one object, of which nothing more is told."""

    async def list(self, *_: Any, **__: Any) -> Listed:
        return Listed([config_map("one", 1)], "1")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent("BOOKMARK", {})


async def test_an_unreadable_object_is_reported_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reflector, "FIRST_WAIT_S", 0.01)
    faulty = [True]

    def keep(found: Object) -> str:
        if faulty:
            raise KeyError("spec")
        return str(found["metadata"]["name"])

    recovered: list[bool] = []
    copy = Reflector(
        cast(KubernetesClient, OneObject()),
        Selection(CONFIG_MAPS),
        keep,
        recovered=lambda: recovered.append(True),
    )
    running = asyncio.ensure_future(copy.run())

    async def troubled() -> bool:
        return copy.trouble is not None

    await waiting.until(troubled, what="trouble", every=0.01)
    assert str(copy.trouble) == "configmaps of the cluster are not up to date: KeyError('spec')"
    assert not running.done()
    faulty.clear()
    await copy.synced()
    assert copy.objects == {("n", "one"): "one"}
    assert copy.trouble is None
    assert recovered == [True]
    running.cancel()
    (record,) = caplog.records
    assert record.exc_info is not None  # where it comes from can be read in the log
