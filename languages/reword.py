"""Reword sentences: `python languages/reword.py FILE`, where FILE holds lines of JSON, {"old": "...", "new": "..."}.

A sentence is the key of its translations. This changes the literal in the sources and in the tests and the key in the catalogues,
so the translation stays. Both forms of a plural are sentences of their own. Golden files are written again by `pytest --golden`.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from export import FRONT, PYTHON, ROOT, catalogues
from messages import SAID, SAMPLES, holes

PYTHON_SOURCES = ("hub", "extensions", "spawner", "tests")
OTHER_SOURCES = ("widgets/src/**/*.ts*", "widgets/tests/**/*.ts*", "hub/**/templates/**/*.html")


def pairs(path: Path) -> dict[str, str]:
    """Read the sentences to change. Raises ValueError for a pair that would lose or add a {hole}."""
    found = {}
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        pair = json.loads(line)
        old, new = pair["old"], pair["new"]
        if holes(old) != holes(new):
            raise ValueError(f"{old!r} and {new!r} have different holes")
        if old != new:
            found[old] = new
    return found


def reword_python(source: str, new: Mapping[str, str], used: set[str]) -> str:
    """Return a module with its literals changed; those that were found are added to `used`."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    module = ast.parse(data)
    said = {arg for call in ast.walk(module) if _is_said(call) for arg in call.args}
    # from the end to the begin, so that earlier positions stay right
    for node in sorted(_literals(module), key=lambda node: (node.lineno, node.col_offset), reverse=True):
        text = node.value
        # one word alone is also a key or a value of programs: only a call of messages says that it is a sentence
        if not isinstance(text, str) or (" " not in text and node not in said):
            continue
        if text in new and node.end_lineno and node.end_col_offset:
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            used.add(text)
            data = data[:begin] + json.dumps(new[text], ensure_ascii=False).encode() + data[end:]
    # sentences within the braces of an f-string have no position of their own before Python 3.12
    changed = reword_text(data.decode(), {old: text for old, text in new.items() if " " in old}, used)
    ast.parse(changed)
    return changed


def _is_said(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SAID


def _literals(module: ast.AST) -> Iterator[ast.Constant]:
    """Give the string literals of a module, without the pieces of f-strings, which have no place of their own."""
    for child in ast.iter_child_nodes(module):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child
        elif not isinstance(child, ast.JoinedStr):
            yield from _literals(child)


def reword_text(source: str, new: Mapping[str, str], used: set[str]) -> str:
    """Return a source of the front end or a template with its literals changed."""
    for old, instead in new.items():
        for quote in ('"', "'", "`"):
            literal = _literal(old, quote)
            if literal in source:
                source = source.replace(literal, _literal(instead, quote))
                used.add(old)
    return source


def reword_notebook(path: Path, new: Mapping[str, str], used: set[str]) -> str:
    """Return a sample notebook with its text cells changed."""
    source = path.read_text(encoding="utf-8")
    notebook = json.loads(source)
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if text in new:
            used.add(text)
            cell["source"] = new[text].splitlines(keepends=True)
    indent = len(source.splitlines()[1]) - len(source.splitlines()[1].lstrip())
    return json.dumps(notebook, indent=indent, ensure_ascii=False) + "\n"


def _literal(text: str, quote: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace(quote, "\\" + quote)
    return f"{quote}{escaped}{quote}"


def reword_catalogue(catalogue: Catalog, new: Mapping[str, str]) -> None:
    """Change the keys of a catalogue. Where the new key is there already, its own translation stays."""
    for message in [each for each in catalogue if each.id]:
        key = message.id if isinstance(message.id, str) else tuple(message.id)
        changed = new.get(key, key) if isinstance(key, str) else tuple(new.get(form, form) for form in key)
        if changed != key:
            catalogue.delete(message.id)
            if changed not in catalogue:
                catalogue.add(changed, message.string, user_comments=message.user_comments)


def main(arguments: list[str]) -> int:
    """Change the sentences that a file names, and print those that were not found."""
    match arguments:
        case [path]:
            new = pairs(Path(path))
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    used: set[str] = set()
    for folder in PYTHON_SOURCES:
        for source in sorted((ROOT / folder).rglob("*.py")):
            _rewrite(source, reword_python(source.read_text(encoding="utf-8"), new, used))
    for pattern in OTHER_SOURCES:
        for source in sorted(ROOT.glob(pattern)):
            if "node_modules" not in source.parts:
                _rewrite(source, reword_text(source.read_text(encoding="utf-8"), new, used))
    for notebook in sorted((ROOT / SAMPLES).glob("*.ipynb")):
        _rewrite(notebook, reword_notebook(notebook, new, used))
    for domain in (PYTHON, FRONT):
        for catalogue_path, catalogue in catalogues(domain):
            reword_catalogue(catalogue, new)
            with catalogue_path.open("wb") as file:
                write_po(file, catalogue, width=110, sort_output=True, no_location=True)
    missing = sorted(new.keys() - used)
    sys.stderr.writelines(f"not found: {old}\n" for old in missing)
    return int(bool(missing))


def _rewrite(path: Path, text: str) -> None:
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
