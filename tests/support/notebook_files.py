"""Notebooks for tests: made of their cells' texts."""

from __future__ import annotations

import json
from typing import Any


def notebook(*cells: str | tuple[str, str], kernel: str = "python3", language: str = "python") -> str:
    """Return a notebook's file; a cell with a tag is a pair."""
    return json.dumps(document(*cells, kernel=kernel, language=language))


def document(
    *cells: str | tuple[str, str], kernel: str = "python3", language: str = "python"
) -> dict[str, Any]:
    """Return it as what the file says."""
    pairs = [(cell, []) if isinstance(cell, str) else (cell[0], [cell[1]]) for cell in cells]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": kernel, "display_name": kernel, "language": language}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {"tags": tags},
                "source": text,
                "outputs": [],
                "execution_count": None,
            }
            for number, (text, tags) in enumerate(pairs)
        ],
    }
