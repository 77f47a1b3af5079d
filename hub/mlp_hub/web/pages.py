"""The pages below /services/mlp/: one HTML shell whose script shows them, its files, and the way to log in.

Pages hold no data: the shell is the same for everybody, what is shown comes from the API with its own checks.
"""

from __future__ import annotations

import hashlib
import html
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from tornado.web import HTTPError, RequestHandler, StaticFileHandler

from mlp_hub.api import answers
from mlp_hub.api.auth import Credential, TooMany, Unauthorized
from mlp_hub.api.call import BASE, Service
from mlp_hub.api.principal import Principal
from mlp_hub.domain.errors import Refused, Unavailable

HERE = Path(__file__).parent
STATIC = HERE / "static"


class Page(RequestHandler):
    """What all pages share: headers, the session, messages."""

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
            return await self.service.auth.identify(self.credential())
        except (Unauthorized, TooMany):
            return None

    def credential(self) -> Credential:
        """Find the session's credential; pages take cookies only. Raises Unauthorized."""
        session = self.service.sessions.get(self.get_cookie(self.service.sessions.cookie, "") or "")
        if session is None:
            raise Unauthorized
        return Credential(session.token, session.id)

    def message(
        self, status: int, title: str, text: str, link: str = f"{BASE}/", label: str = "Try again"
    ) -> None:
        """Answer with a page that says one thing."""
        self.set_status(status)
        values = {
            "title": title,
            "text": text,
            "link": link,
            "label": label,
            "base": BASE,
            "css": asset_version("panel.css"),
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
            self.message(503, "Not available now", f"Sorry: {cause.msg}.")
        elif isinstance(cause, Refused):
            self.message(403, "Refused", cause.msg)
        elif isinstance(cause, HTTPError) and status_code in (404, 405):
            self.message(404, "Nothing here", "There is no such page.", label="All pages")
        else:
            self.message(503, "Something went wrong", "It was logged; trying again may help.")


class Shell(Page):
    """Every page: the same shell, for who is logged in."""

    async def get(self, path: str = "") -> None:
        """Send the shell, or the browser to log in."""
        del path
        if await self.principal() is None:
            self.redirect(f"{BASE}/login?next={quote(self.request.uri or '', safe='')}")
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(shell())


class Home(Page):
    """The base without its slash."""

    def get(self) -> None:
        """Go to the base with its slash."""
        self.redirect(f"{BASE}/")


class Nothing(Page):
    """Every path that is not ours."""

    def prepare(self) -> None:
        """Say so."""
        raise HTTPError(404)


class Blank(Page):
    """Where a hidden frame ends after a silent login; holds nothing."""

    def get(self) -> None:
        """Send an empty page."""
        self.finish("<!doctype html><title>Logged in</title>")


class Assets(StaticFileHandler):
    """Scripts and styles; with a version in the address they are kept by browsers for good."""

    def prepare(self) -> None:
        """Know no file whose name no file can have."""
        if any("\0" in part for part in self.path_args):
            raise HTTPError(404)

    def set_extra_headers(self, path: str) -> None:
        """Set the security headers of files."""
        del path
        for name, value in answers.SECURITY_HEADERS.items():
            self.set_header(name, value)
        if not self.get_argument("v", ""):
            self.set_header("Cache-Control", "no-cache")

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Say it plainly."""
        del kwargs
        self.set_header("Content-Type", "text/plain")
        self.finish(f"{status_code}\n")


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
def shell() -> str:
    """Make the shell once."""
    page = template("shell.html").replace("{base}", BASE)
    return page.replace("{css}", asset_version("panel.css")).replace("{js}", asset_version("panel.js"))
