from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.api.auth import scopes
from mlp_hub.domain.tenants.account_names import NAME_RULE, THE_HUB, is_valid, normalize, why_not


@pytest.mark.parametrize("name", ["a", "ann", "ann.b", "a-1", "a_b", "z" * 32])
def test_plain_names_are_valid(name):
    assert is_valid(name)
    assert normalize(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Ann",
        "1ann",
        ".ann",
        "ann.",
        "-a",
        "a b",
        "a/b",
        "..",
        "a\0",
        "ann\n",
        "a:b",
        "z" * 33,
        "änn",
        "ａｎｎ",
        "root",
        "mlp",
    ],
)
def test_an_invalid_account_name_is_refused(name):
    assert not is_valid(name)


@pytest.mark.parametrize(
    "name", [THE_HUB, scopes.OPERATOR, scopes.SPAWNER, scopes.DATA, scopes.PROXY, "jupyterhub"]
)
def test_nobody_has_a_name_under_which_the_platform_acts(name):
    assert not is_valid(name)
    assert str(why_not(name)) == "it belongs to the platform; choose another"


def test_a_user_with_an_invalid_name_learns_the_rule():
    assert why_not("Ann B") is NAME_RULE


def test_case_variants_mean_the_same_account():
    assert normalize(" Ann ") == "ann"


@pytest.mark.parametrize("typed", ["\u212aate", "ａｎｎ", "аnn", "ANN\u0130", "ann\u200b"])
def test_unicode_look_alikes_never_become_somebody_elses_name(typed):
    # the Kelvin sign's lower case is a plain k; fullwidth, Cyrillic, dotted I, zero width space
    assert not is_valid(normalize(typed))


@given(st.text(max_size=40))
def test_only_ascii_ever_leads_to_a_valid_name(typed):
    name = normalize(typed)
    if is_valid(name):
        assert typed.strip().isascii()
        assert name == typed.strip().lower()
        assert normalize(name) == name
