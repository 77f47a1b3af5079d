"""Keys that the query of a service's address may have: of those that a library knows some read a file of this machine."""

from __future__ import annotations

from collections.abc import Mapping

COMMON = frozenset({"format", "overflow", "emojis", "image", "cto", "rto", "verify"})
"""Contract: keys that each service takes."""
_WEBHOOKS = frozenset({"key", "token", "thread", "threadkey", "thread_id", "api-version", "sp", "sv", "sig"})
_MATTERMOST = frozenset({"to", "channel", "channels", "mode", "team", "botname", "icon_url"})
_NTFY = frozenset(
    {"priority", "click", "delay", "email", "actions", "tags", "avatar_url", "to", "token", "auth", "mode"}
)
_ROCKET = frozenset({"mode", "avatar", "to", "webhook"})
KEYS: Mapping[str, frozenset[str]] = {
    # as services give webhooks out
    "https": _WEBHOOKS,
    "http": _WEBHOOKS,
    "discord": frozenset(
        {"avatar", "avatar_url", "botname", "fields", "flags", "footer", "footer_logo", "href", "ping", "thread", "tts", "url"}
    ),
    "gchat": frozenset({"workspace", "key", "token", "thread", "threadkey"}),
    "mattermost": _MATTERMOST,
    "mmost": _MATTERMOST,
    "mmosts": _MATTERMOST,
    "msteams": frozenset({"team", "token_a", "token_b", "token_c", "token_d", "version"}),
    "ntfy": _NTFY,
    "ntfys": _NTFY,
    "rocket": _ROCKET,
    "rockets": _ROCKET,
    "slack": frozenset({"token", "to", "blocks", "mode", "footer", "timestamp"}),
    "tgram": frozenset({"content", "to", "mdv", "topic", "thread", "silent", "preview"}),
    "workflows": frozenset(
        {"route", "routeid", "workflow", "id", "signature", "sig", "api-version", "ver", "sp", "sv", "wrap"}
    ),
    "zulip": frozenset({"token", "to"}),
}  # fmt: skip
"""Contract: additional keys that a service takes.

A service that is not here, which an operator can name, takes only the common keys.
"""


def unknown_key(address: str) -> str | None:
    """Return the first key of an address' query that its service does not take here; None where it takes all."""
    scheme, _, rest = address.partition(":")
    known = COMMON | KEYS.get(scheme.lower(), frozenset())
    _, asked, query = rest.partition("?")
    if not asked:
        return None
    # whatever a library takes for the beginning of another key is one here, and what is written otherwise is unknown
    for part in query.replace(";", "&").replace("?", "&").replace("#", "&").split("&"):
        key = part.partition("=")[0].lower()
        if part and key not in known:
            return key[:40]
    return None
