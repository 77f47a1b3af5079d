"""Who is who: one person keeps one name, and nobody gets another's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyterhub import orm

from mlp_hub.domain.tenants.account_names import is_valid
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity
from mlp_hub.hub_integration.providers.records import identities

ANN = ProviderIdentity("https://sso.example", "s-ann", "ann", "ann@example.org", True, ("/ml/red",), False)


def named(name: str, subject: str = "s-x", issuer: str = ANN.issuer) -> ProviderIdentity:
    return replace(ANN, claimed_name=name, subject=subject, issuer=issuer)


@pytest.fixture
def db() -> object:
    made = orm.new_session_factory("sqlite:///:memory:")()
    identities.ensure_table(made)
    return made


def claim(db: object, identity: ProviderIdentity, *taken: str) -> str:
    return identities.claim(db, identity, lambda name: name in taken)


def test_a_renamed_person_stays_the_same(db: object) -> None:
    assert claim(db, ANN) == "ann"
    assert claim(db, replace(ANN, claimed_name="ann.married")) == "ann"
    assert identities.of_name(db, "ann").claimed_name == "ann.married"


def test_a_new_person_with_a_former_name_of_another_gets_a_different_name(db: object) -> None:
    assert claim(db, ANN) == "ann"
    claim(db, replace(ANN, claimed_name="ann.married"))
    assert claim(db, named("ann", "s-other")) == "ann-2"
    assert claim(db, named("ann", "s-third")) == "ann-3"
    assert claim(db, named("ann", "s-other")) == "ann-2"


def test_the_same_name_and_number_at_two_providers_is_two_people(db: object) -> None:
    assert claim(db, ANN) == "ann"
    assert claim(db, replace(ANN, issuer="https://other.example")) == "ann-2"


def test_subjects_are_told_apart_by_large_and_small_letters(db: object) -> None:
    assert claim(db, named("ann", "s")) == "ann"
    assert claim(db, named("ann", "S")) == "ann-2"


@pytest.mark.parametrize("name", ["admin", "ADMIN", " admin ", "admin@example.org"])
def test_names_that_are_taken_or_reserved_are_not_given(db: object, name: str) -> None:
    assert claim(db, named(name), "admin") == "admin-2"


@pytest.mark.parametrize("name", ["root", "mlp", "jupyterhub"])
def test_names_of_the_platform_are_not_given(db: object, name: str) -> None:
    made = claim(db, named(name))
    assert made != name
    assert made.startswith(f"{name}-")


@pytest.mark.parametrize(
    ("claimed", "begins"),
    [
        ("Ann Example", "ann-example-"),
        ("ann+x", "ann-x-"),
        ("ａｎｎ", "person-"),
        ("аnn", "nn-"),
        ("\u212aate", "ate-"),
        ("王小明", "person-"),
        ("jürgen", "jurgen-"),
        ("Zoë.Ñandú", "zoe.nandu-"),
        ("../../etc", "etc-"),
        ("1234", "person-1234-"),
        ("x" * 100, "x" * 20),
        ("-", "person-"),
        ("ann\u0000", "ann-"),
    ],
)
def test_an_invalid_user_name_becomes_a_valid_one_with_a_mark_of_the_person(
    db: object, claimed: str, begins: str
) -> None:
    made = claim(db, named(claimed))
    assert is_valid(made), made
    assert made.startswith(begins), made
    assert made != claim(db, named(claimed, "s-y"))
    assert made != begins.rstrip("-")


def test_a_long_name_has_room_for_its_number(db: object) -> None:
    long = "a" * 32
    assert claim(db, named(long)) == long
    assert claim(db, named(long, "s-y")) == f"{'a' * 30}-2"


@given(st.text(max_size=300), st.text(max_size=40))
def test_every_claim_gives_a_valid_name_and_only_plain_ones_give_themselves(
    claimed: str, subject: str
) -> None:
    made = identities.new_name(named(claimed, subject), lambda _: False)
    assert is_valid(made)
    # a name without a mark is what was claimed, or what stands before its `@`: nothing was made to look like it
    unmarked = made == identities.plain_name(named(claimed, f"{subject}'"))
    if unmarked:
        assert made in (claimed.strip().lower(), claimed.strip().lower().partition("@")[0])
