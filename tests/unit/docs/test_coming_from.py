"""Pages for people who come from another system name commands, options and Python that are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import mlp
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND, VERBS, options_of

PAGES = [
    Path(__file__).parents[3] / "docs" / "how-to" / f"{name}.md"
    for name in ("slurm", "from-kubeflow", "from-wandb", "from-determined", "from-sagemaker", "from-clearml")
]
CODE = re.compile(r"`([^`]+)`")


def ours(page: Path) -> Iterator[str]:
    """Yield the code of the tables' columns that are about the hub, and that of the text."""
    for line in page.read_text().splitlines():
        text = line.split(" | ", 1)[1] if line.startswith("| ") else line
        yield from CODE.findall(text.replace("\\|", "|"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_command_is_one_that_the_command_takes(page: Path) -> None:
    verbs = {verb.name for verb in VERBS}
    commands = [c for c in ours(page) if c.startswith("mlp ") and c.split()[1] in verbs]
    assert len(commands) > 10
    for command in commands:
        parse(shlex.split(command)[1:], COMMAND)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda p: p.stem)
def test_every_option_and_name_is_there(page: Path) -> None:
    flags = {flag for verb in VERBS for option in options_of(verb, COMMAND) for flag in option.flags}
    for code in ours(page):
        if code.startswith("--"):
            assert code.split()[0] in flags, code
        if code.startswith("mlp."):
            name = re.split(r"\W", code)[1]
            assert name in mlp.__all__ or find_spec(f"mlp.{name}"), code


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_short_and_has_its_table(page: Path) -> None:
    text = page.read_text()
    assert re.search(r"^\| [^|]+ \| here \|", text, re.MULTILINE)
    assert page == PAGES[0] or len(text.splitlines()) < 60
