"""Asking the API server directly: kubectl would read the schema of everything first, which takes seconds."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any

from mlp_cluster.place import Place
from mlp_cluster.running import ClusterError


class Api:
    """The API server of one cluster, as its administrator."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        pki = self.place.folder / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        direct = urllib.request.ProxyHandler({})
        return urllib.request.build_opener(direct, urllib.request.HTTPSHandler(context=context))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://{self.place.node}:6443{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        with self._opener.open(request, timeout=30) as answer:
            read: bytes = answer.read()
        return read

    def get(self, path: str) -> dict[str, Any] | None:
        """Return an object, or None where it is not there or the server cannot be reached."""
        try:
            read = self._ask("GET", path)
        except OSError:
            return None
        return json.loads(read) if read.startswith(b"{") else {"text": read.decode()}

    def holds(self, path: str, condition: str) -> bool:
        """Say whether a condition of an object is true."""
        status = (self.get(path) or {}).get("status") or {}
        return any(c["type"] == condition and c["status"] == "True" for c in status.get("conditions") or [])

    def create(self, objects: Sequence[dict[str, Any]]) -> None:
        """Bring objects to the cluster; those that are there stay as they are."""
        for one in objects:
            try:
                self._ask("POST", self._path(one), one)
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.CONFLICT:
                    what = f"{one['kind']} {one['metadata']['name']}"
                    raise ClusterError(f"{what} is refused: {error.read().decode()}") from None

    def delete(self, path: str) -> None:
        """Delete an object if it is there."""
        try:
            self._ask("DELETE", path)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    def _path(self, one: dict[str, Any]) -> str:
        version = one["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds = (self.get(root) or {}).get("resources", [])
        found = [kind for kind in kinds if kind["kind"] == one["kind"] and "/" not in kind["name"]]
        if not found:
            raise ClusterError(f"the cluster knows no {one['kind']} of {version}")
        inside = f"/namespaces/{one['metadata']['namespace']}" if found[0]["namespaced"] else ""
        return f"{root}{inside}/{found[0]['name']}"

    def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        """Return what a Secret holds; nothing where it is not there."""
        found = self.get(f"/api/v1/namespaces/{namespace}/secrets/{name}") or {}
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
