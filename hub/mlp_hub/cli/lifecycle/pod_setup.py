"""`mlp-hub pod setup`: secrets, databases and directories of a hub whose parts are pods, before its parts start."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlp_hub import bindings, durable
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.lifecycle import pod, pod_tables
from mlp_hub.cli.state import belonging, database, identity, state_dir
from mlp_hub.settings import Settings, SettingsError
from mlp_language.render import here, render, say

if TYPE_CHECKING:
    from mlp_hub.kubernetes.client import KubernetesClient

ANSWER_S = 600.0
"""Safety: seconds for which databases are waited for; then the pod starts again."""


def setup(settings: Settings, take: Collection[str], secret: str = "", mounted: Path = pod.MOUNTED) -> int:
    """Have all that the parts need; raise `CommandFailed` where that cannot be.

    `secret` is the Secret that the hub keeps itself; empty: all secrets are mounted. `take` is as of `up`.
    """
    state_dir.prepare_folders(settings)
    if secret:
        for name, value in asyncio.run(kept(settings, secret)).items():
            durable.write(settings.secret_file(name), value + "\n")
    else:
        pod.take_secrets(settings, mounted)
    # the service alone opens stored secrets, and the hub's pod does not have their key
    needed = [name for name in state_dir.new_secrets() if secret or name != "secrets_key"]
    if missing := [name for name in needed if not settings.secret_if_made(name)]:
        raise CommandFailed(
            say("The Secret of the platform lacks {keys}.", keys=", ".join(missing)),
            say("Add them; `mlp-hub pod secrets` prints a Secret with all keys."),
        )
    os.environ.update(pod.password_of(settings))
    _wait_for_databases(settings)
    identity.give(settings, installation_of(settings))
    if belonging.NEW_DATABASE not in take:
        check_owner(settings)
        check_emptiness(settings)
    pod_tables.bring(settings)
    belonging.bind(settings, "platform")
    belonging.keep_numbers(settings)
    _say(say("secrets, databases and directories are ready"))
    return 0


def installation_of(settings: Settings) -> str:
    """Return the identity of the installation: as long as its secrets stay, it is the same in each pod."""
    # the token of a service at another's hub is that hub's to change
    secret = settings.secret("cookie_secret" if settings.hub_attached else "service_token")
    return hashlib.sha256(f"installation {secret}".encode()).hexdigest()[:16]


async def kept(settings: Settings, name: str) -> dict[str, str]:
    """Return the secrets of the Secret that the hub keeps; missing ones are made and added."""
    from mlp_hub import in_cluster  # noqa: PLC0415 - loads the cluster's client
    from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable  # noqa: PLC0415
    from mlp_hub.kubernetes.kinds import SECRETS  # noqa: PLC0415

    namespace = settings.kubernetes_pod.partition("/")[0]
    if not namespace:
        raise SettingsError("MLP_KUBERNETES_POD is not set; it names the namespace of the Secret")
    client = await in_cluster.connect(settings)
    try:
        there = await client.get(SECRETS, name, namespace)
        if there is None:
            made = await client.create(secret_of(name, namespace, all_new()), SECRETS)
            if made is not None:
                with contextlib.suppress(ClusterError, ClusterUnreachable):  # they come by themselves, later
                    await _wake(client, *settings.kubernetes_pod.split("/"))
            there = made or await client.get(SECRETS, name, namespace)  # another pod was faster
        assert there is not None  # noqa: S101 - it was made or found
        found = decoded(there)
        if missing := {key: value for key, value in all_new().items() if not found.get(key)}:
            patch = {"data": encoded(missing)}
            found = decoded(await client.patch(SECRETS, name, patch, namespace))
    except (ClusterError, ClusterUnreachable) as error:
        raise CommandFailed(
            say("The Secret {name} cannot be kept: {why}.", name=name, why=render(error.message, here())),
            say("Set secrets.existingSecret of the chart to keep it yourself."),
        ) from error
    finally:
        await client.close()
    return found


async def _wake(client: KubernetesClient, namespace: str, own: str) -> None:
    """Delete the pods that wait for the Secret: the cluster looks for it again only after minutes, and at once for a new pod."""
    from mlp_hub.kubernetes.kinds import PODS, name_of  # noqa: PLC0415
    from mlp_hub.kubernetes.names import COMPONENT, INSTANCE  # noqa: PLC0415

    mine = await client.get(PODS, own, namespace) or {"metadata": {}}
    instance = mine["metadata"].get("labels", {}).get(INSTANCE, "")
    for part in ("proxy", "service", "data", "postgresql"):
        labels = f"{INSTANCE}={instance},{COMPONENT}={part}"
        for found in (await client.list(PODS, namespace, labels=labels)).items:
            if found.get("status", {}).get("phase") == "Pending":
                await client.delete(PODS, name_of(found), namespace)


def all_new() -> dict[str, str]:
    """Return new values of all secrets that pods may need."""
    return {**state_dir.new_secrets(), pod.DATABASE_PASSWORD: state_dir.new_secrets()["proxy_token"]}


def secret_of(name: str, namespace: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return a Secret with these values."""
    labels = {"app.kubernetes.io/managed-by": "mlp-hub", "app.kubernetes.io/component": "secrets"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "type": "Opaque",
        "data": encoded(values),
    }


def encoded(values: Mapping[str, str]) -> dict[str, str]:
    """Return values as a Secret has them."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def decoded(secret: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a Secret."""
    return {
        key: base64.b64decode(value).decode().strip() for key, value in (secret.get("data") or {}).items()
    }


def check_owner(settings: Settings) -> None:
    """Raise `CommandFailed` where a database belongs to another installation, whose jobs would be ended here."""
    for name in ("platform", "hub"):
        row = belonging.row_of(settings, name)
        owner = None if row is None else row.get("home")
        if owner not in (None, identity.own(settings)):
            raise CommandFailed(
                say(
                    "{what}, {url}, belongs to another installation. Nothing was started, ended or changed.",
                    what=database.name_of(name),
                    url=bindings.shown(database.urls(settings)[name]),
                ),
                say(
                    "Use the Secret of that installation (secrets.existingSecret), or give each its own databases. If it is gone, set "
                    "hub.newDatabase for one upgrade: jobs that ran there start again here."
                ),
            )


def check_emptiness(settings: Settings) -> None:
    """Raise `CommandFailed` where the platform's database is empty beside files of people: then it is not theirs."""
    if database.platform(settings).revision is None and belonging.was_used(settings):
        raise CommandFailed(
            say(
                "{what}, {url}, is empty, and the volume has files of people. Nothing was started, ended or changed.",
                what=database.name_of("platform"),
                url=bindings.shown(settings.service_db_url),
            ),
            say(
                "Restore the database, or name the right one. Set hub.newDatabase for one upgrade to begin with an empty one: people sign up again."
            ),
        )


def show_secrets(name: str) -> int:
    """Print a Secret with new values of all keys, for `kubectl apply`."""
    made = secret_of(name or "mlp-hub-secrets", "", all_new())
    del made["metadata"]["namespace"], made["metadata"]["labels"]  # it is the site's, not the hub's
    _say(json.dumps(made, indent=1))
    return 0


def _wait_for_databases(settings: Settings) -> None:
    until, said = time.monotonic() + ANSWER_S, ""
    while True:
        try:
            database.platform(settings)
            database.hub(settings)
        except database.DatabaseSilent as silent:
            if time.monotonic() > until:
                raise
            if silent.text() != said:  # once, not each second
                said = silent.text()
                _say(said)
            time.sleep(pod.LOOK_S)
        else:
            return


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
