"""Fails the start on a configuration key that does not exist: a misspelt key is a wall that was never built."""

from __future__ import annotations

import difflib
from typing import Any

from traitlets.config import Config, Configurable


def known_classes(*, pods: bool = False, company: bool = False) -> dict[str, set[str]]:
    """Map the names of the classes that the embedded hub is configured by to their settings.

    With those of servers that are pods, and of the company's login, where they are asked for.
    """
    # imported here: the hub has loaded them already, everybody else need not
    from jupyterhub.app import JupyterHub  # noqa: PLC0415

    from mlp_hub.hub_integration.accounts.authenticator import NativeAccounts  # noqa: PLC0415
    from mlp_hub.hub_integration.proxy import SocketProxy  # noqa: PLC0415
    from mlp_spawner import LocalSpawner  # noqa: PLC0415

    leaves = [JupyterHub, NativeAccounts, LocalSpawner, SocketProxy]
    if pods:
        from mlp_spawner.pods import PodSpawner  # noqa: PLC0415 - loads the cluster's client

        leaves.append(PodSpawner)
    if company:
        from mlp_hub.hub_integration.providers.login.authenticator import CompanyAccounts  # noqa: PLC0415

        leaves.append(CompanyAccounts)
    found: dict[str, set[str]] = {}
    for leaf in leaves:
        for cls in leaf.__mro__:
            if issubclass(cls, Configurable):
                # a parent's section also holds for what its children declare
                found.setdefault(cls.__name__, set()).update(leaf.class_trait_names(config=True))
    return found


def check(config: Config) -> None:
    """Raise ValueError naming the first key that nothing reads, with those close to it.

    Sections of classes that are not ours are left alone, unless their name is nearly one of ours.
    """
    known = known_classes(pods="PodSpawner" in config, company="CompanyAccounts" in config)
    for section, keys in config.items():
        if section in known:
            for key in keys:
                if key not in known[section]:
                    raise ValueError(_message(f"c.{section}.{key}", key, known[section]))
        elif section != "MLPHub" and difflib.get_close_matches(section, [*known, "MLPHub"], n=1, cutoff=0.85):
            raise ValueError(_message(f"c.{section}", section, {*known, "MLPHub"}))


def _message(what: str, name: Any, known: set[str]) -> str:
    close = difflib.get_close_matches(str(name), sorted(known), n=3)
    return f"{what} is no setting" + (f"; close to it: {', '.join(close)}" if close else "")
