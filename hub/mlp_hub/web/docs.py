"""The documentation as pages of the hub, for users who are logged in: `tools/docsite` builds them with the wheel."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path

from tornado.web import HTTPError

from mlp_hub.web.pages import HERE, Page, asset
from mlp_language.render import ENGLISH

FIRST = "index"
SUFFIX = ".html"
SHARED = ("assets", "frame", "images")
"""Folders of files that are the same in all languages; they have no text, and strangers get them too."""


def folder(language: str = ENGLISH.language) -> Path:
    """Return the folder of the pages whose frame is in a language."""
    return HERE / "documentation" / language


class Docs(Page):
    """One page of the documentation, or the index of its search."""

    async def get(self, name: str) -> None:
        """Send the page of that name, or the browser to log in."""
        if await self.principal() is None:
            self.to_login()
            return
        found = await asyncio.to_thread(page, name or FIRST, self.language)
        if found is None:
            raise HTTPError(404)
        content, self._etag, media = found
        self.set_header("Content-Type", media)
        self.set_header("Cache-Control", "private, no-cache")
        self.set_header("Vary", "Cookie, Accept-Language")
        self.finish(content)

    def compute_etag(self) -> str | None:
        """Return what tells a browser that it has the page already."""
        return getattr(self, "_etag", None)


@lru_cache
def pages() -> dict[str, Path]:
    """Return the pages in English by name, which is the path below the documentation without its suffix."""
    root = folder()
    return {str(path.relative_to(root).with_suffix("")): path for path in sorted(root.rglob(f"*{SUFFIX}"))}


def page(name: str, language: str) -> tuple[bytes, str, str] | None:
    """Return a page, its tag and its type, by its name with or without a suffix; None where there is none."""
    for place in (folder(language), folder()):
        for path in (name, f"{name}{SUFFIX}"):
            found = asset(str(place), path)
            if found is not None:
                return found.content, found.etag, found.media
    return None


def rendered(name: str, language: str) -> str | None:
    """Return the text of a page; None where there is none."""
    found = page(f"{name}{SUFFIX}", language)
    return None if found is None else found[0].decode()
