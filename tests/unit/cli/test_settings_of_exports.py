"""Settings of exporters of metric points: off without an address, and secrets come from files alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mlp_hub.point_targets import KINDS, TargetKind
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.exporting import authorities
from mlp_hub.settings.values import variable_of
from mlp_hub.site_receivers import exports_of
from support.certificates import certificate


def load(tmp_path: Path, **given: str) -> Settings:
    return Settings.load({"MLP_HOME": str(tmp_path), **given})


def secret(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "secrets.toml"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_without_an_address_nothing_is_exported(tmp_path: Path) -> None:
    assert exports_of(load(tmp_path, MLP_METRICS_OTLP_TENANTS="red")) == ()


def test_a_target_has_its_address_its_header_and_its_tenants(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        MLP_METRICS_OTLP_ENDPOINT="http://collector:4318/v1/metrics",
        MLP_METRICS_OTLP_SECRETS=secret(tmp_path, 'token = "t0p-secret"'),
        MLP_METRICS_MLFLOW_URL="https://mlflow.example.org/base",
        MLP_METRICS_MLFLOW_TENANTS="red, blue",
    )
    otlp, mlflow = exports_of(settings)
    assert (otlp.kind, otlp.address, otlp.tenants) == ("otlp", "http://collector:4318/v1/metrics", ())
    assert otlp.headers == {"Authorization": "Bearer t0p-secret"}
    assert (mlflow.kind, mlflow.headers, mlflow.tenants) == ("mlflow", {}, ("red", "blue"))
    assert "t0p-secret" not in repr(otlp) + repr(settings) + str(settings.to_environ())


def test_a_user_and_a_password_are_a_basic_header(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        MLP_METRICS_MLFLOW_URL="https://mlflow.example.org",
        MLP_METRICS_MLFLOW_SECRETS=secret(tmp_path, 'user = "hub"\npassword = "a:b"'),
    )
    assert exports_of(settings)[0].headers == {"Authorization": "Basic aHViOmE6Yg=="}


@pytest.mark.parametrize(
    "address",
    ["collector:4318", "ftp://collector", "http://", "http://u:s3cret@c/", "http://c/#x", "http://c/a b", "http://c/\r\nX: y"],
)  # fmt: skip
@pytest.mark.parametrize("variable", ["MLP_METRICS_OTLP_ENDPOINT", "MLP_METRICS_MLFLOW_URL"])
def test_an_address_that_cannot_be_is_refused_and_its_password_is_not_shown(
    tmp_path: Path, variable: str, address: str
) -> None:
    with pytest.raises(SettingsError, match=variable) as refused:
        load(tmp_path, **{variable: address})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", 'token = ""', "token = 3", 'token = "a\\nX: y"', 'token = "é"', 'user = "u"', 'token = "a"\nuser = "u"', 'user = "a:b"\npassword = "c"', "token"],
)  # fmt: skip
def test_a_file_of_secrets_that_cannot_be_is_refused_without_its_content(tmp_path: Path, text: str) -> None:
    path = secret(tmp_path, text)
    with pytest.raises(SettingsError, match="MLP_METRICS_OTLP_SECRETS"):
        load(tmp_path, MLP_METRICS_OTLP_ENDPOINT="http://c/v1/metrics", MLP_METRICS_OTLP_SECRETS=path)


def test_a_file_of_secrets_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = secret(tmp_path, 'token = "t0p-secret"', 0o644)
    with pytest.raises(SettingsError, match="can be read by others") as refused:
        load(tmp_path, MLP_METRICS_MLFLOW_URL="http://c", MLP_METRICS_MLFLOW_SECRETS=path)
    assert "t0p-secret" not in str(refused.value)


def test_certificates_of_the_site_and_the_packing_reach_the_policy(tmp_path: Path) -> None:
    ca = certificate(tmp_path, "collector")
    otlp, mlflow = exports_of(
        load(
            tmp_path,
            MLP_METRICS_OTLP_ENDPOINT="https://collector:4318/v1/metrics",
            MLP_METRICS_OTLP_CA=str(ca),
            MLP_METRICS_OTLP_COMPRESSION="gzip",
            MLP_METRICS_MLFLOW_URL="https://mlflow.example.org",
        )
    )
    assert otlp.packed
    assert otlp.ca.startswith("-----BEGIN CERTIFICATE-----")
    assert otlp.ca.strip() in ca.read_text()
    assert "PRIVATE" not in otlp.ca, "the file has a key too, which stays there"
    assert (mlflow.ca, mlflow.packed) == ("", False)


@pytest.mark.parametrize("variable", ["MLP_METRICS_OTLP_CA", "MLP_METRICS_MLFLOW_CA", "MLP_TRACES_CA"])
def test_certificates_for_an_address_that_shows_none_are_refused(tmp_path: Path, variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} is set"):
        load(
            tmp_path,
            MLP_METRICS_OTLP_ENDPOINT="http://collector:4318/v1/metrics",
            **{variable: str(certificate(tmp_path, "collector"))},
        )


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"none", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"x" * (600 << 10)],
)  # fmt: skip
def test_a_file_without_certificates_is_refused_and_does_not_mean_those_of_everybody(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(content)
    for given in (path, tmp_path / "none.pem", tmp_path):
        with pytest.raises(SettingsError, match="MLP_METRICS_OTLP_CA"):
            authorities("MLP_METRICS_OTLP_CA", given)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_each_target_of_the_table_has_its_settings_and_they_are_checked(
    tmp_path: Path, kind: TargetKind
) -> None:
    fields = {field.name for field in dataclasses.fields(Settings)}
    own = {kind.address, kind.secrets, kind.authorities, kind.tenants}
    assert own | ({kind.compression} if kind.compression else set()) <= fields
    address, secrets, ca = (variable_of(name) for name in (kind.address, kind.secrets, kind.authorities))
    with pytest.raises(SettingsError, match=address):
        load(tmp_path, **{address: "ftp://target"})
    with pytest.raises(SettingsError, match=secrets):
        load(tmp_path, **{address: "https://target", secrets: secret(tmp_path, "token = 3")})
    with pytest.raises(SettingsError, match=f"{ca} is set"):
        load(tmp_path, **{address: "http://target", ca: str(certificate(tmp_path, "target"))})
