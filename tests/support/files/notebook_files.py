"""Notebooks for tests: made of their cells' texts, written by nbformat, which writes them for JupyterLab too."""

from __future__ import annotations

import json
from typing import Any

import nbformat

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==\n"
"""A PNG of one point, as Jupyter has it in its messages."""


def made(
    *cells: str | tuple[str, str], kernel: str = "python3", language: str = "python"
) -> nbformat.NotebookNode:
    """Return a notebook in nbformat's own form; a cell with a tag is a pair."""
    pairs = [(cell, []) if isinstance(cell, str) else (cell[0], [cell[1]]) for cell in cells]
    return nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": kernel, "display_name": kernel, "language": language}},
        cells=[
            nbformat.v4.new_code_cell(text, id=f"cell-{number}", metadata={"tags": tags})
            for number, (text, tags) in enumerate(pairs)
        ],
    )


def everything(*cells: str | tuple[str, str], minor: int = 5) -> nbformat.NotebookNode:
    """Return one that has besides what a notebook may have: outputs of all kinds, pictures in texts, cells of each type."""
    v4 = nbformat.v4
    found = made(*cells)
    first = found.cells[0]
    first.execution_count = 7
    first.outputs = [
        v4.new_output("stream", name="stdout", text="one\ntwo\n"),
        v4.new_output("display_data", data={"text/plain": "a\nb", "image/png": PICTURE}),
        v4.new_output("execute_result", data={"text/html": "<b>\n</b>"}, execution_count=7),
        v4.new_output("error", ename="E", evalue="e", traceback=["a\nb", "c"]),
    ]
    words = v4.new_markdown_cell("# Title\n\n![it](attachment:a.png)", id="words")
    if minor >= 1:
        words.attachments = {"a.png": {"image/png": PICTURE}}
    found.cells = [words, *found.cells, v4.new_raw_cell("raw\ntext", id="raw")]
    found.nbformat_minor = minor
    if minor < 5:
        for cell in found.cells:
            del cell["id"]
    nbformat.validate(found)
    return found


def written(found: nbformat.NotebookNode) -> str:
    """Return the file."""
    return nbformat.writes(found, version=nbformat.NO_CONVERT)


def old(*sources: str) -> str:
    """Return a file of the format before, as IPython 3 wrote it."""
    v3 = nbformat.v3
    sheet = v3.new_worksheet(cells=[v3.new_code_cell(input=source) for source in sources])
    return v3.writes_json(v3.new_notebook(worksheets=[sheet]))


def notebook(*cells: str | tuple[str, str], kernel: str = "python3", language: str = "python") -> str:
    """Return a notebook's file; a cell with a tag is a pair."""
    return written(made(*cells, kernel=kernel, language=language))


def document(
    *cells: str | tuple[str, str], kernel: str = "python3", language: str = "python"
) -> dict[str, Any]:
    """Return it as what the file says."""
    return json.loads(notebook(*cells, kernel=kernel, language=language))
