"""Quota for the pods of a KubeSpawner that somebody else configured: profiles, hooks, volumes and names stay theirs.

The amount is read from the finished pod, after profiles and `modify_pod_hook`, so that nothing is counted twice
or left out. A pod that the quota has no room for is never asked of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyterhub.utils import maybe_future
from traitlets import Bool, Float, Integer, Unicode

from mlp_hub.executors.kubernetes.nodes.charge import charge_of
from mlp_hub.kubernetes import names
from mlp_language.message import msg
from mlp_spawner.errors import REFUSALS_COUNT, ServerFailed, ServerRefused
from mlp_spawner.quota.held import HeldQuota
from mlp_spawner.quota.holding import CONFIRMED
from mlp_spawner.quota.service_client import Account, Amount


class PodQuota(HeldQuota):
    """Charges the user's team for a pod, mixed in before a KubeSpawner: `class Mine(PodQuota, KubeSpawner)`."""

    mlp_team = Unicode(
        "",
        help="Team that is charged for the server; a profile's `kubespawner_override` can set it. Empty: the user's default team.",
        config=True,
    )
    mlp_by_limits = Bool(
        True, help="Count limits of CPU and memory; False: requests, which are their guarantees.", config=True
    )
    mlp_cpu = Float(0.2, help="Cores that count for a pod with neither a limit nor a request.", config=True)
    mlp_ram = Integer(1024, help="MiB that count for a pod with neither a limit nor a request.", config=True)
    mlp_api_url = Unicode(help="URL of the platform's API as notebook servers reach it.", config=True)
    mlp_data_url = Unicode(help="URL of the files of datasets as notebook servers reach it.", config=True)
    mlp_installation = Unicode(
        help="Name of the platform in the cluster, by which it knows that it has counted a pod.", config=True
    )

    modify_pod_hook: Any
    _team = ""
    _teams: tuple[str, ...] = ()
    _their_hook: Callable[..., Any] | None = None
    _wraps = False

    async def _prepare_quota(self) -> Account:
        return await self._account()

    async def _take_quota(self, prepared: Any) -> None:
        self._team, self._teams, self._wraps = prepared.default_tenant, prepared.tenants, True

    async def start(self) -> Any:
        """Have the server started; its hooks are the site's again afterwards."""
        try:
            return await super().start()
        except ServerRefused:
            if REFUSALS_COUNT and self.handler is not None:
                counts = self.handler.settings  # the hub adds one to it when this refusal comes out
                counts["failure_count"] = counts.get("failure_count", 0) - 1
            raise
        finally:
            if not self._wraps and self.modify_pod_hook == self._charged:
                self.modify_pod_hook = self._their_hook
            self._wraps, self._their_hook = False, None

    async def get_pod_manifest(self) -> Any:
        """Make the pod as ever, and let the charge follow the site's hook."""
        pod = await super().get_pod_manifest()
        if self._wraps:
            self._their_hook, self.modify_pod_hook, self._wraps = self.modify_pod_hook, self._charged, False
        return pod

    async def _charged(self, _spawner: Any, pod: Any) -> Any:
        """Let the site's hook change the pod, then hold its amount for good; raise `ServerRefused` without room."""
        if self._their_hook is not None:
            pod = await maybe_future(self._their_hook(self, pod))
        found = self.api.api_client.sanitize_for_serialization(pod)
        charge = charge_of(found, by_limits=self.mlp_by_limits, cpu=self.mlp_cpu, ram=self.mlp_ram)
        await self._hold(Amount(self._charged_team(), *charge))
        await super()._confirm()  # at once: their start may take longer than a try in the ledger lasts
        self._has_room = True
        return self._labelled(pod)

    def _charged_team(self) -> str:
        team = self.mlp_team or self._team
        if team not in self._teams:
            text = msg(
                "You are not in the team {team}, which this server is charged to; you are in: {mine}.",
                team=team,
                mine=", ".join(self._teams),
            )
            raise ServerRefused(text, "options")
        return team

    def _labelled(self, pod: Any) -> Any:
        about = pod["metadata"] if isinstance(pod, dict) else pod.metadata
        labels = about.get("labels") if isinstance(about, dict) else about.labels
        labels = {**(labels or {}), names.CHARGED: self.mlp_installation}
        if isinstance(about, dict):
            about["labels"] = labels
        else:
            about.labels = labels
        return pod

    async def _confirm(self) -> None:
        if self._holding.step != CONFIRMED:
            text = msg(
                "The server was started without its quota: a hook of the hub makes its pod in another way. An administrator of the hub can fix that."
            )
            raise ServerFailed(text)

    def get_env(self) -> dict[str, str]:
        """Add what programs of the server find of the platform."""
        env: dict[str, str] = super().get_env()
        files = {"MLP_DATA_URL": self.mlp_data_url} if self.mlp_data_url else {}
        return (
            env
            | files
            | {
                "MLP_API_URL": self.mlp_api_url,
                "MLP_TENANT": self.mlp_team or self._team,
                "MLP_USER": self.user.name,
                "MLP_TOKEN": self.api_token,
                "MLP_LANGUAGE": self._reader.language,
            }
        )
