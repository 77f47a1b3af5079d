"""A number at the top of a module is a limit that people meet, or its docstring says which other kind it is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from mlp_hub.service.support.limits import ServiceLimits
from mlp_hub.settings import table
from mlp_hub.settings.limits import LimitSettings
from reference.limits import SUBJECTS, limits_page
from reference.numbers import LIMIT, MARKS, Number, limits, numbers

REFUSALS = "mlp_hub.service.support.limits"
ROWS = 160
"""Rows of the page at most: a longer one hides the limits that people look for."""


def _place(number: Number) -> str:
    return f"{number.module}.{number.name}"


def test_every_number_says_what_it_is_for() -> None:
    unmarked = [_place(n) for n in numbers() if not n.mark]
    assert not unmarked, f'begin their docstring with one of {MARKS} and a colon, or with "{LIMIT}SUBJECT: "'


def test_every_limit_has_a_heading_of_the_page() -> None:
    unknown = [f"{_place(n)}: {n.subject}" for n in limits() if n.subject not in SUBJECTS]
    unknown += [f"{row.variable}: {row.limit}" for row in table() if row.limit and row.limit not in SUBJECTS]
    assert not unknown, f"their subject is one of {', '.join(SUBJECTS)}"


def test_the_page_has_all_limits_and_no_other_number() -> None:
    page = limits_page()
    rows = [line for line in page.splitlines() if re.match(r"\| (?!limit |-)", line)]
    expected = len(limits()) + sum(bool(row.limit) for row in table())
    assert len(rows) == expected <= ROWS
    inside = [_place(n) for n in numbers() if not n.subject and n.text and n.text in page]
    assert not inside, "these are not limits that people meet, so the page leaves them out"


def test_refusals_take_their_numbers_from_limits() -> None:
    found = [n for n in numbers() if n.module == REFUSALS]
    assert found
    assert all(n.subject for n in found)


def test_each_limit_of_the_service_that_can_be_set_is_a_setting_with_the_same_default() -> None:
    settings = {row.name: row for row in table()}
    for field in fields(ServiceLimits):
        assert float(settings[field.name].default) == field.default, field.name


def test_each_setting_of_a_limit_reaches_what_it_limits() -> None:
    """A setting that nothing reads would promise what no code keeps."""
    root = Path(__file__).parents[3] / "hub" / "mlp_hub"
    text = "\n".join(
        path.read_text()
        for path in root.rglob("*.py")
        if "settings" not in path.parts and path.name != "limits.py"
    )
    of_limits = {field.name for field in fields(ServiceLimits)}
    unread = [
        field.name
        for field in fields(LimitSettings)
        if not re.search(
            rf"\b(?:most|limits|_most)\.{field.name}\b"
            if field.name in of_limits
            else rf"\bsettings\.{field.name}\b",
            text,
        )
    ]
    assert not unread
