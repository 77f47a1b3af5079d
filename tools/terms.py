"""Write the names of the hub's tables for other languages and layers: `python tools/terms.py .`.

`mlp` does not import the hub, the front end is not Python, the wire types depend on nothing, and settings do not
know the parts that they set. Each gets the names and their words in its own file. The version is written to its other places, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from mlp_api.jobs.jobs import JobShape
from mlp_api.types import TenantCreate
from mlp_hub.domain.dimensions import BY_NAME, COUNTED, DIMENSIONS, ON_NODES
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import PRIORITIES
from mlp_hub.domain.notices.notice import NoticeKind
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.scheduler.policy import ORDERS, POLICIES
from mlp_hub.simulate.forms import PLACEMENTS
from release import versions

LINE = 110
"""Given: characters of a line of the formatter's files."""
_MADE = "Names of the contract, and what they are called: made by `make docs`, not by hand."
_REASONS = {reason.value: reason.words for reason in Reason}
_POLICIES = {name: str(policy.words) for name, policy in POLICIES.items()}
_ORDERS = {name: order.words for name, order in ORDERS.items()}


def for_notebooks() -> str:
    """Return the module of `mlp`: sentences are made when they are asked for, in the reader's language."""
    said = "Mapping[str, Callable[[], str]]"
    return "\n".join(
        (
            f'"""{_MADE}"""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Callable, Mapping\n",
            "from mlp.language import say\n",
            _table(f"REASONS: {said}", _REASONS, "lambda: say({})"),
            _table(f"ORDERS: {said}", _ORDERS, "lambda: say({})"),
            "Words = Callable[[], str]",
            _counted_options(),
            _tuple("RUNTIMES", BUILT_IN),
            _tuple("PRIORITIES", sorted(PRIORITIES, key=PRIORITIES.__getitem__)),
            _tuple("TOPOLOGIES", TOPOLOGIES),
            _tuple("NOTICE_EVENTS", NoticeKind),
            "",
        )
    )


def _counted_options() -> str:
    rows = "".join(
        f"\n    {json.dumps(name)}: (\n"
        f"        {json.dumps(BY_NAME[name].within) if BY_NAME[name].within else None},\n"
        f"        lambda: say({json.dumps(BY_NAME[name].help)}),\n"
        f"        lambda: say({json.dumps(BY_NAME[name].usual)}),\n"
        "    ),"
        for name in COUNTED
    )
    return f"COUNTED: Mapping[str, tuple[str | None, Words, Words]] = {{{rows}{chr(10) if rows else ''}}}"


def for_wire() -> str:
    """Return the module of `mlp_api`."""
    return "\n".join(
        (
            f'"""{_MADE}"""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Mapping\nfrom typing import Literal\n",
            *(
                _literal(name, names)
                for name, names in (
                    ("PolicyName", POLICIES),
                    ("QueueOrder", ORDERS),
                    ("PlacementRule", PLACEMENTS),
                    ("NoticeEvent", NoticeKind),
                )
            ),
            _table("POLICIES: Mapping[PolicyName, str]", _POLICIES, "{}"),
            _table("ORDERS: Mapping[QueueOrder, str]", _ORDERS, "{}"),
            "",
        )
    )


def for_front() -> str:
    """Return the module of the front end."""
    lines = [f"/** {_MADE} */", 'import { t } from "./language";\n']
    lines.append("type Words = Readonly<Record<string, () => string>>;\n")
    for name, table in (("REASONS", _REASONS), ("POLICIES", _POLICIES), ("ORDERS", _ORDERS)):
        rows = "".join(f"  {key}: () => t({json.dumps(words)}),\n" for key, words in table.items())
        lines.append(f"export const {name}: Words = {{\n{rows}}};\n")
    taking_turns = [name for name, policy in POLICIES.items() if policy.one_line is None]
    lines.append(
        "/** Under these each tenant has a line of its own; the others put the jobs of all tenants into one. */"
    )
    lines.append(f"export const LINE_PER_TENANT: readonly string[] = [{_listed(taking_turns)}];\n")
    lines.append("/** What of a job somebody may be told. */")
    lines.append(f"export const NOTICE_EVENTS = [{_listed(NoticeKind)}] as const;\n")
    lines.append("/** What a job asks for that says nothing else. */")
    shape = {
        o.name: o.default
        for o in msgspec.structs.fields(JobShape)
        if o.default not in (msgspec.NODEFAULT, None)
    }
    lines.append(f"export const SUBMIT = {json.dumps(shape)} as const;\n")
    lines.append("/** All that quotas count: rows of the hub's table. */")
    lines.append(f"export const DIMENSIONS = [{_listed(DIMENSIONS)}] as const;\n")
    lines.append("/** Of which amounts can be kept free on nodes. */")
    lines.append(f"export const ON_NODES: readonly string[] = [{_listed(ON_NODES)}];\n")
    lines.append("/** All that a tenant is configured by. */")
    lines.append(f"export const TENANT_FIELDS = [{_listed(TenantCreate.__struct_fields__)}] as const;\n")
    return "\n".join(lines)


def _table(head: str, words: Mapping[str, str], row: str) -> str:
    return f"{head} = {{\n{''.join(f'    {json.dumps(k)}: {row.format(json.dumps(v))},{chr(10)}' for k, v in words.items())}}}"


def _tuple(name: str, names: Iterable[str]) -> str:
    """Write a tuple as the formatter does."""
    line = f"{name} = ({_listed(names)})"
    if len(line) <= LINE:
        return line
    rows = "".join(f"    {json.dumps(one)},\n" for one in names)
    return f"{name} = (\n{rows})"


def _literal(name: str, names: Iterable[str]) -> str:
    """Write a type of these words as the formatter does."""
    for inside in (_listed(names), f"\n    {_listed(names)}\n"):
        line = f"{name} = Literal[{inside}]"
        if all(len(part) <= LINE for part in line.splitlines()):
            return line
    rows = "".join(f"    {json.dumps(one)},\n" for one in names)
    return f"{name} = Literal[\n{rows}]"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(json.dumps(name) for name in names)


FILES: Mapping[str, Callable[[], str]] = {
    "extensions/mlp/terms.py": for_notebooks,
    "hub/mlp_api/terms.py": for_wire,
    "widgets/src/core/format/terms.ts": for_front,
    **versions.FILES,
}
"""Files from the repository's root on, and what makes each."""


def main(root: str) -> None:
    """Write them."""
    for path, make in FILES.items():
        (Path(root) / path).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
