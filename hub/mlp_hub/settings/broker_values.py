"""Values of the settings of the metrics broker, checked before anything starts.

These are its addresses and its file of secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlp_hub.settings.values import SettingsError, address, secrets_of

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
KEYS = ("protocol", "mechanism", "user", "password", "ca_file", "certificate_file", "key_file")
_FILES = ("ca_file", "certificate_file", "key_file")


def check_addresses(given: Sequence[str]) -> None:
    """Raise `SettingsError` unless all are HOST:PORT, and there is one."""
    if not given:
        raise SettingsError(
            "MLP_METRICS_TRANSPORT is 'kafka'; name its brokers with MLP_KAFKA_BOOTSTRAP, as kafka-1.example.org:9092"
        )
    for one in given:
        address("MLP_KAFKA_BOOTSTRAP", one)


def read_security(path: Path | None) -> Mapping[str, str]:
    """Read how the broker is spoken to, of a TOML file that its owner alone may read; raises `SettingsError`."""
    if path is None:
        return {}
    label = f"MLP_KAFKA_SECRETS: {path}"
    found = secrets_of(label, path)
    for key, value in found.items():
        if key not in KEYS:
            raise SettingsError(f"{label} has {key!r}; there are {', '.join(KEYS)}")
        if not isinstance(value, str):
            raise SettingsError(f"{label}: {key} must be a text in quotes")
    _check(label, found)
    return found


def _check(label: str, found: Mapping[str, str]) -> None:
    protocol = found.get("protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise SettingsError(f"{label}: protocol is {protocol!r}; it must be one of {', '.join(PROTOCOLS)}")
    if found.get("mechanism", "PLAIN") not in MECHANISMS:
        raise SettingsError(
            f"{label}: mechanism is {found['mechanism']!r}; it must be one of {', '.join(MECHANISMS)}"
        )
    if ("user" in found) is not protocol.startswith("SASL_") or ("password" in found) is not (
        "user" in found
    ):
        raise SettingsError(
            f"{label}: user and password belong to the protocols that begin with SASL_, and to each other"
        )
    for key in _FILES:
        if key in found and not protocol.endswith("SSL"):
            raise SettingsError(f"{label}: {key} belongs to the protocols SSL and SASL_SSL")
        if key in found and not Path(found[key]).is_file():
            raise SettingsError(f"{label}: there is no {key} {found[key]}")
