"""Git does not have the front end's types of the wire: whoever misses them is told the command that makes them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import messages

ROOT = Path(__file__).parents[3]
WIDGETS = ROOT / "widgets"
MADE = Path("build/types/core/service/wire.ts")


def run(top: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    top.mkdir(exist_ok=True)
    (top / "wire.mjs").write_text((WIDGETS / "wire.mjs").read_text())
    return subprocess.run(
        [messages.node(), top / "wire.mjs", *words], input=given, check=False, capture_output=True, text=True
    )


def test_the_sources_do_not_hold_them() -> None:
    assert not [*(WIDGETS / "src").rglob("wire.ts")]


def test_the_check_of_the_front_end_names_the_command_that_makes_them(tmp_path: Path) -> None:
    scripts = json.loads((WIDGETS / "package.json").read_text())["scripts"]
    assert scripts["check"].startswith("node wire.mjs --made && ")
    missing = run(tmp_path, "--made")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "The types of the wire are not made yet: make wire" in missing.stderr
    assert "npm --prefix widgets run wire" in missing.stderr
    (tmp_path / MADE).parent.mkdir(parents=True)
    (tmp_path / MADE).write_text("")
    there = run(tmp_path, "--made")
    assert (there.returncode, there.stderr) == (0, "")


@pytest.mark.parametrize("given", ["", " \n"])
def test_their_maker_says_where_the_document_comes_from(tmp_path: Path, given: str) -> None:
    """As in a pipe whose first program failed."""
    ended = run(tmp_path, given=given)
    assert ended.returncode == 1
    assert "Standard input has no OpenAPI document: make wire" in ended.stderr
    assert not (tmp_path / MADE).exists()


def test_no_bundle_needs_them() -> None:
    """`import type` leaves nothing in a bundle, so a wheel, an image and the tests of the logic are made without them."""
    value = re.compile(
        r'^(?:import|export)(?! type\b)[^;]*?from "[./]*(?:core/)?(?:service/)?wire";', re.MULTILINE
    )
    assert value.search('import {\n  Job,\n} from "../service/wire";')
    sources = [*WIDGETS.glob("src/**/*.ts*"), *WIDGETS.glob("test/**/*.ts*")]
    assert not [path for path in sources if value.search(path.read_text())]
