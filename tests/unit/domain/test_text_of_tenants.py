"""Text that tenants wrote, where it becomes a message or a line of a log."""

from __future__ import annotations

import io
import logging
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.cli.lifecycle.status import _line
from mlp_hub.domain.text import calling_nobody, escaped, one_line, readable
from mlp_hub.logs.lines import TextLines

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\u200e\u200f]")
EVIL = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\u202egnp.exe\r\n[I 2026 hub] User logged in: admin\x9b2J\0"


@given(st.text(st.sampled_from("a\x1b[]0;m\r\n\t\x07\x9b\u202e\u2066\u2028\x00\ud800é")))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for made in (readable(text), one_line(text), escaped(text)):
        assert not STEERING.search(made)
    assert "\n" not in one_line(text) + escaped(text)
    assert readable(readable(text)) == readable(text)


def test_readable_text_stays() -> None:
    assert readable("é 日本 مرحبا\n\tx") == "é 日本 مرحبا\n\tx"
    assert readable(EVIL) == "aredgnp.exe\n[I 2026 hub] User logged in: admin2J"
    assert one_line(EVIL) == "aredgnp.exe | [I 2026 hub] User logged in: admin2J"
    assert escaped("a\n\x1b[1m\u202e") == r"a\n\x1b[1m\u202e"


@pytest.mark.parametrize(
    "text",
    [
        "@everyone",
        "@here",
        "@**all**",
        "x@all",
        "@@all",
        "<!channel>",
        "<@123>",
        "<@&456>",
        "<http://evil|in>",
        "[in](http://evil)",
    ],
)
def test_attack_marks_of_chats_are_broken_and_read_the_same(text: str) -> None:
    made = calling_nobody(f"a {text} b")
    assert text not in made
    assert made.replace("\N{ZERO WIDTH SPACE}", "") == f"a {text} b"


def test_ordinary_text_has_no_marks_of_chats() -> None:
    for text in ("digits@3 failed: 2 < 3, a[1] (of 2)", "0 @ 1", "100 %"):
        assert calling_nobody(text) == text


def test_a_log_line_of_the_service_stays_one_and_a_traceback_is_indented() -> None:
    error = RuntimeError(EVIL)
    record = logging.LogRecord(
        "x", logging.ERROR, "f", 1, "it is %s", (EVIL,), (RuntimeError, error, error.__traceback__)
    )
    first, *rest = TextLines().format(record).split("\n")
    assert first.endswith(r"admin\x9b2J\x00")
    assert all(line.startswith("    ") for line in rest)
    assert not STEERING.search(first + "".join(rest))


def test_the_operators_terminal_gets_no_escapes_from_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    _line("hub", "said \x1b]0;pwned\x07\u202e", 3)
    assert out.getvalue() == "hub | said \\x1b]0;pwned\\x07\\u202e\n"
