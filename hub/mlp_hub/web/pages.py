"""The pages below /services/mlp/: one HTML shell whose script shows them, its files, and the way to log in.

Pages hold no data: the shell is the same for everybody, what is shown comes from the API with its own checks.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import mimetypes
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import quote

from tornado.web import HTTPError, RequestHandler

from mlp_hub.api.auth.authentication import Credential, TooMany, Unauthorized
from mlp_hub.api.auth.principal import Principal
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.call import Service
from mlp_hub.api.edge.connections import address_of
from mlp_hub.api.edge.reader import language_asked
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.logs.concern import current
from mlp_language.message import Message, msg
from mlp_language.render import Reader, render

HERE = Path(__file__).parent
STATIC = HERE / "static"
TRY_AGAIN = msg("Try again")
FOR_GOOD_S = 10 * 365 * 24 * 3600


class Page(RequestHandler):
    """Base of all pages: headers, the session, messages."""

    def initialize(self, service: Service) -> None:
        """Take the service."""
        self.service = service

    def set_default_headers(self) -> None:
        """Set the security headers of every page."""
        for name, value in answers.SECURITY_HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", answers.PAGE_POLICY)
        self.set_header("Cache-Control", "no-store")
        self.clear_header("Server")

    def check_xsrf_cookie(self) -> None:
        """Do nothing: handlers that change something check the session's own token."""

    async def principal(self) -> Principal | None:
        """Say whose session this is; None when there is none."""
        try:
            return await self.service.auth.identify(await self.credential())
        except (Unauthorized, TooMany):
            return None

    async def credential(self) -> Credential:
        """Find the session's credential; pages take cookies only. Raises Unauthorized."""
        session = await self.service.sessions.get(self.get_cookie(self.service.sessions.cookie, "") or "")
        if session is None:
            raise Unauthorized
        return Credential(session.token, session.id)

    @property
    def base(self) -> str:
        """Begin of the addresses of pages in the browser."""
        return self.service.config.pages

    def to_login(self) -> None:
        """Send the browser to log in, and from there back to this page."""
        here = f"{self.service.config.base}{self.request.uri or ''}"
        self.redirect(f"{self.base}/login?next={quote(here, safe='')}")

    @property
    def language(self) -> str:
        """Language of the page's reader."""
        return language_asked(self.request.headers)

    def message(
        self, status: int, title: Message, text: Message, link: str = "", label: Message = TRY_AGAIN
    ) -> None:
        """Answer with a page that says one thing."""
        self.set_status(status)
        if status >= 400:
            self.service.refusals.note(self.request, status, "", address_of(self.request))
        reader = Reader(self.language)
        self.set_header("Content-Language", reader.language)
        values = {
            "language": reader.language,
            "title": render(title, reader),
            "text": render(text, reader),
            "link": link or f"{self.base}/",
            "label": render(label, reader),
            "base": self.base,
            "css": asset_version("panel.css"),
            "request": render(msg("Request {id}", id=current().request_id), reader),
        }
        page = template("message.html")
        for key, value in values.items():
            page = page.replace("{" + key + "}", html.escape(value, quote=True))
        self.finish(page)

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Answer a fault without its details; they are in the log."""
        error = kwargs.get("exc_info")
        cause = error[1] if isinstance(error, tuple) else None
        if isinstance(cause, Unavailable):
            self.message(503, msg("Not available now"), msg("Sorry: {why}.", why=cause.message))
        elif isinstance(cause, Refused):
            self.message(403, msg("Refused"), cause.message)
        elif isinstance(cause, HTTPError) and status_code in (404, 405):
            self.message(404, msg("Nothing here"), msg("This page does not exist."), label=msg("All pages"))
        elif isinstance(cause, HTTPError) and status_code == 400:
            text = msg("This address has bytes that are not UTF-8. Open the page from the panel.")
            self.message(400, msg("This address cannot be read"), text)
        else:
            self.message(503, msg("Something went wrong"), msg("It was logged; trying again may help."))


class Shell(Page):
    """Every page: the same shell, for users who are logged in."""

    async def get(self, path: str = "") -> None:
        """Send the shell, or the browser to log in."""
        del path
        if await self.principal() is None:
            self.to_login()
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(shell(self.base))


class HomePage(Page):
    """The base without its slash."""

    def get(self) -> None:
        """Go to the base with its slash."""
        self.redirect(f"{self.base}/")


class Nothing(Page):
    """Every path that is not ours."""

    def prepare(self) -> None:
        """Say so."""
        raise HTTPError(404)


class Assets(RequestHandler):
    """Scripts, styles and pictures; with a version in the address they are kept by browsers for good."""

    def initialize(self, path: str) -> None:
        """Take the directory that they lie in; it does not change while the service runs."""
        self._folder = path
        self._etag = ""

    async def get(self, name: str) -> None:
        """Send a file; one that is missing now never appears later."""
        found = await asyncio.to_thread(asset, self._folder, name)
        if found is None:
            raise HTTPError(404)
        self._etag = found.etag
        for header, value in answers.SECURITY_HEADERS.items():
            self.set_header(header, value)
        self.clear_header("Server")
        self.set_header("Content-Type", found.media)
        kept = f"max-age={FOR_GOOD_S}" if self.get_argument("v", "") else "no-cache"
        self.set_header("Cache-Control", kept)
        self.finish(found.content)

    head = get

    def compute_etag(self) -> str | None:
        """Return what tells a browser that it has the file already."""
        return self._etag or None

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Say it plainly."""
        del kwargs
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}\n")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media: str
    etag: str


@cache
def assets(folder: str) -> dict[str, Path]:
    """Return the files below a directory by their paths in it."""
    return {str(path.relative_to(folder)): path for path in Path(folder).rglob("*") if path.is_file()}


@lru_cache(256)
def asset(folder: str, name: str) -> Asset | None:
    """Read a file once; None where there is none."""
    path = assets(folder).get(name)
    if path is None:
        return None
    content = path.read_bytes()
    media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    text = media.startswith("text/") or media == "application/javascript"
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return Asset(content, f"{media}; charset=utf-8" if text else media, etag)


@lru_cache
def template(name: str) -> str:
    """Read a template once."""
    return (HERE / "templates" / name).read_text()


@lru_cache
def asset_version(name: str) -> str:
    """Make a version of a file's contents, for its address."""
    path = STATIC / name
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "none"


@lru_cache
def shell(base: str) -> str:
    """Make the shell once."""
    page = template("shell.html").replace("{base}", base)
    return page.replace("{css}", asset_version("panel.css")).replace("{js}", asset_version("panel.js"))
