"""Each page of the panel has a row in the table of the browser's tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
THE_SAME = {"jobs", "tenants/:"}
"""Other addresses of pages that have a row."""


def test_each_page_of_the_panel_is_opened_in_every_theme_and_width() -> None:
    pages = re.findall(r'\bpath: "([^"]*)"', (ROOT / "widgets/src/panel/pages.tsx").read_text())
    table = (ROOT / "tests/support/front/pages.py").read_text().partition("PAGES = {")[2].partition("}")[0]
    opened = re.findall(r'": \("([^"]*)", ', table)
    assert len(pages) > 20
    untested = [
        page
        for page in pages
        if page not in THE_SAME
        and not any(re.fullmatch(page.replace(":", "[^/]+"), address) for address in opened)
    ]
    assert not untested, f"{untested}: add a row to PAGES of tests/support/front/pages.py for each"


def test_each_page_of_the_navigation_is_opened_with_an_error() -> None:
    rows = re.split(r'\bpath: "', (ROOT / "widgets/src/panel/pages.tsx").read_text())[1:]
    pages = {row.partition('"')[0] for row in rows if "entries: " in row}
    look = (ROOT / "tests/integration/widgets/test_pages_look.py").read_text()
    faulty = set(
        re.findall(r'^    "([^"]*)": ', look.partition("FAULTS = {")[2].partition("}")[0], re.MULTILINE)
    )
    assert len(pages) > 15
    untested = sorted(pages - faulty - THE_SAME)
    assert not untested, (
        f"{untested}: add a row to FAULTS of tests/integration/widgets/test_pages_look.py for each"
    )
