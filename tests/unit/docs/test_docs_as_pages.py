"""The documentation as the hub serves it: the pages that `tools/docsite` builds with the wheel."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import mistune
import pytest

from docsite import build, source, terms
from mlp_hub.domain.errors import Reason
from mlp_hub.settings import table
from mlp_hub.web import docs
from mlp_language.catalogue import LANGUAGES

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "docs"
OF_TEXT = {"h1", "h2", "h3", "li", "ol", "ul", "table", "th", "pre", "strong", "em", "img"}


class Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.files: list[str] = []
        self.inline: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.files += [given["src"]] if "src" in given else []
        self.files += [given["href"]] if tag == "link" and given.get("rel") in {"stylesheet", "icon"} else []
        self.inline += [k for k in given if k == "style" or k.startswith("on")]
        if tag == "style" or (tag == "script" and not given.keys() & {"src", "type"}):
            self.inline.append(tag)


@cache
def seen(name: str) -> Seen | None:
    """Return what a page has; the longest is led to from itself a thousand times."""
    page = docs.rendered(name, "en")
    return None if page is None else Seen(page)


def test_the_installed_package_has_every_page_of_the_source_tree() -> None:
    assert set(docs.pages()) == {str(p.relative_to(SOURCE).with_suffix("")) for p in SOURCE.rglob("*.md")}


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_every_link_of_a_page_leads_to_a_page_and_a_heading_that_are_there(name: str) -> None:
    page = seen(name)
    assert page is not None
    assert len(page.ids) == len(set(page.ids)), "two places with one anchor"
    for link in page.links:
        path, _, place = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else f"{name}.html"
        if "//" in path or target == ".." or path.startswith(("mailto:", "/services/mlp/")):
            continue
        assert docs.page(target, "en"), f"{name}: {link}"
        if place:
            other = seen(target.removesuffix(".html"))
            assert other is not None
            assert place in other.ids, f"{name}: {link}"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_a_page_needs_no_other_host_and_obeys_the_policy_of_pages(name: str, language: str) -> None:
    page = Seen(docs.rendered(name, language) or "")
    assert page.inline == []
    for file in page.files:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
        assert place.startswith(docs.SHARED), file
        assert (docs.folder() / place).is_file(), file


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_a_page_reads_as_in_the_repository(name: str) -> None:
    """Only what both understand in one way is written: blocks within lists by four columns, and a line between items of blocks."""
    page = docs.rendered(name, "en") or ""
    article = page[page.index("<article") : page.index("</article>")]
    text = (SOURCE / f"{name}.md").read_text()
    ours = Seen(str(mistune.create_markdown(plugins=["table"])(text))).tags
    theirs = Seen(article).tags
    assert {t: theirs.count(t) for t in OF_TEXT} == {t: ours.count(t) for t in OF_TEXT}


def test_each_page_is_in_one_place_of_the_navigation() -> None:
    parts = tomllib.loads((build.HERE / "site.toml").read_text())["project"]["nav"]
    named = [page for part in parts for pages in part.values() for page in pages]
    assert sorted(named) == sorted(str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.md"))


def test_the_frame_is_in_the_readers_language_and_the_text_says_that_it_is_english() -> None:
    english, chinese = (docs.rendered("quickstart", language) or "" for language in ("en", "zh-CN"))
    assert "Data scientist" in english
    assert "数据科学家" in chinese
    assert "Data scientist" not in chinese
    assert re.search('<html lang="zh', chinese)
    assert '<article lang="en"' in chinese
    assert docs.rendered("quickstart", "fr") == english


def test_reasons_and_settings_have_an_anchor_and_an_entry_of_the_search() -> None:
    items = json.loads((docs.folder() / "search.json").read_text())["items"]
    places = {item["location"] for item in items}
    for name, words in (
        ("reference/reasons", list(Reason)),
        ("reference/settings", [row.variable for row in table()]),
    ):
        page = seen(name)
        assert page is not None
        for word in words:
            anchor = terms.anchor_of(str(word))
            assert anchor in page.ids
            assert f"{name}.html#{anchor}" in places


@pytest.mark.parametrize(
    "name", ["../docs", "nothing", "index.md", "/etc/passwd", "how-to", "images/job-in-cell", "\0"]
)
def test_a_name_without_a_page_is_not_rendered(name: str) -> None:
    assert docs.page(name, "en") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```json runtime\n{}\n```", "```json\n{}\n```"),
        ("| `N\\|MIN:MAX` | a \\| b |", "| `N|MIN:MAX` | a \\| b |"),
        ("a `b\\|c` in a line", "a `b\\|c` in a line"),
    ],
)
def test_what_only_the_repository_understands_is_rewritten(before: str, after: str) -> None:
    assert source.for_generator(before) == after


def test_rows_of_one_term_have_the_anchors_of_their_sections() -> None:
    row = "<tr>\n<td><code>--name TEXT</code></td>\n<td>a &lt;name&gt;</td>\n</tr>"
    page = f'<h2 id="submit">submit</h2><table>{row}</table><h2 id="sweep">sweep</h2><table>{row}</table>'
    made, entries = terms.with_terms("reference/submit", page)
    assert re.findall('<tr id="([^"]*)"', made) == ["submit-name", "sweep-name"]
    assert [e["location"] for e in entries] == [
        "reference/submit.html#submit-name",
        "reference/submit.html#sweep-name",
    ]
    assert entries[0]["title"] == "<code>--name</code>"
    assert entries[0]["text"] == "a &lt;name&gt;"


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zensical")
    pages = tmp_path / "docs"
    for path in SOURCE.rglob("*.md"):
        there = pages / path.relative_to(SOURCE)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(f"# {path.stem}\n")
    monkeypatch.setattr(build, "DOCS", pages)
    build.site(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
    (pages / "quickstart.md").write_text("# Quickstart\n\n[there](glossary.md#nothing)\n")
    with pytest.raises(build.BuildError, match="nothing"):
        build.site(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
