"""Groups of people, as a login's provider names them, and the tenants that rules give for them.

A rule is `GROUP -> TENANT` or `GROUP -> TENANT:admin`. In a group's pattern each part between slashes is plain text with at most one
`{tenant}` or `*`, which stand for anything but a slash; a last part `**` stands for all that is below. `TENANT` is a name or
`{tenant}`. Patterns have no two holes in one part, so that a long group cannot make the matching slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import ValidationError, convert

from mlp_api.types import NAME_PATTERN, TenantCreate
from mlp_hub.domain.tenants.tenant import Role
from mlp_language.message import Message, msg

GROUPS_MOST = 1000
"""Limit of teams: groups of one person that the login provider can name; further ones are left out."""
GROUP_LONGEST = 255
"""Given: characters of a group's name that the hub's database keeps; longer ones are left out, and told."""
TENANTS_MOST = 200
"""Limit of teams: teams that the groups of one person give."""
LEFT_OUT_SHOWN = 20
"""Tuning: sentences on groups that were left out, in one go: enough to find the mistake, for the size of the audit log."""
RULES_MOST = 200
"""Limit of teams: rules of `MLP_LOGIN_TENANTS`."""
HOLE = "{tenant}"
_NAME = re.compile(NAME_PATTERN)
_HOLES = re.compile(r"\{tenant\}|\*")
_SHOWN = 80
"""Tuning: characters of a name that are shown; a trade of a reader's need against a sentence's length."""


class BadRule(ValueError):  # noqa: N818 - what is wrong, as in a sentence
    """A rule, or a template of a tenant, that cannot be meant; says which, and what would be right."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule for one pattern of groups."""

    text: str
    pattern: re.Pattern[str]
    tenant: str
    """A tenant's name, or the hole."""
    role: Role

    def tenant_of(self, group: str) -> str | None:
        """Return the tenant that the rule gives for the group, perhaps an invalid name; None if it is not for it."""
        found = self.pattern.fullmatch(group)
        if found is None:
            return None
        return found["tenant"] if self.tenant == HOLE else self.tenant


@dataclass(frozen=True, slots=True)
class GrantedRole:
    """A role in a tenant, with the group that gives it."""

    role: Role
    group: str


@dataclass(frozen=True, slots=True)
class GroupsGive:
    """Grants of a person's groups; `left_out`: groups that give nothing although a rule is about them."""

    places: dict[str, GrantedRole]
    left_out: tuple[Message, ...] = ()


def rule_of(text: str) -> Rule:
    """Read one rule; raises BadRule."""
    group, arrow, target = (part.strip() for part in text.partition("->"))
    tenant, _, role = (part.strip() for part in target.partition(":"))
    if not arrow or not group or not tenant:
        raise BadRule(
            f"{text!r} is no rule; right: `/ml/{{tenant}} -> {{tenant}}`, or `/ml/admins -> ml:admin`"
        )
    if role not in ("", *Role):
        raise BadRule(f"{text!r} names the role {role!r}; there are {', '.join(Role)}")
    holes = 0
    parts = group.split("/")
    pieces: list[str] = []
    for at, part in enumerate(parts):
        if part == "**" and at == len(parts) - 1:
            pieces.append(".+")
            continue
        found = _HOLES.findall(part)
        if len(found) > 1:
            raise BadRule(
                f"{text!r} has {part!r}, where {found[0]} and {found[1]} meet; one in each part between slashes"
            )
        holes += HOLE in found
        left, hole, right = part.partition(found[0]) if found else (part, "", "")
        if {"{", "}"} & set(left + right):
            raise BadRule(f"{text!r} has braces in {part!r}; the only word in braces is {HOLE}")
        middle = "" if not hole else "(?P<tenant>[^/]+)" if hole == HOLE and holes == 1 else "[^/]+"
        pieces.append(re.escape(left) + middle + re.escape(right))
    if holes > 1:
        raise BadRule(f"{text!r} has {HOLE} twice among its groups; write * in the place of one")
    if tenant == HOLE and not holes:
        raise BadRule(f"{text!r} gives {HOLE}, and has none among its groups")
    if tenant != HOLE and not _NAME.match(tenant):
        raise BadRule(f"{text!r} gives the tenant {tenant!r}; a name has a-z, 0-9 and -, 1 to 50 characters")
    # `.` matches all but a line's end: a group with one fits no pattern
    return Rule(text, re.compile("/".join(pieces)), tenant, Role(role or Role.MEMBER))


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """Meaning of people's groups here; without rules a group is the tenant of its name.

    `title` is the name of their provider for people; empty: JupyterHub's own groups. `template` makes
    the tenant of a group that has none yet; None: such groups are left out.
    """

    rules: tuple[Rule, ...] = ()
    title: str = ""
    template: dict[str, object] | None = field(default=None, hash=False)

    def wanted(self, groups: Iterable[str]) -> GroupsGive:
        """Say what these groups give: the strongest role where several give the same tenant.

        Never raises, whatever the groups are; the same groups in another order give the same.
        """
        mine, dropped = self.concerned(groups)
        said = [] if dropped is None else [dropped]
        places: dict[str, GrantedRole] = {}
        for group in mine:
            for tenant, role in self._given(group).items():
                known = places.get(tenant)
                if not _NAME.match(tenant):
                    said.append(_no_name(group, tenant))
                elif known is None and len(places) >= TENANTS_MOST:
                    said.append(_too_many(group))
                elif known is None or (role is Role.ADMIN and known.role is Role.MEMBER):
                    places[tenant] = GrantedRole(role, group)
        return GroupsGive(places, tuple(said[:LEFT_OUT_SHOWN]))

    def concerned(self, groups: Iterable[str]) -> tuple[list[str], Message | None]:
        """Return the groups that rules are about, in order, up to the limit, and the message about the others.

        Most groups of a company are not related to the hub, and need not be kept here.
        """
        given = {g for g in groups if g}
        fit = [g for g in given if len(g) <= GROUP_LONGEST and g.isprintable()]
        mine = sorted(g for g in fit if self._given(g))
        dropped = len(given) - len(fit) + len(mine[GROUPS_MOST:])
        if not dropped:
            return mine, None
        return mine[:GROUPS_MOST], msg(
            "{dropped} of {all} groups are ignored: at most {most} groups of a person count, with names of at most {longest} printable characters",
            dropped=dropped,
            all=len(given),
            most=GROUPS_MOST,
            longest=GROUP_LONGEST,
        )

    def _given(self, group: str) -> dict[str, Role]:
        """Return the tenants that the rules give for a group, each with its strongest role; a name may be none that can be."""
        if not self.rules:  # a group that is called like no tenant is about something else
            return {group: Role.MEMBER} if _NAME.match(group) else {}
        found: dict[str, Role] = {}
        for rule in self.rules:
            tenant = rule.tenant_of(group)
            if tenant is not None and found.get(tenant) is not Role.ADMIN:
                found[tenant] = rule.role
        return found

    def new_tenant(self, name: str) -> TenantCreate | None:
        """Describe the tenant that is made for a group; None where none is."""
        return None if self.template is None else convert({**self.template, "name": name}, TenantCreate)


class LoginRules(Protocol):
    """Settings of groups."""

    @property
    def login_tenants(self) -> tuple[str, ...]: ...
    @property
    def login_new_tenants(self) -> str: ...
    @property
    def login_tenant_quota(self) -> tuple[str, ...]: ...
    @property
    def login_name(self) -> str: ...


def policy_as_set(settings: LoginRules) -> GroupPolicy:
    """Read what is set of groups; raises BadRule."""
    return policy_of(
        settings.login_tenants,
        title=settings.login_name,
        make=settings.login_new_tenants == "make",
        quota=settings.login_tenant_quota,
    )


def policy_of(
    rules: Sequence[str], *, title: str = "", make: bool = False, quota: Sequence[str] = ()
) -> GroupPolicy:
    """Read rules, and the template of new tenants as `cpu=16`, `gpu:h100=2`, `parent=company`; raises BadRule.

    Tenants are made by rules alone: by the default rule each group of everybody would become one.
    """
    if len(rules) > RULES_MOST:
        raise BadRule(
            f"there are {len(rules)} rules; at most {RULES_MOST}: * and {HOLE} stand for many groups"
        )
    read = tuple(rule_of(text) for text in rules)
    if make and not read:
        raise BadRule(
            "tenants are to be made for new groups, and no rule says for which; name them, as `/ml/{tenant} -> {tenant}`"
        )
    return GroupPolicy(read, title, _template(quota) if make else None)


def _template(quota: Sequence[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    kinds: dict[str, str] = {}
    for text in quota:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise BadRule(f"{text!r} is no part of a quota; right: `cpu=16`, `ram=65536` (MiB), `gpu:h100=2`")
        if name.startswith("gpu:"):
            kinds[name.removeprefix("gpu:")] = value
        else:
            given[name] = value
    if kinds:
        given["gpu_kinds"] = kinds
    try:
        made = convert({**given, "name": "new"}, TenantCreate, strict=False)
    except ValidationError as error:
        raise BadRule(f"new tenants cannot be made with {', '.join(quota)!r}: {error}") from None
    return {name: getattr(made, name) for name in given}


def _no_name(group: str, tenant: str) -> Message:
    return msg(
        "the group {group} is ignored: {tenant} cannot be a team's name, which has a-z, 0-9 and -, begins with a letter and has at most 50 characters",
        group=_clip(group),
        tenant=_clip(tenant),
    )


def _too_many(group: str) -> Message:
    return msg(
        "the group {group} is ignored: the groups of one person give at most {most} teams",
        group=_clip(group),
        most=TENANTS_MOST,
    )


def no_tenant(group: str, tenant: str) -> Message:
    """Say of a group that its tenant is not there."""
    return msg(
        "the group {group} is ignored: team {tenant} does not exist; make it, or set MLP_LOGIN_NEW_TENANTS=make to make teams for new groups",
        group=_clip(group),
        tenant=tenant,
    )


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
