"""The hub's pages in the reader's language: our templates, and what JupyterHub's own say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from jinja2 import Environment, pass_context
from jinja2.ext import Extension
from jinja2.runtime import Context
from markupsafe import Markup, escape

from mlp_hub.hub_integration.pages.jupyterhub_texts import RAW, TEXTS
from mlp_language.catalogue import COOKIE, catalogue, chosen, language_of
from mlp_language.message import Message
from mlp_language.render import Reader, render
from mlp_spawner.errors import Told

SETTING = "mlp_language"
"""Attribute of a handler: the language that who is logged in chose for good; `language_page` asks the service for it."""


def language(handler: Any) -> str:
    """Return the language of a page's reader: their setting, then this browser's cookie, then its request."""
    setting = language_of(getattr(handler, SETTING, ""))
    return setting or chosen(
        handler.get_cookie(COOKIE, ""), handler.request.headers.get("Accept-Language", "")
    )


def said(handler: Any, message: Message) -> str:
    """Return the text of a message for a page's reader."""
    return render(message, Reader(language(handler)))


def texts(tag: str) -> Callable[..., str]:
    """Return `_` of the templates: the text in a language; its values are escaped unless they are markup."""
    known = catalogue(tag)

    def text(template: str, **args: object) -> str:
        found = known.gettext(template) if template else ""
        return Markup(escape(found)).format(**args) if args else found  # noqa: S704 - all of it is escaped

    return text


@pass_context
def _rendered(context: Context, value: object) -> object:
    """Give a message that a template is to show as its reader's text."""
    message = value.message if isinstance(value, Told) else value
    return render(message, Reader(str(context["language"]))) if isinstance(message, Message) else value


class Translated(Extension):
    """Has JupyterHub's own templates say what they say through the catalogue, and show messages as text."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.finalize = _rendered

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the template with its texts replaced by calls of `_`."""
        if filename is None or "mlp_hub" in filename:
            return source
        kind = PurePath(name or "").name
        for old, new in RAW.get(kind, {}).items():
            source = source.replace(old, new)
        known = TEXTS.get(kind, {})
        if not known:
            return source
        said_for = {_flat(shown): message for shown, message in known.items()}
        # in one pass, the longest first: what is put in is not looked at again
        either = "|".join(pattern_of(shown) for shown in sorted(known, key=len, reverse=True))
        return re.sub(either, lambda found: _call(found[0], said_for[_flat(found[0])]), source)


def pattern_of(text: str) -> str:
    """Return what finds a text in a template, however its lines are broken, and not inside of a word."""
    words = r"\s+".join(map(re.escape, text.split()))
    return words if text.startswith(">") else rf"(?<![\w-]){words}(?![\w-])"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _call(found: str, message: Message) -> str:
    call = f'{{{{ _("{message.template}") }}}}'
    return f">{call}<" if found.startswith(">") else call
