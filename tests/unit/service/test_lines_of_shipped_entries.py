"""An entry of the audit log is one short line for any receiver, whatever people call themselves and their things."""

from __future__ import annotations

import json

import pytest

from mlp_hub.service.audit.receivers import syslog_message
from mlp_hub.service.audit.shipping import LONGEST, line_of
from mlp_hub.store.records import ShippedLink

HOSTILE = (
    "a\nb",
    "a\r\n<110>1 2026-01-01T00:00:00Z hub mlp-hub - audit - forged",
    '"} {"type": "audit", "actor": "admin"',
    "\ufeff\u202e\u2028\x85\x00\x1b[2J\x7f",
    "5 <110>1",
    "\ud800",
    "中" * 200,
)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_makes_a_second_entry(name: str) -> None:
    link = ShippedLink(7, 3, False, None, b"\1" * 32, 1e9, name, name, name, name, {name: name, "n": [name]})
    line = line_of(link, LONGEST)
    assert line.isascii()
    assert all(32 <= byte < 128 for byte in line)
    message = syslog_message(1e9, "audit", line)
    assert message.count(b"\n") == 0
    head, _, body = message.partition(b" - audit - ")
    assert head.startswith(b"<110>1 2001-09-09T01:46:40.000Z ")
    assert body == line
    found = json.loads(line)
    assert (found["actor"], found["object"], found["tenant"]) == (name, name, name)
    assert found["detail"] == {name: name, "n": [name]}


def test_an_entry_with_texts_of_any_length_has_a_line_that_a_datagram_holds() -> None:
    """One that no datagram holds would be sent again without end, and all later ones would wait."""
    long = "\U0001f600" * 50_000
    line = line_of(
        ShippedLink(7, 3, False, None, b"\1" * 32, 1e9, long, long, long, long, {"x": long}), LONGEST
    )
    assert len(line) <= LONGEST
    found = json.loads(line)
    assert found["detail"]["left_out"] > LONGEST
    assert long.startswith(found["actor"])
    assert found["link"] == 7
