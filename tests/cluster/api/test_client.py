"""The client of a cluster's API, and the copies that are kept by watches, with a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from mlp_hub.kubernetes import client as clients
from mlp_hub.kubernetes.client import KubernetesClient, Listed
from mlp_hub.kubernetes.errors import (
    ConflictingObjectError,
    ExpiredWatchError,
    ForbiddenError,
    InvalidObjectError,
    MissingObjectError,
    WebhookUnreachable,
)
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, JOBS, MPI_JOBS, POD_GROUPS, TF_JOBS, Kind, Object, name_of
from mlp_hub.kubernetes.reflector import Reflector, Selection
from support import waiting
from support.cluster.kube import Namespace
from support.cluster.kube_lab import configuration

Asks = Callable[[KubernetesClient], Awaitable[None]]
YOUNG = POD_GROUPS
"""A kind that there was not yet at version 1, so that the API server has no news from then on; of older kinds it may have them."""
WEBHOOKS = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)


@pytest.fixture
def ask(namespace: Namespace) -> Callable[[Asks], KubernetesClient]:
    found = configuration(namespace.kube.kubeconfig)

    def run(test: Asks) -> KubernetesClient:
        async def go() -> KubernetesClient:
            client = KubernetesClient(found)
            try:
                await test(client)
            finally:
                await client.close()
            return client

        return asyncio.run(go())

    return run


Ask = Callable[[Asks], KubernetesClient]


def config_map(namespace: Namespace, name: str, **data: str) -> Object:
    return CONFIG_MAPS.named(name, namespace.name, data=data)


def test_the_first_caller_to_create_an_object_gets_it(ask: Ask, namespace: Namespace) -> None:
    async def test(client: KubernetesClient) -> None:
        one = config_map(namespace, "one", a="1")
        made = await asyncio.gather(*(client.create(one, CONFIG_MAPS) for _ in range(5)))
        (first,) = [each for each in made if each is not None]
        found = await client.get(CONFIG_MAPS, "one", namespace.name)
        assert found == first
        assert await client.get(CONFIG_MAPS, "two", namespace.name) is None
        assert not await client.delete(CONFIG_MAPS, "one", namespace.name, uid="another")
        assert await client.delete(CONFIG_MAPS, "one", namespace.name, uid=first["metadata"]["uid"])
        assert not await client.delete(CONFIG_MAPS, "one", namespace.name)

    ask(test)


def test_patching_an_object_that_changed_meanwhile_is_a_conflict(ask: Ask, namespace: Namespace) -> None:
    async def test(client: KubernetesClient) -> None:
        made = await client.create(config_map(namespace, "one"), CONFIG_MAPS)
        assert made is not None
        old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "1"}}
        await client.patch(CONFIG_MAPS, "one", old, namespace.name)
        with pytest.raises(ConflictingObjectError):
            await client.patch(CONFIG_MAPS, "one", old, namespace.name)
        with pytest.raises(MissingObjectError):
            await client.patch(CONFIG_MAPS, "two", old, namespace.name)

    ask(test)


@pytest.mark.parametrize("kind", [JOBS, MPI_JOBS])
def test_a_field_that_there_is_not_is_the_objects_fault(ask: Ask, namespace: Namespace, kind: Kind) -> None:
    async def test(client: KubernetesClient) -> None:
        wrong = kind.named("wrong", namespace.name, spec={"nonsense": 1})
        for act in (client.apply, client.create):
            with pytest.raises(InvalidObjectError, match="nonsense"):
                await act(wrong, kind)

    ask(test)


def test_a_webhook_that_refuses_is_told_from_one_that_does_not_answer(ask: Ask, namespace: Namespace) -> None:
    pod = {"spec": {"containers": [{"name": "other", "image": "none"}]}}
    wrong = TF_JOBS.named(
        "wrong",
        namespace.name,
        spec={"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": pod}}},
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    silent = WEBHOOKS.named(
        f"silent-{namespace.name}",
        webhooks=[
            {
                "name": "silent.mlp.test",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1,
            }
        ],
    )

    async def test(client: KubernetesClient) -> None:
        with pytest.raises((InvalidObjectError, ForbiddenError), match="denied the request"):
            await client.create(wrong, TF_JOBS)
        await client.create(silent, WEBHOOKS)
        try:
            count = iter(range(10_000))

            async def refused() -> bool:
                try:
                    await client.create(config_map(namespace, f"one-{next(count)}"), CONFIG_MAPS)
                except WebhookUnreachable as error:
                    return "silent.mlp.test" in str(error)
                return False

            await waiting.until(refused, what="the webhook to be called", every=0.1)
        finally:
            await client.delete(WEBHOOKS, name_of(silent))

    ask(test)


async def test_a_forbidden_request_names_the_verb_and_the_resource(ask: Ask, namespace: Namespace) -> None:
    namespace("create", "serviceaccount", "nobody")
    token = namespace("create", "token", "nobody").strip()
    found = configuration(namespace.kube.kubeconfig)
    found.api_key, found.api_key_prefix = {"BearerToken": token}, {"BearerToken": "Bearer"}
    found.cert_file = found.key_file = None

    client = KubernetesClient(found)
    try:
        with pytest.raises(ForbiddenError, match=r'cannot list resource "mpijobs"') as refused:
            await client.list(MPI_JOBS)
        assert refused.value.rights
        assert refused.value.passes
        with pytest.raises(ForbiddenError, match=r'cannot create resource "configmaps".*'):
            await client.create(config_map(namespace, "one"), CONFIG_MAPS)
        copy = Reflector(client, Selection(CONFIG_MAPS), name_of)
        task = asyncio.ensure_future(copy.run())
        await waiting.until(lambda: _now(copy.trouble), what="trouble")
        assert "cannot list" in str(copy.trouble)
        task.cancel()
    finally:
        await client.close()


def test_a_quota_refusal_is_not_reported_as_missing_rights(ask: Ask, namespace: Namespace) -> None:
    namespace("create", "quota", "small", "--hard=count/configmaps=1")

    async def test(client: KubernetesClient) -> None:
        count = iter(range(10_000))

        async def refused() -> ForbiddenError | None:
            try:
                await client.create(config_map(namespace, f"one-{next(count)}"), CONFIG_MAPS)
            except ForbiddenError as error:
                return None if "status unknown" in error.said else error
            return None

        error = await waiting.until(refused, what="the quota")
        assert "exceeded quota" in str(error)
        assert not error.passes

    ask(test)


def test_lists_come_in_pages(ask: Ask, namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "PAGE", 2)

    async def test(client: KubernetesClient) -> None:
        for number in range(5):
            await client.create(config_map(namespace, f"c{number}", a="much"), CONFIG_MAPS)
        found = await client.list(CONFIG_MAPS, namespace.name, fields="metadata.name!=kube-root-ca.crt")
        assert [name_of(each) for each in found.items] == [f"c{n}" for n in range(5)]
        bare = await client.list(CONFIG_MAPS, namespace.name, metadata=True)
        assert all("data" not in each for each in bare.items)

    assert ask(test).calls["list configmaps"] >= 5


def test_a_watch_tells_bookmarks_and_that_it_begins_too_early(
    ask: Ask, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "WATCH_S", 4)

    async def test(client: KubernetesClient) -> None:
        listed = await client.list(CONFIG_MAPS, namespace.name)

        async def bookmark() -> bool:
            told = [each async for each in client.watch(CONFIG_MAPS, listed.version, namespace.name)]
            assert told[0].type == "OPENED"
            return any(each.type == "BOOKMARK" for each in told)

        await waiting.until(bookmark, what="a bookmark")
        with pytest.raises(ExpiredWatchError):
            async for _ in client.watch(YOUNG, "1", namespace.name):
                pass

    ask(test)


class News:
    """What a copy told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None, str | None]] = []

    def __call__(self, key: tuple[str, str], before: str | None, now: str | None) -> None:
        self.told.append((key[1], before, now))


def value(found: Object) -> str | None:
    return (found.get("data") or {}).get("a")


async def _now(found: Any) -> Any:
    return found


def copy_of(client: KubernetesClient, namespace: Namespace, news: News) -> Reflector[str]:
    return Reflector(client, Selection(CONFIG_MAPS, namespace.name), value, news)


def test_a_copy_is_kept_over_the_end_of_its_watch_without_a_second_list(
    ask: Ask, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "WATCH_S", 1)
    news = News()

    async def test(client: KubernetesClient) -> None:
        copy = copy_of(client, namespace, news)
        task = asyncio.ensure_future(copy.run())
        await copy.synced()
        for n in range(3):
            await client.apply(config_map(namespace, "one", a=str(n)), CONFIG_MAPS)
            seen = str(n)
            await waiting.until(lambda seen=seen: _now(copy.objects.get((namespace.name, "one")) == seen))
            watches = client.calls["watch configmaps"]
            await waiting.until(lambda before=watches: _now(client.calls["watch configmaps"] > before))
        await client.delete(CONFIG_MAPS, "one", namespace.name)
        await waiting.until(lambda: _now(not copy.objects))
        task.cancel()

    client = ask(test)
    assert news.told == [("one", None, "0"), ("one", "0", "1"), ("one", "1", "2"), ("one", "2", None)]
    assert client.calls["list configmaps"] == 1


def test_a_copy_whose_version_is_too_old_is_listed_again(
    ask: Ask, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = News()
    listed = KubernetesClient.list
    versions = iter(["1"])

    async def too_old(self: KubernetesClient, *args: Any, **more: Any) -> Listed:
        found = await listed(self, *args, **more)
        return Listed(found.items, next(versions, found.version))

    monkeypatch.setattr(KubernetesClient, "list", too_old)

    def group(name: str, a: str) -> Object:
        made = YOUNG.named(name, namespace.name, spec={"minMember": 1})
        made["metadata"]["annotations"] = {"a": a}
        return made

    async def test(client: KubernetesClient) -> None:
        await client.create(group("one", "1"), YOUNG)
        selected = Selection(YOUNG, namespace.name)
        copy = Reflector(client, selected, lambda found: found["metadata"]["annotations"]["a"], news)
        task = asyncio.ensure_future(copy.run())
        await waiting.until(lambda: _now(client.calls["list podgroups"] >= 2))
        await client.create(group("two", "2"), YOUNG)
        await waiting.until(lambda: _now(len(copy.objects) == 2))
        task.cancel()

    ask(test)
    assert news.told == [("one", None, "1"), ("two", None, "2")]


def test_own_writes_are_visible_at_once_and_not_undone_by_older_events(
    ask: Ask, namespace: Namespace
) -> None:
    news = News()

    async def test(client: KubernetesClient) -> None:
        copy = copy_of(client, namespace, news)
        task = asyncio.ensure_future(copy.run())
        await copy.synced()
        key = (namespace.name, "one")
        for n in range(20):
            made = await client.apply(config_map(namespace, "one", a=str(n)), CONFIG_MAPS)
            copy.learn(made)
            assert copy.objects[key] == str(n)
        uid = made["metadata"]["uid"]
        await client.delete(CONFIG_MAPS, "one", namespace.name)
        copy.unlearn(key, uid)
        assert key not in copy.objects
        await copy.refresh()
        await client.create(config_map(namespace, "last", a="end"), CONFIG_MAPS)
        await waiting.until(lambda: _now((namespace.name, "last") in copy.objects))
        task.cancel()

    ask(test)
    steps = [None, *map(str, range(20)), None]
    expected = [("one", a, b) for a, b in pairwise(steps)]
    assert news.told == [*expected, ("last", None, "end")]
