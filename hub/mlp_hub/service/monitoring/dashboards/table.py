"""The table of all dashboards."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.cluster import CLUSTER
from mlp_hub.service.monitoring.dashboards.model import Dashboard
from mlp_hub.service.monitoring.dashboards.scheduler import SCHEDULER
from mlp_hub.service.monitoring.dashboards.service import SERVICE
from mlp_hub.service.monitoring.dashboards.teams import APPS, STORAGE, TENANT

DASHBOARDS: tuple[Dashboard, ...] = (CLUSTER, TENANT, SCHEDULER, SERVICE, APPS, STORAGE)
"""All dashboards, in the order of the reference page."""
