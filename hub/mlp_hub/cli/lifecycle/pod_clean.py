"""`mlp-hub pod clean`: removal of what a hub made in its cluster, after its chart was uninstalled.

The hub's pods have ended by then, so that nothing makes it again.
"""

from __future__ import annotations

import asyncio
import sys
import time

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable
from mlp_hub.kubernetes.kinds import Kind, name_of
from mlp_hub.settings import Settings
from mlp_language.render import here, render, say

GONE_S = 240.0
"""Safety: seconds to wait for the end of namespaces; then the cluster removes the rest alone."""
LOOK_S = 0.5
"""Tuning: seconds between two looks whether they have ended."""
MADE = (
    kinds.NAMESPACES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PRIORITY_CLASSES,
    kinds.ADMISSION_BINDINGS,
    kinds.ADMISSION_POLICIES,
)
"""Contract: kinds outside of namespaces that a hub makes; with Volcano there are also queues."""


def clean(settings: Settings, secret: str = "") -> int:
    """Remove all that the hub of this name made, and the Secret of its platform if it is named; raise `CommandFailed`.

    The name is that of `kubernetes_name`; the Secret is NAME of the namespace of `kubernetes_pod`. Files stay.
    """
    return asyncio.run(_clean(settings, secret))


async def _clean(settings: Settings, secret: str) -> int:
    from mlp_hub import in_cluster  # noqa: PLC0415 - loads the cluster's client

    client = await in_cluster.connect(settings)
    try:
        await remove(client, settings.kubernetes_name)
        if secret:
            await client.delete(kinds.SECRETS, secret, settings.kubernetes_pod.partition("/")[0])
    except (ClusterError, ClusterUnreachable) as error:
        raise CommandFailed(
            say("Objects of the hub stay in the cluster: {why}.", why=render(error.message, here())),
            say("`docs/how-to/kubernetes.md` has the commands that remove them."),
        ) from error
    finally:
        await client.close()
    return 0


async def remove(client: KubernetesClient, name: str, patience: float = GONE_S) -> None:
    """Delete what the hub of this name made, and wait until it is gone. Objects of others have other labels."""
    ours = f"{names.MANAGED_BY}=mlp-hub,{names.INSTANCE}={name}"
    some = [*MADE, *([kinds.QUEUES] if await client.serves(kinds.QUEUES) else [])]
    await client.delete(kinds.NAMESPACES, f"{name}--hub")
    for kind in some:
        for one in await _of(client, kind, ours):
            await client.delete(kind, one)
            _say(say("{kind} {name} is removed", kind=kind.kind, name=one))
    until = time.monotonic() + patience
    while left := [one for kind in some for one in await _of(client, kind, ours)]:
        if time.monotonic() > until:
            _say(say("The cluster still ends {names}.", names=", ".join(left)))
            return
        await asyncio.sleep(LOOK_S)


async def _of(client: KubernetesClient, kind: Kind, labels: str) -> list[str]:
    return [name_of(one) for one in (await client.list(kind, labels=labels, metadata=True)).items]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
