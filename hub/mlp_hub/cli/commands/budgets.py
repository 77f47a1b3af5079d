"""`mlp-hub budget`: budgets of teams, and their spent parts."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.domain.text import escaped, escaped_json
from mlp_hub.settings import Settings
from mlp_language.render import say


@dataclass(frozen=True, slots=True)
class BudgetAsked:
    """Budget as the command line has it; `levels` are percentages with commas between them."""

    tenant: str
    amount: str
    currency: str | None = None
    levels: str | None = None
    stop: bool = False
    begins: str | None = None
    ends: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the body of the request. Raises `UsageFailure`."""
        found: dict[str, Any] = {"amount": self.amount, "stop": self.stop}
        for name in ("currency", "begins", "ends"):
            if (value := getattr(self, name)) is not None:
                found[name] = value
        if self.levels is not None:
            parts = [part.strip() for part in self.levels.split(",") if part.strip()]
            try:
                found["levels"] = [int(part) for part in parts]
            except ValueError:
                raise UsageFailure(
                    say("--levels {text} is not a list of percentages such as 80,100", text=self.levels)
                ) from None
        return found


def list_(settings: Settings, *, as_json: bool) -> int:
    """Print the budgets of all teams."""
    found = ask_service(settings, "GET", "/budgets").json()
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(found, indent=2, ensure_ascii=False)) + "\n")
        return 0
    sys.stdout.write("".join(line(one) + "\n" for one in found) or say("no team has a budget") + "\n")
    return 0


def put(settings: Settings, asked: BudgetAsked) -> int:
    """Set the budget of a team."""
    found = ask_service(settings, "PUT", _path(asked.tenant), body=asked.body()).json()
    sys.stdout.write(line(found) + "\n")
    return 0


def remove(settings: Settings, tenant: str) -> int:
    """Remove the budget of a team."""
    ask_service(settings, "DELETE", _path(tenant))
    sys.stdout.write(say("removed the budget of {tenant}", tenant=tenant) + "\n")
    return 0


def line(found: dict[str, Any]) -> str:
    """Return a budget as one line."""
    period = f"{found['since']} .. {found['until']}" if found["since"] else say("not in its period")
    amount = f"{found['amount']} {found['currency']}"
    if found["spent"] is not None:
        amount = f"{found['spent']} ({found['percent']:g} %) / {amount}"
    levels = ",".join(map(str, found["levels"]))
    stop = say("stops new work now") if found["stopped"] else say("stops new work") if found["stop"] else ""
    parts = [found["tenant"], amount, period, levels, stop, found["uncounted"]]
    return escaped("  ".join(part for part in parts if part))


def _path(tenant: str) -> str:
    return f"/tenants/{quote(tenant, safe='')}/budget"
