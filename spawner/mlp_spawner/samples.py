"""Sample notebooks in the user's language: the text between the cells of code, which are the same for all."""

from __future__ import annotations

import json

from mlp_language.catalogue import DEFAULT, catalogue


def in_language(notebook: bytes, language: str) -> bytes:
    """Return a notebook with its text cells in a language; a cell is one message of the catalogue."""
    if language == DEFAULT:
        return notebook
    known = catalogue(language)
    found = json.loads(notebook)
    for cell in found["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = known.gettext("".join(cell["source"])).splitlines(keepends=True)
    return (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode()
