"""A notebook as the program of a job: the valid ones, and the way that parameters get into it.

The standard library is enough for all of this module.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mlp.errors import UsageError
from mlp.language import say

ENDING = ".ipynb"
MOST_BYTES = 200_000_000
"""Limit of jobs: bytes of a notebook that runs as a job."""
PARAMETERS, INJECTED, SKIPPED = "parameters", "injected-parameters", "skip-execution"
"""Tags of cells, as papermill and nbclient have them."""
_SUBMITS = re.compile(r"^\s*(%{1,2}mlp\s+(?:submit|sweep))\b(?!.*\s--(?:help|dry-run)\b)", re.MULTILINE)
KERNEL_OF_ENVIRONMENT = "mlp-env-"
"""Prefix of the names of environments' kernels; the environment's name follows."""
RUNNER = "from mlp.notebook_run import run_text\nraise SystemExit(run_text({name!r}, {text}))\n"
"""Program of a job whose notebook comes along with it, from a machine that is not the hub's."""


def is_notebook(path: str) -> bool:
    """Tell a notebook by its name."""
    return path.endswith(ENDING)


def read(name: str, data: bytes) -> dict[str, Any]:
    """Return a notebook without its outputs, each cell's text in one piece; raises `UsageError` where it is not a notebook.

    Jupyter writes texts as lists of lines.
    """
    if len(data) > MOST_BYTES:
        raise UsageError(
            say(
                "{path} has {n} MB, and the limit of a job's notebook is {most} MB: clear its outputs and save it",
                path=name,
                n=f"{len(data) / 1e6:,.0f}",
                most=f"{MOST_BYTES / 1e6:,.0f}",
            )
        )
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        if not data.strip():
            raise UsageError(say("{path} is not a notebook: it is empty", path=name)) from None
        raise UsageError(
            say("{path} is not a notebook: it is broken JSON ({why})", path=name, why=str(error))
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("nbformat"), int):
        raise UsageError(say("{path} is not a notebook: it lacks nbformat and cells", path=name))
    if found["nbformat"] < 4:
        raise UsageError(
            say(
                "{path} is a notebook of the old format {n}: open it in JupyterLab and save it, which updates the format",
                path=name,
                n=found["nbformat"],
            )
        )
    cells = found.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise UsageError(say("{path} is not a notebook: it has no list of cells", path=name))
    for cell in cells:
        if isinstance(cell.get("source"), list):
            cell["source"] = source(cell)
        if cell.get("cell_type") == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return found


def source(cell: Mapping[str, Any]) -> str:
    """Return a cell's text."""
    text = cell.get("source", "")
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def tags(cell: Mapping[str, Any]) -> list[Any]:
    """Return a cell's tags."""
    metadata = cell.get("metadata")
    found = metadata.get("tags") if isinstance(metadata, dict) else None
    return found if isinstance(found, list) else []


def runs(cell: Mapping[str, Any]) -> bool:
    """Whether a job runs this cell."""
    return cell.get("cell_type") == "code" and bool(source(cell).strip()) and SKIPPED not in tags(cell)


def running(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that a job runs."""
    return list(filter(runs, notebook["cells"]))


def number(cell: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of a cell, from 1, among those that its author sees; 0 if it is an injected one."""
    return next((n for n, one in enumerate(own, 1) if one is cell), 0)


def check(name: str, notebook: Mapping[str, Any]) -> None:
    """Refuse a notebook that has nothing to run, or that would submit itself for ever."""
    own = running(notebook)
    for n, cell in enumerate(own, 1):
        if found := _SUBMITS.search(source(cell)):
            raise UsageError(
                say(
                    "cell {n} of {path} submits a job itself ({line}), which is not allowed in a notebook that runs as a job: remove it, or give the cell the tag {tag}",
                    n=n,
                    path=name,
                    line=found[1],
                    tag=SKIPPED,
                )
            )
    if not own:
        raise UsageError(say("{path} has no cell with code: nothing to run", path=name))


def language(notebook: Mapping[str, Any]) -> str:
    """Return the language of a notebook's cells."""
    metadata = notebook.get("metadata")
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        of = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(of, dict) and isinstance(of.get(name), str) and of[name]:
            return str(of[name]).lower()
    return "python"


def environment(notebook: Mapping[str, Any]) -> str:
    """Return the environment, in small letters, whose kernel a notebook was saved with; nothing for another kernel."""
    metadata = notebook.get("metadata")
    of = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = of.get("name") if isinstance(of, dict) else None
    if not isinstance(name, str) or not name.startswith(KERNEL_OF_ENVIRONMENT):
        return ""
    return name.removeprefix(KERNEL_OF_ENVIRONMENT)


def inject(notebook: dict[str, Any], params: Mapping[str, Any]) -> list[str]:
    """Put a cell that assigns parameters after the one tagged `parameters`, or first; return the remarks.

    A cell of an earlier run is replaced.
    """
    own = running(notebook)
    cells = notebook["cells"] = [cell for cell in notebook["cells"] if INJECTED not in tags(cell)]
    if not params:
        return []
    if language(notebook) != "python":
        return [
            say(
                "parameters become variables only in notebooks of Python; in this one they are in the variable {name}, as JSON",
                name="MLP_PARAMS",
            )
        ]
    at = next((n for n, cell in enumerate(cells) if PARAMETERS in tags(cell)), None)
    lines = ["# Parameters"]
    for name, value in params.items():
        if name.isidentifier() and not keyword.iskeyword(name):
            lines.append(f"{name} = {value!r}")
        else:
            lines.append(f"# {name} is in mlp.params[{name!r}]")
    injected: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": [INJECTED]},
        "outputs": [],
        "source": "\n".join(lines),
    }
    if (notebook["nbformat"], notebook.get("nbformat_minor", 0)) >= (4, 5):
        injected["id"] = _free_id(cells)
    cells.insert(0 if at is None else at + 1, injected)
    if at is None:
        return _overwritten(cells[1:], own, params)
    known = _assigned(source(cells[at]))
    return [
        say("parameter {name} is not among those of the cell tagged {tag}", name=name, tag=PARAMETERS)
        for name in params
        if known is not None and name not in known
    ]


def _overwritten(
    cells: list[dict[str, Any]], own: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> list[str]:
    """Say which parameters have no effect, because a later cell assigns them and no cell is tagged for them."""
    said: dict[str, str] = {}
    for cell in filter(runs, cells):
        for name in params.keys() & (_assigned(source(cell)) or set()):
            said.setdefault(
                name,
                say(
                    "parameter {name} may have no effect: cell {n} assigns {name}; give that cell the tag {tag}",
                    name=name,
                    n=number(cell, own),
                    tag=PARAMETERS,
                ),
            )
    return [said[name] for name in params if name in said]


def _free_id(cells: list[dict[str, Any]]) -> str:
    taken = {cell.get("id") for cell in cells}
    return next(name for n in range(len(cells) + 1) if (name := f"{INJECTED}-{n}") not in taken)


def _assigned(text: str) -> set[str] | None:
    """Return the names that a cell assigns; None where that cannot be told."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def carried(name: str, notebook: Mapping[str, Any]) -> str:
    """Return the program that runs a notebook which it has in it."""
    text = json.dumps(notebook, separators=(",", ":"), ensure_ascii=False)
    return RUNNER.format(name=name, text=repr(text))
