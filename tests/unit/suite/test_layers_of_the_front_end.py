"""The check of the front end's layers names each wrong import, each circle and each room without a layer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import messages
from export import ROOT


def faults(top: Path, sources: dict[str, str]) -> list[str]:
    """Return the faults that `layers.mjs` prints for these sources, without rooms that are empty here."""
    for name, text in sources.items():
        path = top / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (top / "layers.mjs").write_text((ROOT / "widgets" / "layers.mjs").read_text())
    done = subprocess.run(
        [messages.node(), top / "layers.mjs"], check=False, stderr=subprocess.PIPE, text=True
    )
    said = done.stderr.splitlines()
    assert done.returncode == bool(said)
    return [line for line in said if not line.endswith("has no files; remove it")]


def test_a_file_imports_from_its_room_and_from_lower_layers(tmp_path: Path) -> None:
    sources = {
        "core/jobs/phase.ts": 'import type { Job } from "../service/wire";\nimport { one } from "./one";',
        "core/jobs/one.ts": "",
        "core/service/wire.ts": "",
    }
    assert faults(tmp_path, sources) == []


@pytest.mark.parametrize(
    "text",
    [
        'import { a } from "../jobs/phase";',
        'import type {\n  A,\n} from "../jobs/phase";',
        'import "../jobs/phase";',
    ],
)
def test_an_import_from_a_higher_layer_is_named(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, {"core/service/api.ts": text, "core/jobs/phase.ts": ""}) == [
        "src/core/service/api.ts imports core/jobs/phase.ts; core/service is not above core/jobs"
    ]


def test_rooms_of_one_layer_do_not_import_each_other(tmp_path: Path) -> None:
    sources = {"core/jobs/a.ts": 'export { b } from "../teams/b";', "core/teams/b.ts": ""}
    assert faults(tmp_path, sources) == [
        "src/core/jobs/a.ts imports core/teams/b.ts; core/jobs is not above core/teams"
    ]


def test_the_side_panel_imports_no_page(tmp_path: Path) -> None:
    sources = {"lab/Panel.tsx": 'import { b } from "../panel/shared/b";', "panel/shared/b.ts": ""}
    assert faults(tmp_path, sources) == [
        "src/lab/Panel.tsx imports panel/shared/b.ts, which is in another bundle"
    ]


def test_the_core_imports_no_package(tmp_path: Path) -> None:
    assert faults(tmp_path, {"core/format/a.ts": 'import { h } from "preact";'}) == [
        "src/core/format/a.ts imports preact; core imports no package"
    ]


def test_a_circle_within_a_room_is_named(tmp_path: Path) -> None:
    sources = {
        "core/jobs/a.ts": 'import { b } from "./b";',
        "core/jobs/b.ts": 'import type { A } from "./a";',
    }
    assert faults(tmp_path, sources) == [
        "Imports go in a circle: core/jobs/a.ts > core/jobs/b.ts > core/jobs/a.ts"
    ]


def test_a_room_without_a_layer_and_a_room_with_too_many_files_are_named(tmp_path: Path) -> None:
    sources = {"attic/a.ts": "", **{f"core/jobs/{n}.ts": "" for n in range(21)}}
    assert faults(tmp_path, sources) == [
        "src/attic/a.ts is in a room without a layer; give attic its place in layers.mjs",
        "src/core/jobs has 21 files, more than 20; divide it",
    ]


def alone(sheet: Path) -> set[str]:
    """Return the classes that a style sheet lays out wherever they stand: those whose selector is the class alone."""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    selectors = (one.strip() for many in re.findall(r"([^{}@]+)\{", text) for one in many.split(","))
    return {one for one in selectors if re.fullmatch(r"\.[\w-]+", one)}


def test_pages_lay_out_no_class_of_the_cell_in_another_way() -> None:
    styles = ROOT / "widgets" / "src" / "styles"
    shared = set().union(*(alone(sheet) for sheet in styles.glob("*.css")))
    pages = [sheet for sheet in (styles / "panel").glob("*.css") if sheet.name != "narrow.css"]
    assert len(pages) > 5
    assert {sheet.name: found for sheet in pages if (found := alone(sheet) & shared)} == {}
