"""Settings of the exporters of jobs' metric points; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mlp_hub.point_targets import KINDS
from mlp_hub.settings.values import SettingsError, check_http, secrets_of, setting, variable_of

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")
_ALERTMANAGER = ("alertmanager_url", "alertmanager_secrets", "alertmanager_ca")
_MOST_CERTIFICATES = 512 << 10
"""Safety: bytes of a file of certificates: it travels with each request to the process that sends."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """Settings of targets that metric points of jobs are exported to."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    metrics_otlp_endpoint: str = setting(
        "",
        "Address that metric points of jobs are posted to (OTLP over HTTP, protobuf), as http://collector:4318/v1/metrics. Needs the "
        "extra `otlp`. Empty: none are.",
        kind="str",
    )
    metrics_otlp_secrets: Path | None = setting(
        None,
        'A TOML file, readable by its owner alone, with `token = "..."`, or with `user` and `password`, for `metrics_otlp_endpoint`; '
        "unset: it asks for none.",
        kind="path",
    )
    metrics_otlp_ca: Path | None = setting(
        None,
        "Certificates that sign the one of `metrics_otlp_endpoint`, in PEM; unset: those of public authorities.",
        kind="path",
    )
    metrics_otlp_compression: str = setting(
        "none", "How points are packed for `metrics_otlp_endpoint`.", kind="str", choices=("none", "gzip")
    )
    metrics_otlp_tenants: tuple[str, ...] = setting(
        (), "Tenants whose jobs' points are posted to `metrics_otlp_endpoint`; empty: all.", kind="list"
    )
    metrics_mlflow_url: str = setting(
        "",
        "Address of an MLflow tracking server that metric points of jobs are logged to, as https://mlflow.example.org. Each job with "
        "points becomes a run. Empty: none are.",
        kind="str",
    )
    metrics_mlflow_secrets: Path | None = setting(
        None,
        'A TOML file, readable by its owner alone, with `token = "..."`, or with `user` and `password`, for `metrics_mlflow_url`; '
        "unset: it asks for none.",
        kind="path",
    )
    metrics_mlflow_ca: Path | None = setting(
        None,
        "Certificates that sign the one of `metrics_mlflow_url`, in PEM; unset: those of public authorities.",
        kind="path",
    )
    metrics_mlflow_tenants: tuple[str, ...] = setting(
        (), "Tenants whose jobs' points are logged to `metrics_mlflow_url`; empty: all.", kind="list"
    )

    alertmanager_url: str = setting(
        "",
        "Address of the Alertmanager that the hub asks once a minute which notifications it could not deliver, as http://127.0.0.1:9093; "
        "the page Alerts shows them. Empty: it asks none.",
        kind="str",
    )
    alertmanager_secrets: Path | None = setting(
        None,
        'A TOML file, readable by its owner alone, with `token = "..."`, or with `user` and `password`, for `alertmanager_url`; '
        "unset: it asks for none.",
        kind="path",
    )
    alertmanager_ca: Path | None = setting(
        None,
        "Certificates that sign the one of `alertmanager_url`, in PEM; unset: those of public authorities.",
        kind="path",
    )

    def check_exports(self) -> None:
        """Raise `SettingsError` if points could never be exported, or Alertmanager never be asked."""
        asked = [(kind.address, kind.secrets, kind.authorities) for kind in KINDS.values()]
        for address, secrets, ca in (*asked, _ALERTMANAGER):
            label, value = variable_of(address), getattr(self, address)
            check_target(label, value)
            authorization(variable_of(secrets), getattr(self, secrets))
            check_authorities(variable_of(ca), getattr(self, ca), label, value)


def check_target(label: str, value: str) -> None:
    """Raise `SettingsError` if a value is neither empty nor an address of HTTP without a password."""
    check_http(label, value)
    parts = urlsplit(value)
    if parts.username is not None or parts.password is not None:
        raise SettingsError(
            f"{label} has a user or a password, which logs would show; write them into the file of {_file_of(label)}"
        )
    if parts.fragment or not value.isprintable() or " " in value:
        raise SettingsError(f"{label} is {value!r}; write an address without spaces and without a fragment")


def check_authorities(label: str, path: Path | None, of: str, address: str) -> None:
    """Raise `SettingsError` if certificates of authorities are set for an address that shows none."""
    if path is not None and urlsplit(address).scheme != "https":
        raise SettingsError(f"{label} is set, but {of} is not at https://; unset one of them")


def authorities(label: str, path: Path | None) -> str:
    """Return the certificates of a file in PEM, empty without one; raise `SettingsError` if it has none."""
    if path is None:
        return ""
    import ssl  # noqa: PLC0415 - only where it is used

    try:
        with path.open("rb") as file:
            text = file.read(_MOST_CERTIFICATES + 1).decode("ascii")
        if len(text) > _MOST_CERTIFICATES:
            raise ValueError(f"it is larger than {_MOST_CERTIFICATES >> 10} KiB")  # noqa: TRY301 - told as all others
        text = "".join(
            f"{one}\n" for one in _CERTIFICATE.findall(text)
        )  # and no key that is in the same file
        if not text:
            raise ValueError("it has no line BEGIN CERTIFICATE")  # noqa: TRY301 - told as all others
        ssl.create_default_context(cadata=text)
    except (OSError, ValueError, ssl.SSLError) as error:
        raise SettingsError(
            f"{label}: {path} has no certificates in PEM that can be read: {error}"
        ) from error
    return text


def authorization(label: str, path: Path | None) -> Mapping[str, str]:
    """Return the header of requests that a file of secrets is for; raise `SettingsError` if it has none."""
    if path is None:
        return {}
    found = secrets_of(f"{label}: {path}", path)
    known = all(
        isinstance(value, str) and value and value.isascii() and value.isprintable()
        for value in found.values()
    )
    if known and set(found) == {"token"}:
        return {"Authorization": f"Bearer {found['token']}"}
    if known and set(found) == {"user", "password"} and ":" not in found["user"]:
        return {
            "Authorization": "Basic " + b64encode(f"{found['user']}:{found['password']}".encode()).decode()
        }
    raise SettingsError(
        f'{label}: {path} must have token = "...", or user = "..." and password = "...", in printable ASCII, and nothing else'
    )


def _file_of(label: str) -> str:
    return label.rpartition("_")[0] + "_SECRETS"
