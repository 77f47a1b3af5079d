"""Settings of the broker of metrics: what is wrong is named before anything starts."""

from __future__ import annotations

import pytest

from mlp_hub.in_kafka import broker_of
from mlp_hub.settings import Settings, SettingsError

KAFKA = {
    "MLP_METRICS_TRANSPORT": "kafka",
    "MLP_KAFKA_BOOTSTRAP": "a.example:9092, [::1]:9093",
    "MLP_HOME": "/nowhere",
}


def secrets(tmp_path, text, mode=0o600):
    path = tmp_path / "kafka.toml"
    path.write_text(text)
    path.chmod(mode)
    return {**KAFKA, "MLP_KAFKA_SECRETS": str(path)}


def test_without_a_word_points_take_the_straight_way():
    assert broker_of(Settings.load({"MLP_HOME": "/nowhere"})) is None


def test_a_broker_is_told_with_its_secrets(tmp_path):
    (tmp_path / "ca.pem").write_text("")
    text = f'protocol = "SASL_SSL"\nuser = "hub"\npassword = "s3cret"\nca_file = "{tmp_path}/ca.pem"\n'
    policy = broker_of(Settings.load(secrets(tmp_path, text)))
    assert policy.bootstrap == ("a.example:9092", "[::1]:9093")
    assert (policy.topic, policy.group) == ("mlp-metrics", "mlp-hub")
    assert policy.security["password"] == "s3cret"
    assert "s3cret" not in repr(policy)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"MLP_METRICS_TRANSPORT": "carrier-pigeon"}, "must be one of http, kafka"),
        ({"MLP_METRICS_TRANSPORT": "kafka"}, "name its brokers with MLP_KAFKA_BOOTSTRAP"),
        ({**KAFKA, "MLP_KAFKA_BOOTSTRAP": "a.example"}, "it must be HOST:PORT"),
        ({**KAFKA, "MLP_KAFKA_SECRETS": "/nowhere/kafka.toml"}, "cannot be read"),
    ],
)
def test_impossible_settings_are_refused(given, told):
    with pytest.raises(SettingsError, match=told):
        Settings.load({"MLP_HOME": "/nowhere", **given})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("protocol", "cannot be read"),
        ('pasword = "x"', "has 'pasword'; there are protocol, mechanism"),
        ("password = 7", "password must be a text in quotes"),
        ('protocol = "HTTP"', "must be one of PLAINTEXT, SSL"),
        ('user = "a"\npassword = "b"', "belong to the protocols that begin with SASL_"),
        ('protocol = "SASL_SSL"\nuser = "a"', "and to each other"),
        ('protocol = "SASL_SSL"\nuser = "a"\npassword = "b"\nmechanism = "GSSAPI"', "must be one of PLAIN"),
        ('ca_file = "/nowhere/ca.pem"', "belongs to the protocols SSL and SASL_SSL"),
        ('protocol = "SSL"\nca_file = "/nowhere/ca.pem"', "there is no ca_file /nowhere/ca.pem"),
    ],
)
def test_a_file_of_secrets_with_a_fault_is_refused_and_told_without_its_secrets(tmp_path, text, told):
    with pytest.raises(SettingsError, match=told) as refused:
        Settings.load(secrets(tmp_path, text))
    assert '"b"' not in str(refused.value)


def test_a_file_of_secrets_that_others_may_read_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="chmod 600"):
        Settings.load(secrets(tmp_path, "", 0o640))
