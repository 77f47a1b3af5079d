"""User names: the valid ones, and the conversion of a text that a person types.

A name is a directory, a part of URLs and a system user's name, so it is plain ASCII. A typed text
is lower-cased only when it is ASCII: Unicode's own lower-casing turns look-alikes (the Kelvin sign,
fullwidth letters) into plain letters, and so one person's name into another's.
"""

from __future__ import annotations

import re

from mlp_language.message import Message, msg

NAME_MAX = 32
ACCOUNT_PATTERN = r"^[a-z]([a-z0-9._-]{0,30}[a-z0-9])?$"
NAME_RULE = msg(
    "a name has 1 to 32 characters: small letters a-z, digits, '.', '_' and '-'; "
    "it starts with a letter and ends with a letter or digit"
)
_NAME = re.compile(ACCOUNT_PATTERN)

THE_HUB = "system"
"""Actor in the audit log for actions of the hub itself; the name of no user, to avoid confusion."""
# names that belong to the platform in paths, URLs or logs
SYSTEM_NAMES = frozenset(
    {
        "root",
        "nobody",
        "mlp",
        "mlp-spawner",
        "mlp-operator",
        "mlp-data",
        "mlp-gateway",
        "jupyterhub",
        "service",
        THE_HUB,
    }
)


def normalize(typed: str) -> str:
    """Return the name that was meant: surrounding blanks off, ASCII letters small, all else untouched."""
    name = typed.strip()
    return name.lower() if name.isascii() else name


def is_valid(name: str) -> bool:
    """Whether this is a name as it is stored; Unicode and case variants are not."""
    return _NAME.fullmatch(name) is not None and name not in SYSTEM_NAMES


def why_not(name: str) -> Message:
    """Return why a name cannot be an account's."""
    return msg("it belongs to the platform; choose another") if name in SYSTEM_NAMES else NAME_RULE
