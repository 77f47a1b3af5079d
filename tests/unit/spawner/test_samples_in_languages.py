"""Sample notebooks come in their user's language, with the same programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from mlp_hub.sandbox import ensure_home
from mlp_spawner import server
from mlp_spawner.homes import place_samples
from mlp_spawner.samples import in_language

SAMPLES = server.samples()


def cells(notebook: bytes, kind: str) -> list[tuple[Any, str]]:
    return [
        (cell["id"], "".join(cell["source"]))
        for cell in json.loads(notebook)["cells"]
        if cell["cell_type"] == kind
    ]


def test_there_are_samples() -> None:
    assert len(SAMPLES) == 5


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample_text_is_chinese_and_the_programs_are_the_same(sample: Path) -> None:
    english = sample.read_bytes()
    chinese = in_language(english, "zh-CN")
    assert cells(chinese, "code") == cells(english, "code")
    both = list(zip(cells(english, "markdown"), cells(chinese, "markdown"), strict=True))
    assert both
    for (name, one), (other, text) in both:
        assert name == other
        assert one != text
        assert any("一" <= c <= "鿿" for c in text), text
        assert one.count("`") == text.count("`")  # commands stay as they are typed
    nbformat.validate(nbformat.reads(chinese.decode(), as_version=4))


@pytest.mark.parametrize("language", ["en", "fr-FR"])
def test_in_other_languages_they_say_what_they_say(language: str) -> None:
    notebook = SAMPLES[0].read_bytes()
    assert json.loads(in_language(notebook, language))["cells"] == json.loads(notebook)["cells"]


def test_a_home_gets_them_in_the_language_that_its_user_speaks_now(tmp_path: Path) -> None:
    home = ensure_home(tmp_path / "homes", "ann", None)
    names = place_samples(home, SAMPLES, tmp_path / "placed.json", None, "zh-CN")
    assert names == [sample.name for sample in SAMPLES]
    for sample in SAMPLES:
        assert (home / sample.name).read_bytes() == in_language(sample.read_bytes(), "zh-CN")
