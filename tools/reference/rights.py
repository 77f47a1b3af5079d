"""Rules of the Helm chart's roles, made of the tables of rights, each verb with its reason beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from mlp_hub.executors.kubernetes.rbac import (
    HUB_IN_GIVEN,
    IN_GIVEN,
    IN_HOME,
    LEADER,
    OF_CLEAN,
    OF_HUB,
    OF_OPERATORS,
    RIGHTS,
)
from mlp_hub.executors.kubernetes.tenancy.required_rights import Need, of_members
from mlp_language.render import ENGLISH, render

ROLES: Mapping[str, tuple[Need, ...]] = {
    "hub": OF_HUB,
    "service": (*RIGHTS, *OF_OPERATORS, *of_members()),
    "leader": (LEADER,),
    "clean": OF_CLEAN,
    "hubInGiven": HUB_IN_GIVEN,
    "serviceInGiven": IN_GIVEN,
    "serviceInHome": IN_HOME,
}
"""Roles of the chart, and their rights."""
_HEAD = "{{/* Rules of the roles. `make docs` writes this file from the tables of rights; do not change it by hand. */}}\n"


def template() -> str:
    """Return the file of the chart with one named template for each role."""
    parts = []
    for role, needs in ROLES.items():
        rules = "\n".join(_rules(needs))
        parts.append(f'{{{{- define "mlp-hub.rights.{role}" -}}}}\n{rules}\n{{{{- end -}}}}\n')
    return _HEAD + "\n".join(parts)


def _rules(needs: Iterable[Need]) -> Iterable[str]:
    """Write the rules; the rights on one kind are one rule."""
    of: dict[tuple[str, str, str], list[Need]] = {}
    for need in needs:
        of.setdefault((need.kind.group, need.kind.plural, need.name), []).append(need)
    for (group, plural, name), some in of.items():
        purposes = dict.fromkeys(render(need.purpose, ENGLISH) for need in some)
        reasons: dict[str, list[str]] = {}
        for need in some:
            for verb, reason in need.verbs.items():
                reasons.setdefault(verb, []).append(reason)
        yield f"# {'; '.join(purposes)}"
        yield f"- apiGroups: [{json.dumps(group)}]"
        yield f"  resources: [{plural}]"
        if name:
            yield f"  resourceNames: [{name}]"
        yield "  verbs:"
        for verb, said in reasons.items():
            yield f"    - {verb}  # {'; '.join(dict.fromkeys(said))}"
