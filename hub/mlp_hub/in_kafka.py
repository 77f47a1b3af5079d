"""The broker of metric points, as the settings name it."""

from __future__ import annotations

import importlib.util

from mlp_hub.service.config import BrokerPolicy
from mlp_hub.settings import Settings, SettingsError, broker_values


def broker_of(settings: Settings) -> BrokerPolicy | None:
    """Tell the platform which broker metric points pass through, if any. Raises `SettingsError`."""
    if settings.metrics_transport != "kafka":
        return None
    if importlib.util.find_spec("aiokafka") is None:
        raise SettingsError(
            "MLP_METRICS_TRANSPORT is 'kafka', which needs a package: pip install 'mlp-hub[kafka]'"
        )
    return BrokerPolicy(
        settings.kafka_bootstrap,
        settings.kafka_topic,
        settings.kafka_group,
        broker_values.read_security(settings.kafka_secrets),
    )
