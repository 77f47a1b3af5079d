"""Sentences that are changed keep their translation, in sources of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

import reword


def test_python_literals_change_wherever_they_are() -> None:
    source = 'msg(\n    "is no "\n    "number: {n}",\n    n=f"{1}is no number: {n}",\n)\né = "é", "is no number: {n}"\n'
    used: set[str] = set()
    new = reword.reword_python(source, {"is no number: {n}": 'is not a "number": {n}'}, used)
    assert new == (
        'msg(\n    "is not a \\"number\\": {n}",\n    n=f"{1}is no number: {n}",\n)\né = "é", "is not a \\"number\\": {n}"\n'
    )
    assert used == {"is no number: {n}"}


def test_a_word_alone_changes_only_where_it_is_a_message() -> None:
    new = reword.reword_python('{"what": msg("what")}\n', {"what": "which"}, set())
    assert new == '{"what": msg("which")}\n'


def test_sentences_within_an_f_string_change() -> None:
    used: set[str] = set()
    new = reword.reword_python("f\"{say('goes on', n=1)}\"\n", {"goes on": "continues"}, used)
    assert new == "f\"{say('continues', n=1)}\"\n"
    assert used == {"goes on"}


def test_text_cells_of_a_notebook_change_and_its_form_stays(tmp_path: Path) -> None:
    path, used = tmp_path / "a.ipynb", set[str]()
    path.write_text(
        '{\n "cells": [\n  {\n   "source": [\n    "# é\\n",\n    "it goes on"\n   ]\n  }\n ]\n}\n'
    )
    new = reword.reword_notebook(path, {"# é\nit goes on": "# é\nit continues"}, used)
    assert new == path.read_text().replace("goes on", "continues")
    assert len(used) == 1


def test_literals_of_the_front_end_change_in_each_kind_of_quotes() -> None:
    used: set[str] = set()
    new = reword.reword_text(
        "t(\"it's no\"); t('it\\'s no'); \"it's no more\"", {"it's no": "it's not"}, used
    )
    assert new == "t(\"it's not\"); t('it\\'s not'); \"it's no more\""
    assert used == {"it's no"}


def test_a_translation_stays_with_its_sentence_and_an_existing_one_wins() -> None:
    catalogue = Catalog(locale="zh_CN")
    catalogue.add("old", "旧")
    catalogue.add(("{n} old", "{n} olds"), ("{n} 旧",))
    catalogue.add("gone", "去")
    catalogue.add("there", "有")
    reword.reword_catalogue(catalogue, {"old": "new", "{n} olds": "{n} of them", "gone": "there"})
    strings = {message.id: message.string for message in catalogue if message.id}
    assert strings == {"new": "旧", ("{n} old", "{n} of them"): ("{n} 旧",), "there": "有"}


def test_a_pair_with_other_holes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_text('{"old": "{a} is", "new": "{b} is"}\n')
    with pytest.raises(ValueError, match="different holes"):
        reword.pairs(path)
