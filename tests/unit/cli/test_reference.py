"""The reference pages say what the program does."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.cli.reference import settings_page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_settings_is_the_table_of_settings() -> None:
    page = DOCS / "reference" / "settings.md"
    assert page.read_text() == settings_page(), f"python -m mlp_hub.cli.reference > {page}"
