"""Puts together what keeps the hub in step with the provider, and starts it in a running hub."""

from __future__ import annotations

import time
from typing import Any

from mlp_hub.background import BackgroundTask
from mlp_hub.hub_integration.providers.sync.logout import LogoutHandler
from mlp_hub.hub_integration.providers.sync.people import HubPeople
from mlp_hub.hub_integration.providers.sync.refresh import ProviderPass, Refresher
from mlp_hub.service.tenants.groups import policy_as_set
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_spawner.quota.service_client import ServiceClient


class Watching:
    """Objects of a running hub for it, made once the hub's database exists, on the hub's event loop."""

    def __init__(self, app: Any, settings: Settings, provider: Any) -> None:
        self.people = people = HubPeople(
            app, decides_admins=bool(settings.login_admin_groups), unseen_s=settings.login_unseen_s
        )
        service = ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))
        every_s = settings.login_refresh_s
        self.policy = policy_as_set(settings)
        self.refresher = Refresher(provider, people, service, self.policy, time.monotonic, every_s=every_s)
        self._pass = ProviderPass(self.refresher, people, service, every_s=every_s)
        self._provider = provider
        self._settings = settings
        self._task = BackgroundTask(lambda: self._pass.run(time.monotonic))

    def start(self) -> None:
        """Begin to look at those who send no request."""
        self._task.start()

    def handlers(self) -> list[tuple[Any, ...]]:
        """List the routes below the hub's prefix; only providers of OpenID Connect have logout tokens."""
        if not hasattr(self._provider, "keys"):
            return []
        how = {
            "provider": self._provider,
            "refresher": self.refresher,
            "audience": self._settings.login_client_id,
            "skew_s": self._settings.login_clock_skew_s,
        }
        return [(r"/api/mlp/backchannel-logout", LogoutHandler, how)]
