"""Write the reference pages from the tables that the program uses: `python -m reference docs/reference`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mlp.grammar.help_text import examples, shown_default
from mlp.grammar.job_options import Option
from mlp.grammar.verbs import COMMAND, MAGIC, TAKES, VERBS, Verb, options_of
from mlp.rendering.words import capital
from mlp_hub.api.auth import scopes
from mlp_hub.domain.errors import Reason
from mlp_hub.settings import table
from reference import chart
from reference.figures import figures_page
from reference.limits import limits_page
from reference.monitoring import alerts_page, dashboards_page, metrics_page
from reference.phases import phases_page
from reference.rest import access_page, markdown_table, rest_page
from reference.scenarios import scenarios_page

_SETTINGS = """# Settings

Each is an environment variable, or a line `c.MLPHub.name = value` in the traitlets file that `MLP_CONFIG` names; the
variable wins. An unknown name in the file stops the start and says which was meant. `mlp-hub up` takes changes over
and restarts only what they concern.

"""
_SCOPES = """# Scopes

A request needs two things: its token must hold the route's scope, and the token's owner must stand in the route's
relation to the object (their own job, their tenant, any object for a platform admin). [REST routes](rest.md) names both
for each route. A person's token needs `{access}` besides, which every user's role holds. Who
holds `custom:mlp:cluster:read` stands as a platform admin to every object.

"""
_REASONS = """# Reasons

A refused request is answered with status 403 and `{"msg": "...", "reason": "..."}`; a job that waits has the same kind
of reason in its record, in `why` and in the monitor. The set is closed. `msg` has the numbers and the way out.

"""
_SUBMIT = """# Submit options and magics

One table of verbs and options serves the magics (`%mlp VERB`, and `%%mlp submit` with the cell as the program), the
command (`mlp VERB`) and Python (`mlp.submit(...)`, options with `_` for `-`). `%mlp VERB --help` shows the same, and
the tab key completes verbs, options, runtimes, tenants and names of jobs.

"""
_EXIT = """## Exit status of the command

0 done; 1 the job failed; 2 usage; 3 refused (quota, rights, no login); 4 the service cannot be reached; 130 interrupted
(a job that was watched goes on).
"""


def settings_page() -> str:
    """Return the page of settings as Markdown."""
    rows = []
    for row in table():
        default = f"`{row.default}`{f' {row.unit}' if row.unit else ''}" if row.default else ""
        in_file = f"`{row.name}`" if row.name != "config" else ""
        unit = f" In {row.unit}." if row.unit and not row.default else ""
        rows.append((f"`{row.variable}`", in_file, default, row.doc + unit))
    return _SETTINGS + markdown_table(("variable", "in the file", "default", "meaning"), rows)


def scopes_page() -> str:
    """Return the page of scopes: the rights of each, and the kinds of token that hold it."""
    holders = {
        "user": scopes.USER_SCOPES,
        "notebook server": scopes.SERVER_SCOPES,
        "platform admin": scopes.ADMIN_SCOPES,
        "spawner": scopes.SPAWNER_SCOPES,
        "data": scopes.PART_SCOPES[scopes.DATA],
        "gateway": scopes.PART_SCOPES[scopes.PROXY],
    }
    rows = [
        (f"`{name}`", text, *("yes" if name in held else "" for held in holders.values()))
        for name, text in scopes.SCOPES.items()
    ]
    return _SCOPES.format(access=scopes.ACCESS) + markdown_table(("scope", "allows", *holders), rows)


def reasons_page() -> str:
    """Return the page of reasons."""
    return _REASONS + markdown_table(
        ("reason", "meaning", "in short"), ((f"`{r}`", r.meaning, r.words) for r in Reason)
    )


def submit_page() -> str:
    """Return the page of verbs, and of the options of each."""
    page = _SUBMIT + markdown_table(
        ("verb", "what it does", "where"),
        ((f"[`{v.name}`](#{v.name})", v.help(), _surfaces(v)) for v in VERBS),
    )
    for verb in VERBS:
        page += f"\n## {verb.name}\n\n{capital(verb.help())}.\n\n"
        page += "".join(
            f"    {s} {verb.name} {TAKES[verb.takes]()}".rstrip() + "\n" for s in sorted(verb.surfaces)
        )
        options = list(dict.fromkeys(o for s in (MAGIC, COMMAND) for o in options_of(verb, s)))
        page += "\n" + markdown_table(("option", "meaning", "default"), (_option(o) for o in options))
    page += "\n## Examples\n\n" + "".join(f"    {e}\n" for s in (MAGIC, COMMAND) for e in examples(s))
    return f"{page}\n{_EXIT}"


def _surfaces(verb: Verb) -> str:
    both = [s for s, name in ((MAGIC, "magic"), (COMMAND, "command")) if s in verb.surfaces]
    return ", ".join(f"`{s} {verb.name}`" for s in both)


def _option(option: Option) -> tuple[str, str, str]:
    flags = ", ".join(f"`{f}{f' {option.metavar}' if option.metavar else ''}`" for f in option.flags)
    only = {"with": " (magics only)", "json": " (command only)"}.get(option.name, "")
    return flags, f"{option.explained}{only}", shown_default(option)


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "access": access_page,
    "rest": rest_page,
    "scopes": scopes_page,
    "limits": limits_page,
    "reasons": reasons_page,
    "phases": phases_page,
    "submit": submit_page,
    "scenarios": scenarios_page,
    "figures": figures_page,
    "metrics": metrics_page,
    "alerts": alerts_page,
    "dashboards": dashboards_page,
    "chart": chart.chart_page,
}
"""Name of each page and what makes it."""


def main(folder: str) -> None:
    """Write all pages into a folder, and the files of the chart, in English wherever that is done."""
    os.environ["MLP_LANGUAGE"] = "en"
    for name, make in PAGES.items():
        (Path(folder) / f"{name}.md").write_text(make(), encoding="utf-8")
    chart.write()
