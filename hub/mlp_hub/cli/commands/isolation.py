"""`mlp-hub isolation`: how tenants' files are kept, and the keys of those that are encrypted."""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import quote

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import state_dir
from mlp_hub.domain.text import escaped_json
from mlp_hub.isolation import KeyStore, KeyUnknownError, roots_of
from mlp_hub.settings import Settings
from mlp_language.render import say


def show(settings: Settings, *, as_json: bool) -> int:
    """Print how each tenant's files are kept, and where they are on their way."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = ask_service(settings, "GET", f"/tenants?limit=1000{after}")
        found += page.json()
        if page.following is None:
            break
        after = f"&cursor={quote(page.following, safe='')}"
    rows = [{name: one[name] for name in ("name", "isolation", "data_root", "move")} for one in found]
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n")
        return 0
    for row in rows:
        sys.stdout.write(line(row) + "\n")
    return 0


def line(row: dict[str, Any]) -> str:
    """Write one in a line."""
    text = f"{row['name']:<20} {row['isolation']:<10} {row['data_root']}".rstrip()
    move = row["move"]
    if move is None or move["state"] == "done":
        return text
    share = 100 * move["done"] // move["total"] if move["total"] else 0
    return f"{text}  {move['old']} > {move['new']}: {move['state']} {share} %  {move['message']}".rstrip()


def rotate(settings: Settings, tenant: str) -> int:
    """Give a tenant another key, by the running hub."""
    ask_service(settings, "POST", f"/tenants/{quote(tenant, safe='')}:rotate-key")
    sys.stdout.write(
        say(
            "{tenant} has another key, which opens the encryption key of its files. The files are not encrypted again, and an earlier copy of the key and of gocryptfs.conf still opens an earlier copy of the files",
            tenant=tenant,
        )
        + "\n"
    )
    return 0


def rotate_master(settings: Settings) -> int:
    """Wrap all tenants' keys by another master key; whether or not the hub runs."""
    store = KeyStore(settings.isolation_dir / "keys", settings.master_key_file)
    try:
        with state_dir.exclusive(settings, lambda text: print(text, file=sys.stderr)):  # noqa: T201
            number = store.rotate_master() if store.tenants() else 0
    except (OSError, KeyUnknownError) as error:
        raise CommandFailed(
            say("The keys cannot be wrapped again: {error}.", error=str(error)),
            say("Run it again; finished work stays, and all keys can be opened meanwhile."),
        ) from error
    sys.stdout.write(say("{n} keys of teams are wrapped by another master key", n=number) + "\n")
    return 0


def close_all(settings: Settings) -> None:
    """Take away the mounts of encrypted files, when nothing of the hub runs any more; one that is still used stays."""
    roots = roots_of(settings)
    assert roots.mounts is not None  # noqa: S101 - that of a hub has them
    for tenant in roots.mounts.mounted_tenants():
        roots.rest(tenant)
