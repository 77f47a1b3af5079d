"""Builds the documentation as pages with one navigation and one search, by Zensical.

    python tools/docsite/build.py build/site      the site, for any web server (python -m http.server -d build/site)
    python tools/docsite/build.py --hub           the same pages as the hub serves them, in each language's frame

A broken link, or a page that the navigation lacks, fails the build. Nothing is built if the sources are those of the last build.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).resolve().parents[1]))
from docsite.source import for_generator
from docsite.terms import with_terms

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
HUB = ROOT / "hub" / "mlp_hub" / "web" / "documentation"
ENGLISH = "en"
FRAMES = {ENGLISH: "en", "zh_CN": "zh"}
"""Languages of the catalogues, and their names in the generator."""

_HOME = "https://hub.invalid/"
"""Address that stands for the hub's own pages until a page's depth is known."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_INLINE = re.compile(r"<script>(.+?)</script>", re.DOTALL)
_TITLES = re.compile(r'^ *\{ "([^"]+)" = \[|icon = .*, name = "([^"]+)"', re.MULTILINE)


class BuildError(Exception):
    """Failure of a build; the message has the generator's words."""


def titles() -> list[str]:
    """Return the texts of our own in the frame: of the link to the hub, the navigation's parts, and the themes."""
    return ["Back to the hub", *map("".join, _TITLES.findall((HERE / "site.toml").read_text()))]


def site(target: Path) -> None:
    """Build the pages into a directory, in English."""
    _replace(target, lambda made: _build(made, ENGLISH, hub=False))


def for_hub(target: Path = HUB) -> bool:
    """Build the pages that the hub serves, a folder for each language; return False if they were there already."""
    wanted, stamp = _digest(), target.with_suffix(".stamp")
    if target.is_dir() and stamp.exists() and stamp.read_text() == wanted:
        return False

    def make(made: Path) -> None:
        for language in FRAMES:
            folder = made / language.replace("_", "-")
            _build(folder, language, hub=True)
            if language != ENGLISH:
                _keep_pages(folder)

    _replace(target, make)
    stamp.write_text(wanted)
    return True


def _replace(target: Path, make: object) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".site-") as scratch:
        made = Path(scratch, "made")
        make(made)  # type: ignore[operator]
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


def _build(target: Path, language: str, *, hub: bool) -> None:
    with TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        shutil.copytree(DOCS, root / "docs")
        for path in (root / "docs").rglob("*.md"):
            path.write_text(for_generator(path.read_text()))
        shutil.copytree(HERE / "frame", root / "docs" / "frame")
        shutil.copytree(HERE / "theme", root / "theme")
        (root / "zensical.toml").write_text(_config(language, hub=hub))
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "zensical.toml"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(_COLOUR.sub("", f"{done.stdout}{done.stderr}"))
        _complete(root / "docs", root / "site", language)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(root / "site", target)


def _config(language: str, *, hub: bool) -> str:
    text = (HERE / "site.toml").read_text()
    first = text.index('"index.md"')
    if hub:
        text = f'{text[:first]}{{ "Back to the hub" = "{_HOME}" }}, {text[first:]}'
        text = text.replace("[project.extra]\n", f'[project.extra]\nhomepage = "{_HOME}"\n')
    text = text.replace("[project.theme]\n", f'[project.theme]\nlanguage = "{FRAMES[language]}"\n')
    for title, said in _translations(language).items():
        text = text.replace(f'"{title}"', f'"{said}"')
    return text


def _translations(language: str) -> dict[str, str]:
    if language == ENGLISH:
        return {}
    from babel.messages.pofile import read_po  # noqa: PLC0415 - English needs no catalogue

    path = ROOT / "hub" / "mlp_language" / "locale" / language / "LC_MESSAGES" / "mlp.po"
    with path.open("rb") as file:
        catalogue = read_po(file)
    found = {title: catalogue.get(title) for title in titles()}
    return {title: str(message.string) for title, message in found.items() if message and message.string}


def _complete(docs: Path, made: Path, language: str) -> None:
    """Give each page what the hub's policy for pages asks for: scripts in files, and a text that has its language."""
    pages = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.md")}
    if lost := pages - {str(path.relative_to(made).with_suffix("")) for path in made.rglob("*.html")}:
        raise BuildError(f"no page was made of {', '.join(sorted(lost))}")
    index = json.loads((made / "search.json").read_text())
    paths = {item["location"]: item["path"] for item in index["items"]}
    scripts = made / "assets" / "javascripts"
    for path in made.rglob("*.html"):
        up = "../" * (len(path.relative_to(made).parts) - 1) or "./"

        def in_file(found: re.Match[str], up: str = up) -> str:
            name = f"page.{hashlib.sha256(found[1].encode()).hexdigest()[:8]}.js"
            (scripts / name).write_text(found[1])
            return f'<script src="{up}assets/javascripts/{name}"></script>'

        text = _INLINE.sub(in_file, path.read_text())
        text = text.replace("&amp;amp;", "&amp;")  # the generator escapes titles in labels twice
        text = text.replace(_HOME, "../" * len(path.relative_to(made).parts))
        if language != ENGLISH:
            text = text.replace("<article ", f'<article lang="{ENGLISH}" ')
        place = path.relative_to(made)
        text, terms = with_terms(str(place.with_suffix("")), text)
        path.write_text(text)
        for term in terms:
            above = [term.pop("above")]
            index["items"].append({**term, "path": [*paths[str(place)], *filter(None, above)], "tags": []})
    (made / "search.json").write_text(json.dumps(index, ensure_ascii=False))
    for name in ("404.html", "sitemap.xml"):
        (made / name).unlink(missing_ok=True)


def _keep_pages(folder: Path) -> None:
    """Remove the files that are the same in each language."""
    for path in list(_files(folder)):
        if path.suffix != ".html":
            path.unlink()
    for path in sorted((p for p in folder.rglob("*") if p.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def _digest() -> str:
    sha = hashlib.sha256(version("zensical").encode())
    catalogues = sorted((ROOT / "hub" / "mlp_language" / "locale").glob("*/LC_MESSAGES/mlp.po"))
    for path in [*_files(DOCS), *_files(HERE), *catalogues]:
        if "__pycache__" not in path.parts:
            sha.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--hub"]:
            for_hub()
        else:
            site(Path(sys.argv[1]).resolve())
    except BuildError as error:
        sys.exit(str(error))
