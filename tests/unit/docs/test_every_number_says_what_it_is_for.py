"""A number at the top of a module is a limit that people meet, or its docstring says which other kind it is."""

from __future__ import annotations

from mlp_hub.service.support import limits
from reference.numbers import MARKS, numbers

CONTRACT = "service.support.limits"


def test_every_number_says_what_it_is_for() -> None:
    unmarked = [f"{n.module}.{n.name}" for n in numbers() if n.module != CONTRACT and not n.mark]
    assert not unmarked, f'begin their docstring with one of {MARKS} and a colon, as in "Tuning: ..."'


def test_the_numbers_that_people_meet_are_among_those_looked_at() -> None:
    found = {n.name for n in numbers() if n.module == CONTRACT}
    assert found == {name for name in vars(limits) if name.isupper()}
