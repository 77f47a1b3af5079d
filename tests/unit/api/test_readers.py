"""For whom text is made, as a request tells."""

from __future__ import annotations

import asyncio

import pytest
from tornado.httputil import HTTPHeaders

from mlp_hub.api.edge.reader import language_asked, reader_of


@pytest.mark.parametrize(
    ("headers", "language"),
    [
        ({}, "en"),
        ({"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}, "zh-CN"),
        ({"Accept-Language": "de, en;q=0.5"}, "en"),
        ({"Accept-Language": "zh", "Cookie": "a=b; mlp-language=en"}, "en"),
        ({"Cookie": "mlp-language=zh-CN"}, "zh-CN"),
        ({"Cookie": "mlp-language=../../etc", "Accept-Language": "zh"}, "zh-CN"),
    ],
)
def test_the_chosen_language_goes_before_the_browsers(headers: dict[str, str], language: str) -> None:
    assert language_asked(HTTPHeaders(headers)) == language


@pytest.mark.parametrize(
    ("header", "query", "zone"),
    [
        ("Europe/Berlin", "", "Europe/Berlin"),
        ("Europe/Berlin", "Asia/Shanghai", "Asia/Shanghai"),
        ("UTC", "", "UTC"),
        ("", "", "None"),
        ("Europe", "", "None"),
        ("Europe/Nowhere", "", "None"),
        ("../../etc/passwd", "", "None"),
        ("/etc/localtime", "", "None"),
    ],
)
def test_times_are_in_the_zone_that_is_named(header: str, query: str, zone: str) -> None:
    assert str(asyncio.run(reader_of(HTTPHeaders({"Time-Zone": header}), query)).zone) == zone
