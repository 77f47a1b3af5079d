"""The documentation as pages of the hub: the project's own Markdown, for users who are logged in."""

from __future__ import annotations

import asyncio
import html
import re
from functools import lru_cache
from pathlib import Path

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
    from mlp_hub.web.markdown import html_of  # noqa: PLC0415 - its library is loaded for the first page

    text = path.read_text()
    values = {
        "title": html.escape(text.partition("\n")[0].removeprefix("# ").replace("`", "")),
        "language": language,
        **{key: html.escape(render(text, Reader(language))) for key, text in AROUND.items()},
        "base": base,
        "css": asset_version("panel.css"),
        "js": asset_version("document.js"),
        "text": html_of(text, FIRST),
    }
    return re.sub(r"\{(\w+)\}", lambda hole: values[hole[1]], template("docs.html"))
