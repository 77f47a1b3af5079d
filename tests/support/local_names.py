"""Rules of browsers that Python's clients lack: names below localhost are this machine, are as safe as TLS, and cookies have no version."""

from __future__ import annotations

import functools
import re
import ssl
from pathlib import Path

import httpx

_NOT_KEPT = re.compile(rb"; *(?:Secure|Version=1)(?=;|$)", re.IGNORECASE)
"""What makes Python refuse a cookie that a browser would take here."""


@functools.cache
def trusted() -> ssl.SSLContext:
    """Whom Python trusts. Each client that is not given it reads all authorities itself: 50 ms of processor time, to speak HTTP."""
    return ssl.create_default_context()


class LocalNames(httpx.HTTPTransport):
    """Connects to 127.0.0.1 for localhost and every name below it; cookies for safe connections are kept there."""

    def __init__(self, local_address: str | None = None) -> None:
        super().__init__(verify=trusted(), local_address=local_address)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host != "127.0.0.1" and not f".{host}".endswith(".localhost"):
            return super().handle_request(request)
        # a copy, because cookies are kept by the name in the request
        local = httpx.Request(
            request.method,
            request.url.copy_with(host="127.0.0.1"),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        answer = super().handle_request(local)
        answer.headers = httpx.Headers(
            [(k, _NOT_KEPT.sub(b"", v) if k.lower() == b"set-cookie" else v) for k, v in answer.headers.raw]
        )
        return answer


class NamesOverTls(httpx.HTTPTransport):
    """Connects to one address of this machine for every name, from one if it is told, and is sure of whom it speaks to."""

    def __init__(self, pem: Path, address: str = "127.0.0.1", sender: str | None = None) -> None:
        super().__init__(verify=ssl.create_default_context(cafile=str(pem)), local_address=sender)
        self.address = address

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return super().handle_request(
            httpx.Request(
                request.method,
                request.url.copy_with(host=self.address),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions | {"sni_hostname": request.url.host},
            )
        )
