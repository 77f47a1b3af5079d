"""Markdown of the documentation as HTML."""

from __future__ import annotations

import html
import re

import mistune


def html_of(text: str, first: str) -> str:
    """Return the HTML of a page; links to the page `first` lead to its folder."""
    return str(mistune.create_markdown(renderer=Renderer(first), plugins=["table"])(text))


class Renderer(mistune.HTMLRenderer):
    """HTML of one page, with an anchor at each heading, and links to pages instead of files."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self._first = first
        self._tables = 0

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Give the heading the anchor that repositories' viewers give it."""
        del attrs
        return f'<h{level} id="{anchor(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Lead to the page of a file of ours."""
        name, mark, place = url.partition("#")
        ours = "//" not in name and name.endswith(".md")
        if ours:
            name = name.removesuffix(".md").removesuffix(self._first) or "."
        return super().link(text, f"{name}{mark}{place}" if ours else url, title)

    def table(self, text: str) -> str:
        """Let a wide table scroll by itself, also by keyboard."""
        self._tables += 1
        return f'<div class="mlp-doc-table" tabindex="0" role="region" aria-label="Table {self._tables}"><table>{text}</table></div>\n'

    def block_code(self, code: str, info: str | None = None) -> str:
        """Let long lines scroll, also by keyboard."""
        return super().block_code(code, info).replace("<pre>", '<pre tabindex="0">', 1)


def anchor(text: str) -> str:
    """Return the anchor of a heading: lower case, words joined by hyphens."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text)).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
