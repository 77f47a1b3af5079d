"""The documentation as pages of the hub: the project's own Markdown, for users who are logged in."""

from __future__ import annotations

import asyncio
import html
import re
from functools import lru_cache
from pathlib import Path

import mistune
from tornado.web import HTTPError

from mlp_hub.api.edge.call import BASE
from mlp_hub.web.pages import HERE, Page, asset_version, template
from mlp_language.message import msg
from mlp_language.render import Reader, render

FIRST = "index"
AROUND = {
    "skip": msg("Skip to the content"),
    "documentation": msg("Documentation"),
    "quickstart": msg("Quickstart"),
    "glossary": msg("Glossary"),
    "jobs": msg("Jobs"),
}
"""Texts around the content of a page."""


def folder() -> Path:
    """Return where the documentation lies: in the installed package, else in the source tree."""
    installed = HERE / "docs"
    return installed if installed.is_dir() else HERE.parents[2] / "docs"


class Docs(Page):
    """One page of the documentation."""

    async def get(self, name: str) -> None:
        """Send the page of that name, or the browser to log in."""
        if await self.principal() is None:
            self.to_login()
            return
        page = await asyncio.to_thread(rendered, name or FIRST, self.language, self.base)
        if page is None:
            raise HTTPError(404)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page)


@lru_cache
def pages() -> dict[str, Path]:
    """Return the files by name, which is the path below the documentation without its suffix."""
    root = folder()
    return {str(path.relative_to(root).with_suffix("")): path for path in sorted(root.rglob("*.md"))}


@lru_cache
def rendered(name: str, language: str, base: str = BASE) -> str | None:
    """Make the whole page of a name, what is around its text in a language; None where there is none."""
    path = pages().get(name)
    if path is None:
        return None
    text = path.read_text()
    markdown = mistune.create_markdown(renderer=Renderer(), plugins=["table"])
    values = {
        "title": html.escape(text.partition("\n")[0].removeprefix("# ").replace("`", "")),
        "language": language,
        **{key: html.escape(render(text, Reader(language))) for key, text in AROUND.items()},
        "base": base,
        "css": asset_version("panel.css"),
        "js": asset_version("document.js"),
        "text": str(markdown(text)),
    }
    return re.sub(r"\{(\w+)\}", lambda hole: values[hole[1]], template("docs.html"))


class Renderer(mistune.HTMLRenderer):
    """HTML of one page, with an anchor at each heading, and links to pages instead of files."""

    tables = 0
    """Number of tables so far: each has its own name."""

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Give the heading the anchor that repositories' viewers give it."""
        del attrs
        return f'<h{level} id="{anchor(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Lead to the page of a file of ours."""
        name, mark, place = url.partition("#")
        ours = "//" not in name and name.endswith(".md")
        if ours:
            name = name.removesuffix(".md").removesuffix(FIRST) or "."
        return super().link(text, f"{name}{mark}{place}" if ours else url, title)

    def table(self, text: str) -> str:
        """Let a wide table scroll by itself, also by keyboard."""
        self.tables += 1
        return f'<div class="mlp-doc-table" tabindex="0" role="region" aria-label="Table {self.tables}"><table>{text}</table></div>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        """Let long lines scroll, also by keyboard."""
        return super().block_code(code, info).replace("<pre>", '<pre tabindex="0">', 1)


def anchor(text: str) -> str:
    """Return the anchor of a heading: lower case, words joined by hyphens."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text)).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
