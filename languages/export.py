"""Catalogues as programs read them, made of the `.po` files that people write.

python languages/export.py      front-end catalogues, for its build; those of Python are made with the wheel and by `make messages`
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[1]
LOCALES = ROOT / "hub" / "mlp_language" / "locale"
FRONT_BUILD = ROOT / "widgets" / "build"
PYTHON, FRONT = "mlp", "front"
"""Domains: what Python and the hub's pages say, and what the front end says."""


def catalogues(domain: str) -> Iterator[tuple[Path, Catalog]]:
    """Give each language's catalogue of a domain with its file."""
    for path in sorted(LOCALES.glob(f"*/LC_MESSAGES/{domain}.po")):
        with path.open("rb") as file:
            yield path, read_po(file, locale=path.parts[-3], domain=domain)


def for_python() -> list[Path]:
    """Write what gettext reads beside each `.po`, and return the files."""
    made = []
    for path, catalogue in catalogues(PYTHON):
        made.append(path.with_suffix(".mo"))
        with made[-1].open("wb") as file:
            write_mo(file, catalogue)
    return made


def for_front() -> None:
    """Write `front.TAG.json` into the front end's build: the English sentence, of a plural that for one, to its forms."""
    FRONT_BUILD.mkdir(exist_ok=True)
    for path, catalogue in catalogues(FRONT):
        forms = {}
        for message in catalogue:
            one = message.id if isinstance(message.id, str) else message.id[0]
            said = [message.string] if isinstance(message.string, str) else list(message.string)
            if one and all(said):
                forms[one] = said
        tag = path.parts[-3].replace("_", "-")
        text = json.dumps(forms, ensure_ascii=False, indent=0)
        (FRONT_BUILD / f"front.{tag}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for_front()
