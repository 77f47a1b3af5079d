"""`mlp-hub runtime`: the runtimes of tenants, listed, registered, approved, disabled and removed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.domain.text import escaped, escaped_json
from mlp_hub.settings import Settings
from mlp_language.render import say

MOST_BYTES = 1 << 20
STATES: Mapping[str, Callable[[], str]] = {
    "submitted": lambda: say("waits for review"),
    "approved": lambda: say("approved"),
    "disabled": lambda: say("disabled"),
}


def show(settings: Settings, *, tenant: str | None, as_json: bool) -> int:
    """Print the runtimes of all tenants, or of one, with their commands."""
    found: list[dict[str, Any]] = ask_service(settings, "GET", "/runtimes").json()
    own = [r for r in found if r["tenant"] is not None and tenant in (None, r["tenant"])]
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(own, indent=2, ensure_ascii=False)) + "\n")
        return 0
    for one in own:
        sys.stdout.write(line(one) + "\n")
    if not own:
        none = (
            say("no team has registered a runtime")
            if tenant is None
            else say("{tenant} has no runtime", tenant=tenant)
        )
        sys.stdout.write(f"{none}\n")
    return 0


def line(one: dict[str, Any]) -> str:
    """Return a runtime as one line; texts of tenants cannot control a terminal."""
    runs = " ".join(one["launcher"] or one["program"])
    return escaped(
        say(
            "{runtime}  {state}  by {who}  {title}: {command}",
            runtime=f"{one['tenant']}/{one['name']}",
            state=STATES[one["state"]](),
            who=str(one["changed_by"]),
            title=one["title"],
            command=runs,
        )
    )


def put(settings: Settings, tenant: str, name: str, file: Path) -> int:
    """Register or change a runtime from a file with its description as JSON."""
    try:
        text = sys.stdin.read(MOST_BYTES) if str(file) == "-" else file.read_text()
        described = json.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageFailure(
            say("{file} is not a description as JSON: {error}", file=str(file), error=str(error))
        ) from None
    if not isinstance(described, dict):
        raise UsageFailure(
            say("{file} is not a JSON object; docs/how-to/runtimes.md has an example", file=str(file))
        )
    made = ask_service(settings, "PUT", _path(tenant, name), body=described).json()
    sys.stdout.write(line(made) + "\n")
    return 0


def act(settings: Settings, tenant: str, name: str, verb: str) -> int:
    """Approve, disable or remove a runtime."""
    path = _path(tenant, name)
    one = (
        ask_service(settings, "DELETE", path)
        if verb == "remove"
        else ask_service(settings, "POST", f"{path}:{verb}")
    ).json()
    text = line(one)
    sys.stdout.write((say("removed {runtime}", runtime=text) if verb == "remove" else text) + "\n")
    return 0


def _path(tenant: str, name: str) -> str:
    return f"/tenants/{quote(tenant, safe='')}/runtimes/{quote(name, safe='')}"
