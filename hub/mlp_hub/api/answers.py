"""What goes back: statuses, headers and bodies, in one place so that no route can differ."""

from __future__ import annotations

import logging
from functools import cache
from math import ceil
from typing import Any

import msgspec
from tornado.httputil import HTTPHeaders

from mlp_hub.api.auth import TooMany, Unauthorized
from mlp_hub.domain.errors import Refused, Unavailable

log = logging.getLogger(__name__)
JSON = "application/json"
FAULT = "something went wrong here; it was logged, trying again may help"
_ENCODER = msgspec.json.Encoder()
REASONS = {
    200: "OK",
    201: "Created",
    204: "No Content",
    302: "Found",
    401: "Unauthorized",
    403: "Forbidden",
    429: "Too Many Requests",
    503: "Service Unavailable",
}

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; form-action 'self'; base-uri 'none'"
)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
API_HEADERS = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "no-store",
}


def headers_for(media: str) -> HTTPHeaders:
    """Give the headers of every API answer."""
    headers = HTTPHeaders(API_HEADERS)
    headers["Content-Type"] = media
    return headers


@cache
def _head(status: int, media: str) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers_for(media).get_all()]
    return "\r\n".join([f"HTTP/1.1 {status} {REASONS[status]}", *lines, "Content-Length: "]).encode("latin1")


def plain(status: int, media: str, body: bytes) -> bytes:
    """Give a whole answer as it goes over the wire, for those with the headers of every answer and no others.

    Nearly all answers are such: what is the same in them is put together and checked once and not for each. `media` is a
    word of ours, never a caller's: answers' beginnings are kept by it.
    """
    return b"%b%d\r\n\r\n%b" % (_head(status, media), len(body), body)


def encode(value: Any) -> bytes:
    """Encode an answer as JSON; numbers that are not finite become null."""
    return _ENCODER.encode(value)


def of_error(error: BaseException, what: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Turn what a handler raised into (status, body, extra headers). Faults are logged, never shown."""
    match error:
        case Refused():
            after = {} if error.retry_after is None else {"Retry-After": str(max(ceil(error.retry_after), 1))}
            return 403, {"msg": error.msg, "reason": str(error.reason)}, after
        case Unauthorized():
            text = "a valid token is needed: Authorization: Bearer TOKEN, or log in"
            return 401, {"msg": text}, {"WWW-Authenticate": "Bearer"}
        case TooMany():
            wait = str(error.retry_after)
            return 429, {"msg": f"too many requests; again in {wait} s"}, {"Retry-After": wait}
        case Unavailable():
            return 503, {"msg": error.msg}, {"Retry-After": "2"}
    log.error("%s failed", what, exc_info=error)
    return 503, {"msg": FAULT}, {}
