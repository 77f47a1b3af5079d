"""Declares settings and turns what was given for one into its kind, within its limits."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Value = str | int | float | bool | Path | tuple[str, ...] | None


class SettingsError(ValueError):
    """A setting that is unknown or has a value that cannot be; the message names both and the way out."""


def setting(
    default: Value,
    doc: str,
    *,
    kind: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
    limit: str = "",
) -> Any:
    """Declare one row of the table of settings, as a dataclass field; a secret one is passed on in files only, and shown nowhere.

    `limit` is the heading of the reference page of limits that lists it.
    """
    meta = {
        "doc": doc,
        "kind": kind,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": choices,
        "secret": secret,
        "limit": limit,
    }
    return field(default=default, metadata=meta, repr=not secret)


def parse(label: str, raw: object, meta: Mapping[str, object]) -> Value:
    """Turn what was given into the setting's kind, within its limits."""
    kind = str(meta["kind"])
    try:
        value = _PARSERS[kind](raw)
    except (TypeError, ValueError):
        raise SettingsError(f"{label} is {raw!r}; it must be {_KIND_NAMES[kind]}") from None
    choices = meta["choices"]
    if isinstance(choices, tuple) and choices and value not in choices:
        raise SettingsError(f"{label} is {raw!r}; it must be one of {', '.join(choices)}")
    low, high = meta["low"], meta["high"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(low, int | float) and not value >= low:
            raise SettingsError(f"{label} is {raw!r}; it must be at least {low:g}")
        if isinstance(high, int | float) and not value <= high:
            raise SettingsError(f"{label} is {raw!r}; it must be at most {high:g}")
    return value


def networks(variable: str, given: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Read addresses and networks; raise SettingsError where one is none."""
    try:
        return tuple(ip_network(one) for one in given)
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}; it takes addresses and networks, as 10.0.0.0/8") from None


def secrets_of(label: str, path: Path) -> dict[str, Any]:
    """Read a TOML file that its owner alone may read; raises `SettingsError`."""
    try:
        mode = path.stat().st_mode
        found = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{label} cannot be read: {error}") from error
    if not stat.S_ISREG(mode) or mode & 0o077:
        raise SettingsError(f"{label} can be read by others; chmod 600 it")
    return found


def address(label: str, raw: str) -> tuple[str, int] | None:
    """Read HOST:PORT, of IPv6 [HOST]:PORT; None where nothing is given."""
    if not raw:
        return None
    host, _, port = raw.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or (":" in bare) is not (bare != host) or not (port.isascii() and port.isdigit()):
        raise SettingsError(f"{label} is {raw!r}; it must be HOST:PORT, or [HOST]:PORT of IPv6")
    if not 1 <= int(port) <= 65535:
        raise SettingsError(f"{label} is {raw!r}; the port must be from 1 to 65535")
    return bare, int(port)


def _bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[str(raw).lower()]


def _parse_bool(raw: object) -> bool:
    try:
        return _bool(raw)
    except KeyError:
        raise ValueError(raw) from None


def _parse_list(raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    if isinstance(raw, list | tuple | set):
        return tuple(str(part) for part in raw)
    raise TypeError(raw)


def _parse_path(raw: object) -> Path:
    if isinstance(raw, str | os.PathLike):
        return Path(os.fspath(raw)).expanduser().absolute()
    raise TypeError(raw)


def _parse_int(raw: object) -> int:
    if isinstance(raw, int | str) and not isinstance(raw, bool):
        return int(raw)
    raise TypeError(raw)


def _parse_float(raw: object) -> float:
    if isinstance(raw, int | float | str) and not isinstance(raw, bool):
        return float(raw)
    raise TypeError(raw)


_PARSERS: dict[str, Callable[[object], Value]] = {
    "int": _parse_int,
    "float": _parse_float,
    "bool": _parse_bool,
    "str": str,
    "path": _parse_path,
    "list": _parse_list,
}
_KIND_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "1 or 0",
    "str": "a text",
    "path": "a path",
    "list": "a list, separated by commas",
}


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MLP_{name.upper()}"


def check_http(label: str, value: str) -> None:
    """Raise `SettingsError` if a value is neither empty nor an address of HTTP."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if value and not usable:
        raise SettingsError(f"{label} is {value!r}; write an address that begins with https:// or http://")
