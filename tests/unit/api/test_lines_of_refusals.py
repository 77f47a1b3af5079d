"""Log lines of refused requests stay within their limits, whoever asks and however often."""

from __future__ import annotations

import logging

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from mlp_hub.api.edge.refusals import LINES, RefusalLog

REQUEST = HTTPServerRequest(
    start_line=RequestStartLine("GET", "/a", "HTTP/1.1"), headers=HTTPHeaders({"Host": "hub.example"})
)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [one.getMessage() for one in caplog.records]
    caplog.clear()
    return found


def test_a_flood_from_any_number_of_addresses_has_a_bounded_number_of_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="mlp_hub.refused")
    now = [0.0]
    log = RefusalLog(lambda: now[0])
    for number in range(5000):
        log.note(REQUEST, 401, "", f"10.0.{number // 250}.{number % 250}")
    assert len(messages(caplog)) == LINES["all"].burst
    now[0] = 1.0
    log.note(REQUEST, 403, "NotFound", "10.1.0.1")
    assert messages(caplog) == [
        f"{5000 - int(LINES['all'].burst)} refused requests before the next line have no line of their own",
        "GET /a was refused: 403 NotFound, to 10.1.0.1",
    ]


def test_one_caller_alone_takes_only_its_own_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="mlp_hub.refused")
    log = RefusalLog(lambda: 0.0)
    for number in range(500):  # of IPv6, one customer has a whole network
        log.note(REQUEST, 401, "", f"2001:db8::{number:x}")
    assert len(messages(caplog)) == LINES["caller"].burst
    log.note(REQUEST, 401, "", "2001:db8:1::1")
    assert len(messages(caplog)) == 2
