"""`mlp-hub prices` and `mlp-hub report`: the price list from a file, and a month's report for people who pay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.domain.accounting.days import read_month
from mlp_hub.domain.text import escaped, escaped_json
from mlp_hub.settings import Settings
from mlp_language.render import say

MOST_BYTES = 1 << 20
"""Safety: bytes of a price list's file: bounds memory."""


def show(settings: Settings, *, as_json: bool) -> int:
    """Print the price list."""
    return _print(ask_service(settings, "GET", "/prices").json(), as_json=as_json)


def put(settings: Settings, file: Path) -> int:
    """Replace the price list by that of a file as JSON."""
    try:
        if str(file) == "-":
            text = sys.stdin.read(MOST_BYTES)
        else:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(MOST_BYTES)
        listed = json.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageFailure(
            say("{file} is not a price list as JSON: {error}", file=str(file), error=str(error))
        ) from None
    if not isinstance(listed, dict):
        raise UsageFailure(
            say("{file} is not a JSON object; docs/how-to/costs.md has an example", file=str(file))
        )
    return _print(ask_service(settings, "PUT", "/prices", body=listed).json(), as_json=False)


def remove(settings: Settings) -> int:
    """Remove the price list."""
    ask_service(settings, "DELETE", "/prices")
    sys.stdout.write(say("removed the price list; costs are not shown any more") + "\n")
    return 0


def report(settings: Settings, *, month: str | None, tenant: str | None) -> int:
    """Print the report of a month, of one tenant or of all, as Markdown."""
    if month is not None and read_month(month) is None:
        raise UsageFailure(
            say("--month is {text}; write a month from 2000 to 2199 such as 2031-03", text=repr(month))
        )
    whose = "" if tenant is None else f"/tenants/{quote(tenant, safe='')}"
    query = "" if month is None else f"?{urlencode({'month': month})}"
    text = ask_service(settings, "GET", f"{whose}/accounting:report{query}").body.decode("utf-8", "replace")
    sys.stdout.write("".join(f"{escaped(line)}\n" for line in text.splitlines()))
    return 0


def _print(listed: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(listed, indent=2, ensure_ascii=False)) + "\n")
        return 0
    for period in listed["periods"]:
        sys.stdout.write(line(period, listed["currency"]) + "\n")
    return 0


def line(period: dict[str, Any], currency: str) -> str:
    """Return the prices of a period as one line."""
    kinds = "".join(f"  GPU-hour {kind} {price}" for kind, price in period["gpu_hour"].items())
    return escaped(
        f"{period['begins']} .. {period['ends'] or ''}  {currency}  core-hour {period['core_hour']}  "
        f"GiB-hour {period['gib_hour']}  GiB-month {period['gib_month']}{kinds}"
    )
