"""Catalogues of the languages that the hub speaks, by gettext; English needs none, it is the key."""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

LANGUAGES: Mapping[str, str] = {"en": "English", "zh-CN": "简体中文"}
"""Languages by their tag (BCP 47), with the name that each has in itself."""
DEFAULT = "en"
COOKIE = "mlp-language"
"""Cookie of the language that a browser's person chose."""
DOMAIN = "mlp"
LOCALES = files("mlp_language") / "locale"


@cache
def catalogue(language: str) -> gettext.NullTranslations:
    """Return the catalogue of a language; of one that is not spoken here, English."""
    if language == DEFAULT or language not in LANGUAGES:
        return gettext.NullTranslations()
    # by the package's own loader: it may lie in an archive
    place = LOCALES / language.replace("-", "_") / "LC_MESSAGES" / f"{DOMAIN}.mo"
    try:
        with place.open("rb") as file:
            return gettext.GNUTranslations(file)
    except FileNotFoundError:
        return gettext.NullTranslations()


def chosen(cookie: str, accepted: str) -> str:
    """Return the language of a request: that of the cookie, else what suits its header `Accept-Language` best."""
    return language_of(cookie) or best_of(accepted)


def best_of(accepted: str) -> str:
    """Return the language that suits a header `Accept-Language` best ("zh-TW,zh;q=0.9,en;q=0.8"): the default if none does."""
    wanted: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        tag, _, q = part.strip().partition(";q=")
        try:
            wanted.append((-float(q or 1), tag))
        except ValueError:
            continue
    for weight, tag in sorted(wanted, key=lambda w: w[0]):
        if weight < 0 and (found := language_of(tag)):
            return found
    return DEFAULT


def language_of(tag: str) -> str | None:
    """Return the language here that a tag or the name of a locale means: "zh", "zh_CN.UTF-8", "en-GB"; None for others."""
    base = tag.partition(".")[0].replace("_", "-").partition("-")[0].lower()
    return next((known for known in LANGUAGES if known.partition("-")[0] == base), None)


_told = ""


def speak(tag: str) -> None:
    """Have this process speak the language that the service answers its person in; of one not spoken here nothing changes."""
    global _told  # noqa: PLW0603 - one person reads what a process writes
    _told = language_of(tag) or _told


def spoken() -> str:
    """Return the language of this process's texts: that of the service's answers, or first the environment's."""
    return _told or of_environment()


def of_environment(environ: Mapping[str, str] | None = None) -> str:
    """Return the language of a terminal: `MLP_LANGUAGE` before `LC_ALL`, `LC_MESSAGES` and `LANG`."""
    environ = os.environ if environ is None else environ
    for name in ("MLP_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return language_of(value) or DEFAULT
    return DEFAULT
