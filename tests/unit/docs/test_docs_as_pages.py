"""The documentation as the hub serves it."""

from __future__ import annotations

import posixpath
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mlp_hub.web import docs, markdown

ROOT = Path(__file__).parents[3]


class Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.images: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given["src"])


@cache
def seen(name: str) -> Seen | None:
    """Return what a page has; the longest is led to from itself a thousand times."""
    page = docs.rendered(name, "en")
    return None if page is None else Seen(page)


def test_the_installed_package_has_every_page_of_the_source_tree() -> None:
    source = ROOT / "docs"
    assert set(docs.pages()) == {str(p.relative_to(source).with_suffix("")) for p in source.rglob("*.md")}
    assert "site-packages" in str(docs.folder())


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_every_link_of_a_page_leads_to_a_page_and_a_heading_that_are_there(name: str) -> None:
    page = seen(name)
    assert page is not None
    assert len(page.ids) == len(set(page.ids)), "two headings with one anchor"
    for link in page.links:
        path, _, place = link.partition("#")
        if "//" in path or path.startswith("/services/mlp/"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        other = seen("index" if target == "." else target)
        assert other is not None, f"{name}: {link}"
        if place:
            assert place in other.ids, f"{name}: {link}"
    for image in page.images:
        assert (docs.folder() / posixpath.dirname(name) / image).is_file(), f"{name}: {image}"


@pytest.mark.parametrize(
    "name", ["../pages", "nothing", "index.md", "/etc/passwd", "how-to", "images/job-in-cell", "\0"]
)
def test_a_name_without_a_page_is_not_rendered(name: str) -> None:
    assert docs.rendered(name, "en") is None


def test_text_of_the_documentation_is_never_markup() -> None:
    page = docs.rendered("reference/submit", "en")
    assert page is not None
    assert "<script>" not in page.split("</head>")[1]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What a job sees", "what-a-job-sees"),
        ("<code>mlp-hub up</code>, twice", "mlp-hub-up-twice"),
        ("A &amp; b", "a--b"),
    ],
)
def test_a_heading_has_the_anchor_that_others_give_it(heading: str, anchor: str) -> None:
    assert markdown.anchor(heading) == anchor
