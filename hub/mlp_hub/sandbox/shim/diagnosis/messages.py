"""Sentences of the shim as data: as `mlp_language.message` writes them, which a shim has no room for."""

from __future__ import annotations

from typing import Any

Said = dict[str, Any]


def msg(template: str, /, **args: str | float | Said) -> Said:
    """Return a sentence; the template is a literal, as the extractor of the catalogues' keys reads the source."""
    return {"id": template, "args": args}


def english(said: Said) -> str:
    """Return the English text of a sentence that was made here."""
    args = {
        name: english(value) if isinstance(value, dict) else value for name, value in said["args"].items()
    }
    return str(said["id"].format(**args))
