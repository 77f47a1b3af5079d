"""Client of a cluster's API. Objects are dictionaries: nothing is made of tens of thousands of pods that nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import aiohttp
import msgspec
from kubernetes_asyncio import client as api
from kubernetes_asyncio import config
from kubernetes_asyncio.config import ConfigException

from mlp_hub.kubernetes.errors import ClusterUnreachable, ConflictingObjectError, MissingObjectError, error_of
from mlp_hub.kubernetes.kinds import Kind, Object, name_of, namespace_of

MANAGER = "mlp-hub"
"""Contract: owner of the fields that the hub applies."""
CONNECT_S = 5.0
"""Tuning: seconds until a connection counts as none: how soon a cluster that is gone is said to be."""
ANSWER_S = 30.0
"""Tuning: seconds until an answer counts as none: how long a slow cluster may take."""
WATCH_S = 300
"""Tuning: seconds until the API ends a watch, which then starts again.

It limits the time for which a connection that died silently is not noticed.
"""
FAREWELL_S = 0.25
"""Given: seconds that connections take to end behind our back; aiohttp tells nobody."""
PAGE = 2_000
"""Tuning: objects of one answer to a list: the API's memory, for the number of answers."""
BUSY = 32
"""Safety: requests in progress at a time: the API rejects requests of a client that sends more."""

JSON = "application/json"
"""Given: how objects cross the wire."""
_META = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
"""Given: media type that asks for objects with their metadata only."""
_decode = msgspec.json.decode


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects of a list, and the version of the cluster that they are of."""

    items: Sequence[Object]
    version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Event of a watch, with the object.

    The types are ADDED, MODIFIED, DELETED, BOOKMARK or, once the API has accepted the watch, OPENED.
    """

    type: str
    object: Object


class _Request(TypedDict, total=False):
    """Parts of a request in addition to its path; `content` is the type of its body, `accept` of its answer."""

    query: Mapping[str, str]
    body: Object
    content: str
    accept: str
    wait_s: float


class KubernetesClient:
    """One cluster's API. Raises `ClusterUnreachable` where it does not answer, else `ClusterError` and its kinds.

    `calls` counts requests by verb and kind, since a cluster has to bear them. With `namespaces`, a list of all namespaces is one
    of these: its user has no rights in others.
    """

    namespaces: tuple[str, ...] = ()

    def __init__(self, configuration: api.Configuration) -> None:
        self._configuration = configuration
        self._api: api.ApiClient | None = None
        self._host = configuration.host or ""
        self._busy = asyncio.Semaphore(BUSY)
        self.calls: Counter[str] = Counter()

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        """Read where the cluster is: from this file, else from the pod that this process is in. Asks the cluster nothing.

        Raises `ConfigException`, naming the fault.
        """
        configuration = api.Configuration()
        if kubeconfig is not None:
            await config.load_kube_config(str(kubeconfig), context, client_configuration=configuration)
        elif "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            raise ConfigException("no kubeconfig is given, and this process is not in a pod")
        return cls(configuration)

    @property
    def host(self) -> str:
        """URL of the API, for messages."""
        return self._host

    async def version(self) -> str:
        """Return the cluster's version, as in v1.34.4."""
        found = await self._ask("GET", "/version", "read the version")
        return str(found["gitVersion"])

    async def review(self, kind: Kind, **asked: Any) -> Object:
        """Ask the API about the asker: its identity, or its rights. Nothing is stored."""
        body: Object = {"apiVersion": kind.api_version, "kind": kind.kind, **asked}
        found = await self._ask("POST", kind.path(), f"create {kind.plural}", body=body)
        status: Object = found["status"]
        return status

    async def try_create(self, wanted: Object, kind: Kind) -> None:
        """Have the API judge an object, its admission included, and store nothing; raises what it refuses."""
        path = kind.path(namespace_of(wanted) or None)
        await self._ask("POST", path, f"create {kind.plural}", query={"dryRun": "All"}, body=wanted)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object; None where there is none."""
        with contextlib.suppress(MissingObjectError):
            return await self._ask("GET", kind.path(namespace, name), f"get {kind.plural}")
        return None

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        metadata: bool = False,
    ) -> Listed:
        """Return all objects of a kind, of one namespace or of all, that these selectors choose; or their `metadata` alone."""
        if namespace is None and kind.namespaced and self.namespaces:
            parts = [
                await self.list(kind, each, labels=labels, fields=fields, metadata=metadata)
                for each in self.namespaces
            ]
            return Listed([item for part in parts for item in part.items], parts[0].version)
        items: list[Object] = []
        query = {"limit": str(PAGE)} | _selected(labels, fields)
        while True:
            found = await self._ask(
                "GET",
                kind.path(namespace),
                f"list {kind.plural}",
                query=query,
                accept=_META.format("List") if metadata else JSON,
            )
            items += found.get("items") or ()
            about = found["metadata"]
            if not about.get("continue"):
                return Listed(items, about["resourceVersion"])
            query["continue"] = about["continue"]

    async def apply(self, wanted: Object, kind: Kind) -> Object:
        """Have the object as told, whoever changed it (server-side apply); fields that are not told are left to others."""
        path = kind.path(namespace_of(wanted) or None, name_of(wanted))
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self._ask(
            "PATCH",
            path,
            f"apply {kind.plural}",
            query=query,
            body=wanted,
            content="application/apply-patch+yaml",
        )

    async def create(self, wanted: Object, kind: Kind) -> Object | None:
        """Create the object, and return it as it is now; None where one of its name is there already."""
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        try:
            path = kind.path(namespace_of(wanted) or None)
            return await self._ask("POST", path, f"create {kind.plural}", query=query, body=wanted)
        except ConflictingObjectError as error:
            if error.reason != "AlreadyExists":
                raise
            return None

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        status: bool = False,
    ) -> Object:
        """Merge these fields into an object. With `metadata.resourceVersion` among them it must be of that version."""
        return await self._ask(
            "PATCH",
            kind.path(namespace, name) + ("/status" if status else ""),
            f"patch {kind.plural}",
            query={"fieldManager": MANAGER},
            body=dict(patch),
            content="application/merge-patch+json",
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        grace_s: int | None = None,
    ) -> bool:
        """Delete an object and what it owns; False where there is none, or one of another uid.

        It returns at once; the object may still be there for as long as its grace.
        """
        body: Object = {"propagationPolicy": "Background"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            await self._ask("DELETE", kind.path(namespace, name), f"delete {kind.plural}", body=body)
        except MissingObjectError:
            return False
        except ConflictingObjectError:
            if uid is None:
                raise
            return False
        return True

    async def delete_all(
        self, kind: Kind, namespace: str, *, labels: str, grace_s: int | None = None
    ) -> Sequence[Object]:
        """Delete all objects of a namespace that these labels choose, and what they own; return those that were there."""
        body: Object = {"propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        found = await self._ask(
            "DELETE",
            kind.path(namespace),
            f"deletecollection {kind.plural}",
            query=_selected(labels, ""),
            body=body,
        )
        items: Sequence[Object] = found.get("items") or ()
        return items

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster has objects of this kind: where an operator is installed, it has those of that."""
        try:
            found = await self._ask("GET", kind.path().rpartition("/")[0], "discover the API")
        except MissingObjectError:
            return False
        return any(each["name"] == kind.plural for each in found.get("resources", ()))

    async def read(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Return what lies at a path of the API, as it is: a pod's log."""
        async with self._open("GET", path, f"read {path}", query=query or {}) as answer:
            data: bytes = await answer.read()
            return data

    async def watch(
        self,
        kind: Kind,
        version: str,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        metadata: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Yield the events of these objects after a version, until the API ends the watch.

        Then it continues from the last version. Raises `ExpiredWatchError` where that version is too old.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_S),
        } | _selected(labels, fields)
        asked = f"watch {kind.plural}"
        async with self._open(
            "GET",
            kind.path(namespace),
            asked,
            query=query,
            wait_s=WATCH_S + ANSWER_S,
            accept=_META.format("") if metadata else JSON,
        ) as answer:
            yield WatchEvent("OPENED", {"metadata": {"resourceVersion": version}})
            async for line in _lines(answer):
                event = _decode(line)
                found = event["object"]
                if event["type"] == "ERROR":
                    raise error_of(asked, int(found.get("code", 500)), found, self._host)
                yield WatchEvent(event["type"], found)

    async def close(self) -> None:
        """Close all connections; a later request opens others."""
        closing, self._api = self._api, None
        if closing is None:
            return
        connector = closing.rest_client.pool_manager.connector
        if connector is not None:
            await connector.close(abort_ssl=True)
        await closing.close()
        await asyncio.sleep(FAREWELL_S)

    async def _ask(self, method: str, path: str, asked: str, **more: Unpack[_Request]) -> Object:
        async with self._busy, self._open(method, path, asked, **more) as answer:
            found: Object = _decode(await answer.read())
            return found

    @contextlib.asynccontextmanager
    async def _open(
        self, method: str, path: str, asked: str, **more: Unpack[_Request]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        self.calls[asked] += 1
        if self._api is None:
            self._api = api.ApiClient(self._configuration)
        try:
            answer = await self._api.call_api(
                path,
                method,
                query_params=list(more.get("query", {}).items()),
                header_params={"Accept": more.get("accept", JSON), "Content-Type": more.get("content", JSON)},
                body=more.get("body"),
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=aiohttp.ClientTimeout(
                    total=more.get("wait_s", ANSWER_S), sock_connect=CONNECT_S
                ),
            )
            async with answer:
                if answer.status >= 400:
                    raise await self._refusal(answer, asked)
                try:
                    yield answer
                finally:
                    _cut(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterUnreachable(self._host, str(error) or type(error).__name__) from error

    async def _refusal(self, answer: aiohttp.ClientResponse, asked: str) -> Exception:
        data = await answer.read()
        try:
            body = _decode(data)
        except msgspec.DecodeError:
            body = data.decode(errors="replace")
        return error_of(asked, answer.status, body, self._host)


def _cut(answer: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that is not read to its end, as a watch's: nobody waits for a farewell."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _selected(labels: str, fields: str) -> dict[str, str]:
    return {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, however long they are."""
    rest = b""
    async for data in answer.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line:
                yield line
