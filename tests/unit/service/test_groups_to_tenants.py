"""Groups of a login's provider become tenants by rules: whatever the groups are, nothing raises and nobody gets too much."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_api.types import NAME_PATTERN
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.service.tenants.groups import (
    GROUP_LONGEST,
    GROUPS_MOST,
    LEFT_OUT_SHOWN,
    TENANTS_MOST,
    BadRule,
    GroupPolicy,
    policy_of,
    rule_of,
)

RULES = ("/ml/{tenant} -> {tenant}", "/ml/{tenant}/admins -> {tenant}:admin", "/physics/* -> physics")
POLICY = policy_of(RULES, title="Keycloak")
NAMES = st.from_regex(NAME_PATTERN, fullmatch=True)
GROUPS = st.lists(
    st.one_of(
        st.text(max_size=300),
        st.lists(st.text(string.printable, max_size=60), max_size=6).map("/".join),
        NAMES.map("/ml/{}".format),
        NAMES.map("/ml/{}/admins".format),
    ),
    max_size=40,
)


def roles(policy: GroupPolicy, *groups: str) -> dict[str, str]:
    return {name: place.role.value for name, place in policy.wanted(groups).places.items()}


def said(policy: GroupPolicy, *groups: str) -> list[str]:
    return [str(text) for text in policy.wanted(groups).left_out]


def test_two_groups_give_two_tenants_and_an_admins_group_its_admins() -> None:
    assert roles(POLICY, "/ml/red", "/ml/blue", "/ml/blue/admins", "/physics/optics") == {
        "red": "member",
        "blue": "admin",
        "physics": "member",
    }


@pytest.mark.parametrize(
    "group",
    [
        "/ML/red",
        "/ml/red/x",
        "/ml/red/admins/x",
        "ml/red",
        "/ml",
        "/ml/",
        "/ml//red",
        "//ml/red",
        "/physics",
        "/ml/red\n",
    ],
)
def test_a_group_that_is_cased_or_nested_otherwise_gives_nothing(group: str) -> None:
    assert roles(POLICY, group) == {}


@pytest.mark.parametrize("name", ["Red", "red team", "9red", "red-", "r" * 51, "..", "réd", "red.blue"])
def test_a_group_that_would_make_a_bad_tenants_name_is_left_out_and_told(name: str) -> None:
    assert roles(POLICY, f"/ml/{name}", "/ml/blue") == {"blue": "member"}
    [text] = said(POLICY, f"/ml/{name}")
    assert name[:40] in text
    assert "is ignored" in text


def test_without_rules_a_group_is_the_tenant_of_its_name_and_other_groups_are_ignored() -> None:
    assert roles(GroupPolicy(), "red", "/ml/blue", "Nice People") == {"red": "member"}
    assert said(GroupPolicy(), "red", "/ml/blue", "Nice People") == []


def test_a_huge_claim_is_truncated_with_a_note_and_groups_outside_the_rules_cost_nothing() -> None:
    wanted = POLICY.wanted(f"/ml/t{n}" for n in range(GROUPS_MOST + 5))
    assert len(wanted.places) == TENANTS_MOST
    assert len(wanted.left_out) == LEFT_OUT_SHOWN
    assert f"5 of {GROUPS_MOST + 5} groups are ignored" in str(wanted.left_out[0])
    others = [f"/company/{n}" for n in range(20 * GROUPS_MOST)]
    assert roles(POLICY, *others, "/ml/red") == {"red": "member"}
    assert said(POLICY, *others, "/ml/red") == []


def test_a_group_with_an_endless_name_is_left_out_and_told() -> None:
    assert roles(POLICY, "/ml/" + "r" * GROUP_LONGEST, "/ml/red") == {"red": "member"}
    assert "1 of 2 groups are ignored" in said(POLICY, "/ml/" + "r" * GROUP_LONGEST, "/ml/red")[0]


def test_two_stars_take_all_that_is_below() -> None:
    policy = policy_of(["/org/** -> org"])
    assert roles(policy, "/org/a/b/c") == {"org": "member"}
    assert roles(policy, "/org") == roles(policy, "/organ/a") == {}


@given(GROUPS, st.randoms())
def test_no_groups_cause_an_exception_and_their_order_and_number_do_not_matter(
    groups: list[str], chance: object
) -> None:
    wanted = POLICY.wanted(groups)
    shuffled = [*groups, *groups]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert POLICY.wanted(shuffled).places == wanted.places
    for name, place in wanted.places.items():
        assert re.match(NAME_PATTERN, name)
        assert place.group in groups
        assert len(place.group) <= GROUP_LONGEST


@given(GROUPS)
def test_nobody_is_an_admin_but_by_the_admins_group_itself(groups: list[str]) -> None:
    for name, place in POLICY.wanted(groups).places.items():
        if place.role is Role.ADMIN:
            assert f"/ml/{name}/admins" in groups
        else:
            assert f"/ml/{name}" in groups or name == "physics"


@given(GROUPS, GROUPS)
def test_more_groups_never_take_anything_away(some: list[str], more: list[str]) -> None:
    before, after = POLICY.wanted(some).places, POLICY.wanted([*some, *more]).places
    assert all(
        name in after and (p.role is Role.MEMBER or after[name].role is p.role) for name, p in before.items()
    )


@given(GROUPS)
def test_the_stored_groups_mean_the_same_as_all_groups(groups: list[str]) -> None:
    kept, _ = POLICY.concerned(groups)
    assert POLICY.wanted(kept).places == POLICY.wanted(groups).places


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/ml/red", "is no rule"),
        ("-> red", "is no rule"),
        ("/ml/red ->", "is no rule"),
        ("/ml/red -> red:root", "names the role 'root'"),
        ("/ml/red -> Red", "gives the tenant 'Red'"),
        ("/ml/red -> {tenant}", "has none"),
        ("/ml/{tenant}*/x -> {tenant}", "meet"),
        ("/{tenant}/{tenant} -> {tenant}", "twice"),
        ("/ml/{group} -> red", "only word in braces"),
        ("/a/**/b -> red", "meet"),
    ],
)
def test_an_invalid_rule_is_refused_with_a_valid_form(text: str, why: str) -> None:
    with pytest.raises(BadRule, match=why):
        rule_of(text)


def test_new_tenants_are_made_of_the_template_and_by_rules_alone() -> None:
    policy = policy_of(RULES, make=True, quota=["cpu=16", "gpu:h100=2", "parent=company"])
    made = policy.new_tenant("red")
    assert made is not None
    assert (made.name, made.cpu, made.gpu_kinds, made.parent) == ("red", 16, {"h100": 2}, "company")
    assert POLICY.new_tenant("red") is None
    with pytest.raises(BadRule, match="no rule says for which"):
        policy_of([], make=True)


@pytest.mark.parametrize("quota", ["cpu", "cpu=", "cpu=many", "cpu=-1", "colour=red", "parent=No Name"])
def test_a_template_that_makes_no_tenant_is_refused_at_the_start(quota: str) -> None:
    with pytest.raises(BadRule):
        policy_of(RULES, make=True, quota=[quota])
