"""Whose word a request to log out is, by what the browser says of where it began."""

from __future__ import annotations

import pytest

from mlp_hub.hub_integration.pages.leaving import is_own_word
from mlp_hub.settings.origins import Origins

ORIGINS = Origins("https://hub.example.org", "users.example.org")
MINE, THEIRS = "https://ann.users.example.org/user/ann/lab", "https://bob.users.example.org/user/bob/lab"


def headers(site: str = "", dest: str = "document", referer: str = "") -> dict[str, str]:
    given = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": dest, "Referer": referer}
    return {name: value for name, value in given.items() if value}


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (headers(), True),  # a browser that says nothing, or a program
        (headers("none"), True),
        (headers("same-origin", "empty"), True),
        (headers("cross-site"), False),
        (headers("same-site"), False),
        (headers("something-new"), False),
        (headers("same-site", referer=MINE), True),
        (headers("cross-site", referer=MINE), True),
        (headers("same-site", "image", MINE), False),
        (headers("same-site", "iframe", MINE), False),
        (headers("same-site", "", MINE), False),
        (headers("same-site", referer=THEIRS), False),
        (headers("same-site", referer="https://ann.users.example.org.evil.example/"), False),
        (headers("cross-site", referer="http://["), False),
    ],
)
def test_a_request_to_log_out_is_the_persons_own_or_is_asked_about(given: dict[str, str], own: bool) -> None:
    assert is_own_word(given, ORIGINS, "ann") is own


def test_where_all_pages_are_on_one_name_notebooks_ask_too() -> None:
    assert not is_own_word(headers("same-site", referer=MINE), Origins("https://hub.example.org", ""), "ann")
