"""Help shows the forms of a verb's acts, and the same forms decide which words are an act."""

from __future__ import annotations

import pytest

from mlp.errors import UsageError
from mlp.grammar import forms
from mlp.grammar.parsing import _RIGHT, parse
from mlp.grammar.verbs import COMMAND, TAKES, VERBS, languages

WITH_ACTS = sorted(_RIGHT)


@pytest.mark.parametrize(
    ("shown", "act", "fitting", "others"),
    [
        ("[ls]", "ls", [0], [1, 2]),
        ("[ls [NAME]] | rm NAME...", "ls", [0, 1], [2]),
        ("ls | rm NAME... [--all]", "rm", [1, 2, 9], [0]),
        ("ls | get NAME [TO]", "get", [1, 2], [0, 3]),
        ("ls | pull NAME[:PATH] [TO]", "pull", [1, 2], [0, 3]),
        ("ls | pull 名称[:路径] [目标]", "pull", [1, 2], [0, 3]),
        ("ls | set NAME [KEY...]", "set", [1, 2, 9], [0]),
        ("ls | cap TEAM [--user NAME] [--cpu N]", "cap", [1], [0, 2]),
        ("ls | approve TEAM USER...", "approve", [2, 3], [0, 1]),
        ("ls | create NAME -f FILE | create NAME --image IMAGE", "create", [1], [0, 2]),
        ("ls | logs NAME [REPLICA] | logs NAME --previous", "logs", [1, 2], [0, 3]),
    ],
)
def test_a_form_says_how_many_words_an_act_takes(
    shown: str, act: str, fitting: list[int], others: list[int]
) -> None:
    assert [n for n in (*fitting, *others) if forms.fits(shown, [act, *["word"] * n])] == fitting
    assert not forms.fits(shown, ["nothing"])
    assert not forms.fits(shown, [act.upper()])
    assert not forms.fits(shown, [""])


def test_a_word_of_a_few_is_one_of_them() -> None:
    shown = "[ls] | stage NAME new|old | keys NAME [create|revoke KEY] | scale NAME N|MIN:MAX | quiet 22:00-07:00|off"
    assert forms.fits(shown, ["stage", "a", "old"])
    assert not forms.fits(shown, ["stage", "a", "older"])
    assert forms.fits(shown, ["keys", "a", "create", "k"])
    assert not forms.fits(shown, ["keys", "a", "make", "k"])
    assert forms.fits(shown, ["scale", "a", "1:3"])
    assert forms.fits(shown, ["quiet", "01:00-02:00"])


def test_no_words_are_the_first_act() -> None:
    assert forms.fits("[list] | show NAME", [])
    assert not forms.fits("show NAME | list", [])


@pytest.mark.parametrize("takes", WITH_ACTS)
def test_forms_are_the_same_in_every_language(takes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation that has another form would refuse what is right elsewhere."""
    found = []
    for language in languages()[:-1]:
        monkeypatch.setenv("MLP_LANGUAGE", language)
        found.append(forms.forms(TAKES[takes]()))
    assert len(found) > 1
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS if verb.takes in _RIGHT])
@pytest.mark.parametrize(
    "words", [["NOTHING"], ["ls", "a", "b", "c"], ["rm"], ["|"], ["["], ["[ls]"], ["--", "ls"]]
)
def test_unknown_acts_are_refused_with_the_forms(verb: str, words: list[str]) -> None:
    if verb == "announce" and words[0] in {"NOTHING", "|", "[", "[ls]"}:
        assert parse([verb, *words], COMMAND).names == words  # a text that is announced
        return
    with pytest.raises(UsageError, match="Usage: mlp"):
        parse([verb, *words], COMMAND)
