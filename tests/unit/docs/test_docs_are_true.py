"""The documentation names all that there is, and nothing that is not there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp.grammar.job_options import SUBMIT
from mlp.grammar.verbs import COMMAND, MAGIC, VERBS, options_of
from mlp_hub.api.auth.scopes import SCOPES
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.runquery import parse
from mlp_hub.settings import table
from reference.pages import PAGES
from terms import FILES

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
TEXTS = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    assert page(name) == PAGES[name](), f"docs/reference/{name}.md is out of date: run `make docs`"


def test_every_reference_page_is_generated() -> None:
    assert {p.stem for p in REFERENCE.glob("*.md")} == set(PAGES)


def test_every_reason_has_a_distinct_meaning() -> None:
    assert (
        len({reason.meaning for reason in Reason}) == len({reason.words for reason in Reason}) == len(Reason)
    )
    assert all(f"| `{reason}` | {reason.meaning} | {reason.words} |" in page("reasons") for reason in Reason)


@pytest.mark.parametrize("path", FILES)
def test_names_for_other_layers_and_languages_are_what_the_code_says(path: str) -> None:
    assert (ROOT / path).read_text() == FILES[path](), f"{path} is out of date: run `make docs`"


def test_every_scope_setting_and_route_is_documented() -> None:
    assert all(f"| `{scope}` | {text} |" in page("scopes") for scope, text in SCOPES.items())
    assert all(f"| `{row.variable}` |" in page("settings") for row in table())
    for route in all_routes():
        assert f"\n### {route.title}\n" in page("rest"), f"{route.title}: run `make docs`"


def test_every_verb_and_option_is_documented() -> None:
    text = page("submit")
    for verb in VERBS:
        assert f"\n## {verb.name}\n" in text, f"{verb.name}: run `make docs`"
        section = text.split(f"\n## {verb.name}\n")[1].split("\n## ")[0]
        for surface in verb.surfaces:
            assert f"    {surface} {verb.name}" in section
        for option in {o for s in (MAGIC, COMMAND) for o in options_of(verb, s)}:
            assert all(f"`{flag}" in section for flag in option.flags), f"{verb.name} {option.flag}"
    assert all(f"`{option.flag}" in text for option in SUBMIT)


def searched() -> Iterator[tuple[str, str]]:
    """Yield the searches for runs that texts name: as a command, after "search for", in an address, and in the table of terms."""
    for path in TEXTS:
        text = path.read_text()
        found = re.findall(r"search for `([^`]+)`", text)
        found += re.findall(r"[?&]search=([^`&]+)`", text)
        found += [
            " ".join(shlex.split(line, comments=True))
            for line in re.findall(r"^    mlp runs ([^\n]*)", text, re.MULTILINE)
            if re.match(r"""["']|\w+[<>=]""", line)
        ]
        if path == DOCS / "how-to" / "runs.md":
            table = text.split("| term | finds runs |")[1].split("\n\n")[0]
            found += [
                term for row in table.splitlines()[2:] for term in re.findall(r"`([^`]+)`", row.split("|")[1])
            ]
        yield from ((path.name, re.sub(r" --.*", "", one)) for one in found)


def test_searches_that_texts_name_are_accepted_and_compare_what_they_name() -> None:
    searches = list(searched())
    assert ("alerts.md", "state=error") in searches
    assert ("runs.md", "lr<0.1 best.accuracy>=0.9") in searches
    for page_, line in searches:
        terms = parse(line)  # raises where it is refused
        assert terms, f"{page_}: {line}"
        assert "phase" not in {one.name for one in terms}, (
            f"{page_}: {line} is about a parameter of that name"
        )


def anchors(path: Path) -> list[str]:
    """Return the anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]


def links() -> Iterator[tuple[Path, str]]:
    for path in TEXTS:
        prose = re.sub(r"`[^`\n]*`", "``", path.read_text())  # a pattern in code may look like a link
        for target in LINK.findall(prose):
            if "://" not in target and not target.startswith("mailto:"):
                yield path, target


def test_every_relative_link_and_image_leads_somewhere() -> None:
    broken = []
    for path, target in links():
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchors(there).count(anchor) != 1):
            broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken


def test_every_column_of_a_table_has_a_title() -> None:
    heads = re.compile(r"^(\|.*\|)\n\|[-| :]+\|$", re.MULTILINE)
    untitled = {
        str(page.relative_to(ROOT))
        for page in DOCS.rglob("*.md")
        for head in heads.findall(page.read_text())
        if not all(cell.strip() for cell in head.strip("|").split("|"))
    }
    assert not untitled, "readers who hear a page need a word in each cell of a table's head"


def test_every_page_is_reached_from_the_index_and_the_readme() -> None:
    linked = {(path.parent / target.partition("#")[0]).resolve() for path, target in links()}
    assert [p for p in DOCS.rglob("*.md") if p not in linked and p.name != "index.md"] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 200


def test_make_commands_in_the_readme_and_how_tos_are_existing_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in TEXTS:
        called = set(re.findall(r"(?:^ {4}|`|^)make ([a-z]+(?:-[a-z]+)*)", path.read_text(), re.MULTILINE))
        assert called <= targets, f"{path}: there is no make {called - targets}"


def test_folders_in_the_readmes_map_are_there() -> None:
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \| ", (ROOT / "README.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z_/]+)`", row) if "/" in name]
    assert len(named) >= 6
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def test_modules_that_the_pages_for_maintainers_name_are_there() -> None:
    hub = ROOT / "hub/mlp_hub"
    for path in (
        ROOT / "CONTRIBUTING.md",
        DOCS / "explanation/architecture.md",
        DOCS / "explanation/scheduling.md",
    ):
        named = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|ts|tsx|md)|[\w/-]+/)`", path.read_text())
        assert named, path
        assert [n for n in named if not any((at / n).exists() for at in (ROOT, hub, hub / "store"))] == []


def test_file_names_without_a_folder_in_the_pages_for_maintainers_are_there() -> None:
    names = {path.name for path in tracked()}
    for path in (ROOT / "CONTRIBUTING.md", DOCS / "explanation/architecture.md"):
        named = re.findall(r"`([\w-]+\.(?:py|ts|tsx|mjs|toml))`", path.read_text())
        assert named, path
        assert [name for name in named if name not in names] == []


def test_variables_in_the_documentation_exist() -> None:
    known = {row.variable for row in table()}
    sources = "".join(
        p.read_text()
        for part in ("extensions/mlp", "hub/mlp_hub", "spawner/mlp_spawner")
        for p in (ROOT / part).rglob("*.py")
    )
    for path in TEXTS:
        for name in re.findall(r"\bMLP_[A-Z]+(?:_[A-Z]+)*\b", path.read_text()):
            assert name in known or re.search(rf"\b{name}\b", sources), f"{path.name}: {name}"


def tracked() -> list[Path]:
    """Return the files of the project; without git there is nothing to compare with."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_this_machine_or_where_packages_came_from() -> None:
    # written in pieces, or this file would name them itself
    words = (
        "/" + r"work/",
        "registry" + r"\.npmjs",
        "files" + r"\.pythonhosted",
        r"//[^/\s\"]*" + "artifact" + r"[^/\s]*/",
        "-" + "mirror" + r"\.",
    )
    wrong = re.compile("|".join(words))
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {m[0]}" for m in [wrong.search(text)] if m]
    assert found == []
