"""Counts marks of translated English, and holds their share to a ceiling that only falls.

    python languages/english.py             print how many texts have a mark, by place and by mark
    python languages/english.py check       fail where a share is above its ceiling in english.toml, or far below it
    python languages/english.py list PLACE  print the texts of a place that have a mark

A mark is not always a mistake: it is where an engineer who reads English every day may have to read twice.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[1]
CEILINGS = ROOT / "languages" / "english.toml"
PYTHON = ("hub", "extensions", "spawner", "tools")
CATALOGUES = ROOT / "hub/mlp_language/locale/zh_CN/LC_MESSAGES"
FALLEN = 0.5
"""Percentage points below its ceiling from which a ceiling has to be lowered."""

MARKS = {
    "is no": r"\b(?:is|are|was|were|be|been) no (?!longer\b|more\b)\w",
    "clause as subject": r"(?:^|[.:;] )(?:[Ww]hat|[Ww]ho|[Ww]hoever|[Ww]hose) (?![^.:;]*\?)",
    "clause as object": r"\b(?:of|to|for|by|from|with|in|on|at|than) (?:what|who|whoever)\b(?! to\b)",
    "so many": r"\bso (?:many|long|much|often|few)\b(?! (?:that|as)\b)",
    "besides": r"\bbesides\b",
    "anew": r"\banew\b",
    "told of": r"\b(?:told|tells?|says?|said) of\b",
    "stands": r"\bstands?\b(?! (?:by|for|still|out|up)\b)",
    "in the place of": r"\bin (?:the|its|their) place of\b",
    "goes on": r"\bgo(?:es)? on\b",
    "of its own": r"\bof (?:its|their|his|her|one's) own\b",
    "under way": r"\bunder way\b",
    "is to be": r"\b(?:is|are|was|were) to (?:be|have|do)\b",
}
"""Marks by name, each a pattern. Where one of them is right nearly always it does not belong here."""
PATTERNS = {name: re.compile(pattern) for name, pattern in MARKS.items()}


def docstrings() -> Iterator[str]:
    """Return the docstrings of all modules, classes and functions, and those behind constants."""
    for folder in PYTHON:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                body = getattr(node, "body", ())
                for child in body if isinstance(body, list) else ():
                    value = child.value if isinstance(child, ast.Expr) else None
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield value.value


def messages() -> Iterator[str]:
    """Return the sentences of the catalogues, a plural as one more."""
    for path in sorted(CATALOGUES.glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file):
                yield from (message.id,) if isinstance(message.id, str) else message.id


def docs() -> Iterator[str]:
    """Return the lines of what is written by hand for readers; the reference is made from docstrings and messages."""
    written = [path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts]
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(written)):
        yield from filter(str.strip, path.read_text(encoding="utf-8").splitlines())


def tests() -> Iterator[str]:
    """Return the names of tests as sentences."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node.name.removeprefix("test_").replace("_", " ")


PLACES = {"docstrings": docstrings, "messages": messages, "docs": docs, "tests": tests}


def marks_of(text: str) -> list[str]:
    """Return the names of the marks that a text has."""
    return [name for name, pattern in PATTERNS.items() if pattern.search(text)]


def share(texts: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Return how many texts there are, how many of them have a mark, and how many have each."""
    count = marked = 0
    by_mark: Counter[str] = Counter()
    for text in filter(None, texts):
        count += 1
        found = marks_of(text)
        marked += bool(found)
        by_mark.update(found)
    return count, marked, by_mark


def above(measured: dict[str, float], ceilings: dict[str, float]) -> list[str]:
    """Return what is wrong: a share above its ceiling, a ceiling far above its share. All in percent."""
    wrong = []
    for place, found in measured.items():
        ceiling = ceilings[place]
        if found > ceiling:
            wrong.append(
                f"{place}: {found:.2f} % have a mark, {ceiling} % may: "
                f"reword what you wrote (python languages/english.py list {place})"
            )
        elif found < ceiling - FALLEN:
            wrong.append(
                f"{place}: {found:.2f} % have a mark: lower the ceiling of {ceiling} % in {CEILINGS.name}"
            )
    return wrong


def main(arguments: list[str]) -> int:
    """Do what the arguments say; 1 where the check fails."""
    match arguments:
        case ["list", place] if place in PLACES:
            for text in filter(None, PLACES[place]()):
                if found := marks_of(text):
                    sys.stdout.write(f"{', '.join(found)}: {' '.join(text.split())}\n")
            return 0
        case [] | ["check"]:
            measured = {}
            for place, texts in PLACES.items():
                count, marked, by_mark = share(texts())
                measured[place] = 100 * marked / count
                if not arguments:
                    sys.stdout.write(f"{place}: {marked:,} of {count:,} ({measured[place]:.2f} %)\n")
                    sys.stdout.writelines(f"  {number:6,} {name}\n" for name, number in by_mark.most_common())
            wrong = above(measured, tomllib.loads(CEILINGS.read_text())) if arguments else []
            sys.stderr.writelines(f"{line}\n" for line in wrong)
            return int(bool(wrong))
    sys.stderr.write(__doc__ or "")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
