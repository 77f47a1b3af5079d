"""The doctor's look at the broker that metric points pass through."""

from __future__ import annotations

import asyncio

from mlp_hub.cli.doctor.checks import FAIL, OK, Check
from mlp_hub.in_kafka import broker_of
from mlp_hub.service.metrics.kafka_log import BrokerError, KafkaLog
from mlp_hub.settings import Settings
from mlp_language.render import say


def broker(settings: Settings) -> list[Check]:
    """Tell whether the broker has the topic; nothing where points take the straight way."""
    policy = broker_of(settings)
    if policy is None:
        return []
    try:
        partitions = asyncio.run(KafkaLog(policy).partitions())
    except BrokerError as error:
        return [
            Check(
                "metrics",
                FAIL,
                say("Kafka: {error}", error=str(error)),
                say(
                    "Check MLP_KAFKA_BOOTSTRAP and MLP_KAFKA_SECRETS, and whether {topic} can be read and written.",
                    topic=policy.topic,
                ),
            )
        ]
    text = say(
        "Kafka, topic {topic} with {n} partitions, group {group}",
        topic=policy.topic,
        n=partitions,
        group=policy.group,
    )
    return [Check("metrics", OK, text)]
