"""Forms of a verb's acts, as help shows them: which act some words are, and whether their number is right.

    [ls [NAME]] | show NAME | stage NAME new|old | rm NAME... [--all]

A form is an act and its words: one in brackets may be left out, `...` repeats the one before. Of lower-case alternatives
(`new|old`) a word is one. Options end a form: they are the verb's own matter. The form in brackets is that of no words at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_WORD = re.compile(r"\[|\]|[^\s\[\]]+")
_PART = re.compile(r"\[:[^\s\[\]]+\]")
"""Part of a word that may be left out, as in NAME[:PATH]."""
_CHOICES = re.compile(r"[a-z]+(\|[a-z]+)+")


class ActForm(NamedTuple):
    """An act with the fewest and the most words after it, and those of them that are one of a few."""

    act: str
    least: int
    most: float
    choices: dict[int, frozenset[str]]

    def fits(self, words: Sequence[str]) -> bool:
        """Whether these words after the act can be meant."""
        return self.least <= len(words) <= self.most and all(
            words[place] in choices for place, choices in self.choices.items() if place < len(words)
        )


def forms(shown: str) -> list[ActForm]:
    """Return the forms of a line of help. That of a verb which takes any text has no act."""
    return [_form(one) for one in shown.split(" | ")]


def acts(shown: str) -> tuple[str, ...]:
    """Return the acts of a line of help, in their order."""
    return tuple(dict.fromkeys(form.act for form in forms(shown) if form.act))


def fits(shown: str, names: Sequence[str]) -> bool:
    """Whether words are an act with the words that it takes; no words are the first act."""
    known = forms(shown)
    act, words = (names[0], names[1:]) if names else (known[0].act, ())
    of_act = (
        [form for form in known if form.act == act] if act in acts(shown) else [f for f in known if not f.act]
    )
    return any(form.fits(words) for form in of_act)


def _form(shown: str) -> ActForm:
    if shown.startswith("["):
        shown = shown[1:-1]
    act, *words = _WORD.findall(_PART.sub("", shown))
    if not re.fullmatch("[a-z]+", act):
        return ActForm("", 0, float("inf"), {})
    least, most, optional, choices = 0, 0.0, False, {}
    for word in words:
        if word.startswith("-"):
            break
        if word in "[]":
            optional = word == "["
            continue
        if _CHOICES.fullmatch(word):
            choices[int(most)] = frozenset(word.split("|"))
        least += not optional
        most = float("inf") if word.endswith("...") else most + 1
    return ActForm(act, least, most, choices)
