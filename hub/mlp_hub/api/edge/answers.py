"""Answers with their statuses, headers and bodies, in one place so that all routes agree."""

from __future__ import annotations

import logging
from functools import cache
from math import ceil
from typing import Any

import msgspec
from tornado.httputil import HTTPHeaders

from mlp_api.localized import writer
from mlp_hub.api.auth.authentication import TooMany, Unauthorized
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.logs.concern import HEADER, current
from mlp_hub.service.jobs.wire import fact_to
from mlp_hub.store.errors import ValueRefused
from mlp_language.message import Message, Viewer, msg, to_data
from mlp_language.render import ENGLISH, Reader, render

log = logging.getLogger(__name__)
JSON = "application/json"
FAULT = msg("something went wrong here; it was logged, trying again may help")
STRANGER = Viewer(own=frozenset())
"""Viewer who sees nobody's jobs: the viewer is not yet known."""
VARY = "Cookie, Accept-Language, Time-Zone"
"""Headers that an answer's text goes by."""
REASONS = {
    200: "OK",
    201: "Created",
    204: "No Content",
    206: "Partial Content",
    302: "Found",
    401: "Unauthorized",
    403: "Forbidden",
    429: "Too Many Requests",
    503: "Service Unavailable",
}

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"
)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
API_HEADERS = {
    **SECURITY_HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "no-store",
}


def headers_for(media: str, language: str = "") -> HTTPHeaders:
    """Give the headers of every API answer; a client speaks to its person in the `language` of the answers."""
    headers = HTTPHeaders(API_HEADERS)
    headers["Content-Type"] = media
    if language:
        headers["Content-Language"] = language
    return headers


@cache
def _head(status: int, media: str, language: str) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers_for(media, language).get_all()]
    return "\r\n".join([f"HTTP/1.1 {status} {REASONS[status]}", *lines, "Content-Length: "]).encode("latin1")


def plain(status: int, media: str, body: bytes, language: str = "") -> bytes:
    """Return a whole answer as bytes, for answers with the headers of every answer and no others.

    Nearly all answers are of this kind, so their common part is assembled and checked once and not for
    each answer. `media` and `language` are words of the hub, never a caller's, because the beginnings
    of answers are cached by them.
    """
    return b"%b%d\r\n\r\n%b" % (_head(status, media, language), len(body), body)


def encode(value: Any, reader: Reader = ENGLISH, viewer: Viewer = STRANGER) -> bytes:
    """Encode an answer as JSON for one reader with such rights; numbers that are not finite become null."""
    return msgspec.json.Encoder(enc_hook=writer(reader, viewer)).encode(value)


def of_error(
    error: BaseException, what: str, reader: Reader, viewer: Viewer = STRANGER
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Turn what a handler raised into (status, body, extra headers), told to a reader with such rights.

    Faults are logged, never shown. Body and headers have the id of the current request.
    """
    if isinstance(error, ValueRefused):  # by the database: what no other check has found
        log.warning("%s was sent what cannot be stored: %s", what, error.__cause__)
        error = Refused(Reason.INVALID, error.message)
    status, message, extra = _answer_to(error, what)
    if isinstance(error, Refused) and error.viewer is not None:
        viewer = error.viewer
    shown = viewer.hidden(message)
    body: dict[str, Any] = {"msg": render(shown, reader), "detail": to_data(shown)}
    if isinstance(error, Refused):
        body["reason"] = str(error.reason)
        facts = [fact_to(f) for f in error.facts]
        body["facts"] = msgspec.to_builtins(facts, enc_hook=writer(reader, viewer))
    if request_id := current().request_id:
        body["request_id"] = request_id
        extra = {**extra, HEADER: request_id}
    return status, body, {"Content-Language": reader.language, "Vary": VARY, **extra}


def _answer_to(error: BaseException, what: str) -> tuple[int, Message, dict[str, str]]:
    match error:
        case Refused():
            after = {} if error.retry_after is None else {"Retry-After": str(max(ceil(error.retry_after), 1))}
            return 403, error.message, after
        case Unauthorized():
            text = msg("a valid token is needed: Authorization: Bearer TOKEN, or log in")
            return 401, text, {"WWW-Authenticate": "Bearer"}
        case TooMany():
            wait = error.retry_after
            return 429, msg("too many requests; try again in {wait} s", wait=wait), {"Retry-After": str(wait)}
        case Unavailable():
            return 503, error.message, {"Retry-After": "2"}
    log.error("%s failed", what, exc_info=error)
    return 503, FAULT, {}
