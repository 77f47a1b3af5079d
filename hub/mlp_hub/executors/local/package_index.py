"""Source of packages of environments: the hub's settings, else those of uv and pip of its machine."""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SYSTEM_CONFIG = Path("/etc/pip.conf")
"""Given: pip's configuration of a machine."""
_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EXTRA = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_PASSED = ("UV_INSECURE_HOST", "UV_HTTP_TIMEOUT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """Where packages come from: variables that uv has, and files of certificates that its sandboxes must see for it."""

    variables: Mapping[str, str]
    files: tuple[str, ...] = ()


def index_of(setting: str, environ: Mapping[str, str], configs: Iterable[Path] = ()) -> PackageIndex:
    """Return the index: of the setting where it names one, else of uv's variables, pip's, and pip's files, in this order."""
    said = _configured(configs)
    variables = {name: value for name in _PASSED if (value := environ.get(name) or environ.get(name.lower()))}
    if setting:
        variables["UV_DEFAULT_INDEX"] = setting
    else:
        if index := _first(environ, _INDEX) or said.get("index-url", ""):
            variables["UV_DEFAULT_INDEX"] = index
        if extra := _first(environ, _EXTRA) or said.get("extra-index-url", ""):
            variables["UV_INDEX"] = " ".join(extra.split())
    certificates = _first(environ, _CERTIFICATES) or said.get("cert", "")
    if certificates:
        variables["SSL_CERT_FILE"] = certificates
    return PackageIndex(variables, (certificates,) if certificates else ())


def configs_of(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return pip's configuration files of the hub's user, those that count most first."""
    named = environ.get("PIP_CONFIG_FILE", "")
    home = environ.get("HOME", "")
    config = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return (
        *([Path(named)] if named else []),
        *([Path(config) / "pip" / "pip.conf"] if config else []),
        *([Path(home) / ".pip" / "pip.conf"] if home else []),
        SYSTEM_CONFIG,
    )


def _configured(configs: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in configs:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip says what is wrong with it
        for section in ("install", "global"):
            if parser.has_section(section):
                found = {**dict(parser.items(section)), **found}
    return found


def _first(environ: Mapping[str, str], names: Iterable[str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")
