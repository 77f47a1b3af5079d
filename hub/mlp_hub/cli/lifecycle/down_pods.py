"""End of a cluster's pods in `down`: those of notebook servers.

Pods of jobs end as their jobs are suspended.
"""

from __future__ import annotations

import asyncio

from mlp_hub import in_cluster
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes import notebooks
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.settings import Settings, SettingsError
from mlp_language.render import say, says

MARGIN_S = 30.0
"""Tuning: seconds beyond their grace that pods have to go: time of the command, for a complete report.

A node reports the end of a pod late.
"""
AGAIN_S = 0.5
"""Tuning: seconds between two looks at pods that end: calls of the API, for how soon the command is done."""


def stop_servers(settings: Settings) -> int:
    """End the notebook servers that are pods; return how many. Raises `CommandFailed` where they do not end, or nobody can tell."""
    again = say("When the cluster answers, run again: make down JOBS=stop.")
    try:
        ended, left = asyncio.run(_in_cluster(settings))
    except (SettingsError, MessageError) as error:
        raise CommandFailed(
            say("The pods of notebook servers were not changed: {error}.", error=str(error)), again
        ) from error
    if left:
        raise CommandFailed(
            says(
                "1 pod of a notebook server was asked to end and still exists; its node is perhaps lost.",
                "{n} pods of notebook servers were asked to end and still exist; their nodes are perhaps lost.",
                left,
            ),
            again,
        )
    return ended


async def _in_cluster(settings: Settings) -> tuple[int, int]:
    client = await in_cluster.connect(settings)
    try:
        return await end_all(client, in_cluster.installation_of(settings), settings.grace_s)
    finally:
        await client.close()


async def end_all(
    client: KubernetesClient, at: Installation, grace_s: float, margin_s: float = MARGIN_S
) -> tuple[int, int]:
    """End all servers of a hub; return how many were told to, and how many are there still after their grace and the margin."""
    ended = await notebooks.end(client, at, grace_s)
    left = len(ended)
    try:
        async with asyncio.timeout(grace_s + margin_s):
            while True:
                left = len(await notebooks.pods(client, at))
                if not left:
                    break
                await asyncio.sleep(AGAIN_S)
    except TimeoutError:
        pass
    return len(ended) - left, left
