"""`mlp-hub node`: nodes with their users; taken out of service, and put back."""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import quote

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.domain.text import escaped, escaped_json
from mlp_hub.settings import Settings
from mlp_language.render import say


def show(settings: Settings, *, as_json: bool) -> int:
    """Print the nodes, with the faults of each."""
    found: list[dict[str, Any]] = ask_service(settings, "GET", "/nodes").json()
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(found, indent=2, ensure_ascii=False)) + "\n")
        return 0
    for node in found:
        wrong = ", ".join(
            f"{c['kind']} ({c['message']})" if c["message"] else c["kind"] for c in node["conditions"]
        )
        sys.stdout.write(
            escaped(f"{node['name']}  {wrong or say('accepts work')}  {_users(len(node['holders']))}") + "\n"
        )
    return 0


def drain(settings: Settings, node: str, *, reason: str, evict: bool, dry_run: bool) -> int:
    """Say what runs on a node, and take it out of service unless only that was asked."""
    found = ask_service(settings, "GET", f"{_path(node)}/drain").json()
    _print_nodes(found)
    if dry_run:
        return 0
    after = ask_service(
        settings, "PUT", f"{_path(node)}:drain", body={"reason": reason, "evict": evict}, timeout=90
    ).json()
    sys.stdout.write(
        say("{node} accepts no new work until: mlp-hub node return {node}", node=escaped(node)) + "\n"
    )
    if after["stops"]:
        left = (
            say(
                "Running work on it is asked to end; look again: mlp-hub node drain {node} --dry-run",
                node=escaped(node),
            )
            if evict
            else say("Running work on it continues until it ends.")
        )
        sys.stdout.write(left + "\n")
    return 0


def give_back(settings: Settings, node: str) -> int:
    """Put a node into service again."""
    ask_service(settings, "PUT", f"{_path(node)}:return")
    sys.stdout.write(say("{node} accepts work again", node=escaped(node)) + "\n")
    return 0


def _print_nodes(found: dict[str, Any]) -> None:
    drained = found["drain"]
    if drained is not None:
        text = say(
            "out of service since {since} by {who}: {why}",
            since=drained["since"],
            who=drained["actor"],
            why=drained["reason"],
        )
        sys.stdout.write(escaped(text) + "\n")
    for one in found["stops"]:
        kind = {"job": say("job"), "app": say("app"), "server": say("notebook server")}[one["kind"]]
        ranks = f"  {one['ranks']}/{one['of']}" if one["of"] > one["ranks"] else ""
        ending = f"  {say('ending')}" if one["ending"] else ""
        sys.stdout.write(
            escaped(f"{kind} {one['name']}  {one['user']}  {one['tenant']}{ranks}{ending}") + "\n"
        )
    if not found["stops"]:
        sys.stdout.write(say("nothing runs there") + "\n")


def _users(n: int) -> str:
    return say("holders: {n}", n=n)


def _path(node: str) -> str:
    return f"/nodes/{quote(node, safe='')}"
